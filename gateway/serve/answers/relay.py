"""Forward an upstream's answer byte for byte as it arrives, and keep its last bytes to read the usage."""

from collections.abc import Mapping
from typing import Final

import msgspec
from aiohttp import web
from multidict import CIMultiDict

from gateway.serve import record
from gateway.serve.answers.answer import Answer, Failed, readable
from gateway.serve.answers.whole import whole
from gateway.serve.incoming import headers as http
from gateway.serve.incoming.admission import streaming
from gateway.upstream.response import AskFailed
from providers.record import Usage
from providers.sse import Events

# Bytes. Usage is in the last chunk of a stream, or near the end of a long JSON answer.
STREAM_TAIL: Final = 2**14
LONGEST_READ_ALONG: Final = 2**20
"""Bytes kept of an answer that is not a stream; see `STREAM_TAIL`."""


class Tail:
    """The last ``keep`` bytes of an answer, in the pieces in which they arrived."""

    __slots__ = ("_keep", "_pieces", "_size")

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._pieces: list[bytes] = []  # a deque takes 600 bytes more, for each stream
        self._size = 0

    def add(self, piece: bytes) -> None:
        """Add the next piece, and drop pieces that are too far back."""
        self._pieces.append(piece)
        self._size += len(piece)
        while self._pieces and self._size - len(self._pieces[0]) >= self._keep:
            self._size -= len(self._pieces.pop(0))

    def text(self) -> bytes:
        return b"".join(self._pieces)[-self._keep :] if self._keep else b""


class Relayed(msgspec.Struct, frozen=True):
    """How forwarding ended. ``tail`` is the kept end; ``broken`` means that the upstream broke off."""

    response: web.StreamResponse
    tail: bytes
    broken: bool = False


async def relay(request: web.BaseRequest, answer: Answer, extra: Mapping[str, str], *, keep: int = 0) -> Relayed:
    """Send the answer to the client: status, headers, the held bytes, and then each chunk as it arrives.

    A slow client slows the reading, because writing waits until its buffer drains. When the upstream breaks off, the
    client's connection is closed too, so that half an answer never looks complete. When the client leaves, this raises
    CancelledError or ConnectionResetError and the upstream's connection is closed. The last ``keep`` bytes are kept.
    """
    with answer:
        if answer.complete and request.method != "HEAD":
            mine = record.of(request)
            mine.answer_bytes = len(answer.held)
            headers, reason = _headers(mine, answer, extra), http.clean(answer.response.reason or "")
            return Relayed(whole(request, answer.status, reason, headers, answer.held), answer.held)
        response = await _begun(request, answer, extra)
        with streaming(request):
            return await _pump(request, answer, response, Tail(keep))


def _headers(mine: record.Record, answer: Answer, extra: Mapping[str, str]) -> CIMultiDict[str]:
    """Return the headers of the answer to the client."""
    headers = http.returned(answer.response.headers)
    mine.add_shared(headers)
    headers.update({name: value for name, value in extra.items() if name not in mine.shared} if mine.shared else extra)
    return headers


async def _begun(request: web.BaseRequest, answer: Answer, extra: Mapping[str, str]) -> web.StreamResponse:
    """Send the head of a stream. Nothing of it is kept meanwhile: a stream may take hours, and its headers take 3 KB."""
    headers, reason = _headers(record.of(request), answer, extra), http.clean(answer.response.reason or "")
    response = web.StreamResponse(status=answer.status, reason=reason, headers=headers)
    await response.prepare(request)
    response.headers.clear()
    return response


async def _pump(request: web.BaseRequest, answer: Answer, response: web.StreamResponse, tail: Tail) -> Relayed:
    upstream, known = answer.response, record.of(request)
    write = request.writer.write  # the response's own `write` only calls it
    if answer.held:
        tail.add(answer.held)
        known.answer_bytes = len(answer.held)
        await write(answer.held)
    try:
        while chunk := await upstream.next_piece():
            await write(chunk)
            tail.add(chunk)
            known.answer_bytes += len(chunk)
    except (AskFailed, TimeoutError):
        if request.transport is not None:
            request.transport.abort()
        return Relayed(response, tail.text(), broken=True)
    await response.write_eof()
    return Relayed(response, tail.text())


def worth_keeping(answer: Answer) -> int:
    """Return how many of an answer's last bytes are needed to read its usage."""
    return STREAM_TAIL if answer.is_stream else LONGEST_READ_ALONG


def usage_in(answer: Answer, tail: bytes, failed: Failed) -> Usage | None:
    """Return the billed tokens stated at the end of an answer; None without them, or after a bug in our reading."""
    if answer.status != 200:
        return None
    try:
        return _stream_usage(answer, tail) if answer.is_stream else _plain_usage(answer, tail)
    except Exception as error:  # noqa: BLE001  # promise 6: nothing after a good answer may spoil it
        failed("usage", error)
        return None


def _plain_usage(answer: Answer, tail: bytes) -> Usage | None:
    return answer.target.provider.read_usage(answer.text if answer.complete else readable(answer.response, tail))


def _stream_usage(answer: Answer, tail: bytes) -> Usage | None:
    text = readable(answer.response, tail) if len(tail) <= len(answer.held) else tail
    last = next(reversed(_usages(answer, text)), None)
    if not answer.format.usage_in_first_event:
        return last
    first = next(iter(_usages(answer, readable(answer.response, answer.held))), None)
    if first is None or last is None:
        return first or last
    return Usage(first.prompt, last.completion, first.cached, first.written)


def _usages(answer: Answer, text: bytes) -> list[Usage]:
    """Yield every usage in the events of a piece of a stream, in order."""
    if b'"usage"' not in text:
        return []
    events = Events()
    found = [*events.feed(text), *events.close()]
    return [usage for event in found if (usage := answer.target.provider.read_usage(event.data))]
