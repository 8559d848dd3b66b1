"""Forward an upstream's answer to the client byte for byte as it arrives."""

from collections.abc import Mapping
from typing import Final

import msgspec
from aiohttp import web
from multidict import CIMultiDict

from gateway.serve import arrival as arrivals
from gateway.serve import record as records
from gateway.serve.answers.answer import Answer, decoder
from gateway.serve.answers.repeated_key import hide_key, hold_error, may_repeat_key
from gateway.serve.answers.tail import Tail
from gateway.serve.answers.whole import whole
from gateway.serve.incoming import headers as http
from gateway.serve.incoming.admission import streaming
from gateway.upstream.response import AskFailed

LARGEST_PIECE: Final = 2**22
"""Bytes that are decoded of one piece of a compressed answer: 16 times the 256 KB in which they arrive at most. Decoding takes 8 ms."""


class Relayed(msgspec.Struct, frozen=True):
    """How forwarding ended. ``broken`` means that the upstream broke off."""

    response: web.StreamResponse
    broken: bool = False

    @property
    def error(self) -> str:
        """The error of the request's record; empty without one."""
        return "upstream_broke_off" if self.broken else ""


async def relay(
    request: web.BaseRequest, answer: Answer, extra: Mapping[str, str], tail: Tail | None = None
) -> Relayed:
    """Send the answer to the client: status, headers, the held bytes, and then each chunk as it arrives.

    A slow client slows the reading, because writing waits until its buffer drains. When the upstream breaks off, the
    client's connection is closed too, so that half an answer never looks complete. When the client leaves, this raises
    CancelledError or ConnectionResetError and the upstream's connection is closed. The sent bytes are added to ``tail``, decoded.
    """
    if answer.complete and request.method != "HEAD":
        return Relayed(relay_whole(request, answer, extra))
    with answer:
        if may_repeat_key(answer):
            await hold_error(answer)
            hide_key(answer)
        response = await _begun(request, answer, extra)
        with streaming(request):
            return await _pump(request, answer, response, tail or Tail(0))


def relay_whole(request: web.BaseRequest, answer: Answer, extra: Mapping[str, str]) -> web.StreamResponse:
    """Return the client's answer, if the upstream's has arrived completely."""
    if may_repeat_key(answer):
        hide_key(answer)
    records.of(request).answer_bytes = max(len(answer.held), 0 if answer.is_stream else len(answer.text))
    headers, reason = _headers(request, answer, extra), http.clean(answer.response.reason or "")
    return whole(request, answer.status, reason, headers, answer.held)


def _headers(request: web.BaseRequest, answer: Answer, extra: Mapping[str, str]) -> CIMultiDict[str]:
    """Return the headers of the answer to the client."""
    arrival, headers = arrivals.of(request), http.returned(answer.response.headers)
    arrival.add_shared(headers)
    headers.update(
        {name: value for name, value in extra.items() if name not in arrival.shared} if arrival.shared else extra
    )
    return headers


async def _begun(request: web.BaseRequest, answer: Answer, extra: Mapping[str, str]) -> web.StreamResponse:
    """Send the head of a stream. Nothing of it is kept meanwhile: a stream may take hours, and its headers take 3 KB."""
    headers, reason = _headers(request, answer, extra), http.clean(answer.response.reason or "")
    response = web.StreamResponse(status=answer.status, reason=reason, headers=headers)
    await response.prepare(request)
    response.headers.clear()
    return response


async def _pump(request: web.BaseRequest, answer: Answer, response: web.StreamResponse, tail: Tail) -> Relayed:
    """Send the held bytes, and then each piece as it arrives. The connection to the client is cut if the upstream breaks off."""
    upstream, record = answer.response, records.of(request)
    write = request.writer.write  # the response's own `write` only calls it
    decode = decoder(upstream, LARGEST_PIECE)
    if answer.held:
        tail.add(text := decode(answer.held))
        record.answer_bytes = len(text) or len(answer.held)  # what cannot be decoded counts as it came
        await write(answer.held)
    try:
        while chunk := await upstream.next_piece():
            await write(chunk)
            tail.add(text := decode(chunk))
            record.answer_bytes += len(text) or len(chunk)
    except (AskFailed, TimeoutError):
        if request.transport is not None:
            request.transport.abort()
        return Relayed(response, broken=True)
    await response.write_eof()
    return Relayed(response)
