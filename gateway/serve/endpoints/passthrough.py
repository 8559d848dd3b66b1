"""Every other path and method under /v1: streamed through with its query, headers and status.

With one upstream no body is read. With several, the body is read to find its model and so its upstream. A body whose
model cannot be read is answered with 400, because the default upstream and its key may be the wrong ones.
"""

import asyncio
import time
from typing import Final, cast

import msgspec
from aiohttp import web
from multidict import CIMultiDict

from gateway.serve import keys
from gateway.serve import record as records
from gateway.serve.answers.answer import Answer
from gateway.serve.answers.relay import Tail, ends_in, relay, tail_of, usage_in
from gateway.serve.gateway import Gateway, Setup
from gateway.serve.incoming.body import READS_FASTER, decompress, read
from gateway.serve.incoming.errors import ClientError
from gateway.serve.incoming.limits import check_name
from gateway.serve.incoming.paths import known, models_in
from gateway.serve.record import Record
from gateway.upstream.client import Payload, UpstreamUnreachable, call_of
from gateway.wire.formats import format_of
from gateway.wire.model_name import NO_MODEL, model_in
from gateway.wire.splice import splice

WITHOUT_MODEL: Final = ("/v1/files", "/v1/uploads")
"""Endpoints whose bodies are files: they name no model and may be longer than server.max_body, so they stream to the
default upstream."""

COMPLETIONS: Final = "/v1/completions"
"""The endpoint that is passed through although a model writes its answer."""
SMALL_ANSWER: Final = 2**16
"""Bytes. Of a passed answer no longer than this the bill is read for the record: an embedding has 8 to 40 KB."""


async def forward(gateway: Gateway, request: web.BaseRequest, body: bytes | None = None) -> web.StreamResponse:
    """Forward a request unchanged, and its answer.

    Raises UpstreamUnreachable when no answer comes, ClientError when the upstream cannot be chosen. ``body`` is given
    when it was already read, and is not a chat request.
    """
    setup, record = gateway.setup, records.of(request)
    headers = keys.forwarded(request)
    if body is not None:
        readable = await gateway.pool.run(
            lambda: _is_json(request, body, gateway), size_bytes=len(body) // READS_FASTER
        )
        record.why = "not_understood" if readable else "not_json"
    elif not known(request.rel_url.raw_path):
        record.why = "unknown_endpoint"
    record.body_bytes = request.content_length or 0
    must_know_model = keys.must_know_model(setup, request)
    payload = await _payload(setup, request, headers, body, must_know_model=must_know_model)
    model = NO_MODEL
    if isinstance(payload, bytes):
        record.body_bytes = len(payload)
        model = await _model(gateway, request, payload) if must_know_model else NO_MODEL
        keys.check_model(request, model)
        payload = await _renamed(gateway, setup, model, payload) if model else payload
    await _reserve(gateway, request, record, setup.settings.default_window)
    target = setup.target_of(model or only_model(request))
    record.set_upstream(target, model, setup.settings.route(model).name if model else "", headers)
    call = call_of(request.method, request.rel_url, model)
    try:
        response = await gateway.client.send(target, call, target.authorised(headers), payload)
    except UpstreamUnreachable:
        if (broken := request.content.exception()) is not None:
            raise broken from None  # the client's body broke off
        record.add_call(0)
        raise
    with Answer(target, response) as answer:
        record.add_call(response.status)
        record.first_byte, record.stream = time.perf_counter(), answer.is_stream
        return await _relayed(gateway, request, answer, record)


async def _reserve(gateway: Gateway, request: web.BaseRequest, record: Record, window: int) -> None:
    """Reserve what the request may take of its key's tokens. Raises RateLimited."""
    path = request.rel_url.raw_path
    if request.method == "POST" and (path == COMPLETIONS or format_of(path) is not None):
        await keys.reserve(gateway, record, record.body_bytes, window, None)
    elif "json" in request.headers.get("Content-Type", "") and not path.startswith(WITHOUT_MODEL):
        await keys.reserve(gateway, record, record.body_bytes, window, 0)


def only_model(request: web.BaseRequest) -> str:
    """Return the model that a request's URL names, or "". Raises ClientError for a URL that names two."""
    named = models_in(request.rel_url)
    if len(named) > 1:
        message = "The URL names two models, so it is not clear which upstream it is for. Name one."
        raise ClientError(400, message, code="model_unreadable")
    return check_name(named.pop()) if named else NO_MODEL


async def _relayed(gateway: Gateway, request: web.BaseRequest, answer: Answer, record: Record) -> web.StreamResponse:
    limited = record.key is not None and record.key.tpm is not None
    tail = tail_of(answer) if limited else Tail(SMALL_ANSWER)
    try:
        relayed = await relay(request, answer, record.marks(gateway, "none"), tail)
    except (asyncio.CancelledError, ConnectionResetError):
        whole = ends_in(answer, tail.text(), gateway.failed)
        record.set_outcome(answer.status, "" if whole else "client_gone")
        raise
    finally:
        record.body_bytes = max(record.body_bytes, request.content.total_bytes)  # a body in chunks has no stated length
        if limited or record.answer_bytes <= SMALL_ANSWER:
            record.usage = usage_in(answer, tail.text(), gateway.failed)
    record.set_outcome(answer.status, relayed.error)
    return relayed.response


async def _payload(
    setup: Setup, request: web.BaseRequest, headers: CIMultiDict[str], body: bytes | None, *, must_know_model: bool
) -> Payload:
    """Return the body to send: whole if its model must be known, otherwise a stream of known length."""
    if body is not None or not request.can_read_body:
        return cast("Payload", body)
    if must_know_model and not request.rel_url.raw_path.startswith(WITHOUT_MODEL):
        limits = setup.settings.server
        return await read(request, limits)
    if request.content_length is not None:
        headers["Content-Length"] = str(request.content_length)
    return cast("Payload", request.content)


def _is_json(request: web.BaseRequest, body: bytes, gateway: Gateway) -> bool:
    try:
        msgspec.json.decode(decompress(request, body, gateway.settings.server.max_body), type=msgspec.Raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True


async def _model(gateway: Gateway, request: web.BaseRequest, body: bytes) -> str:
    """Return the model in a body, "" when it names none. Raises ClientError when it cannot be read."""
    kind = request.headers.get("Content-Type", "")

    def found() -> str | None:
        return model_in(decompress(request, body, gateway.settings.server.max_body), kind)

    model = await gateway.pool.run(found, size_bytes=len(body) // READS_FASTER)
    if model is None:
        raise ClientError(
            400,
            "The model that this body names cannot be read, so it is not clear which upstream it is for. "
            "Send JSON or a form with the field `model` as text, uncompressed or with gzip.",
            code="model_unreadable",
        )
    return check_name(model)


async def _renamed(gateway: Gateway, setup: Setup, model: str, body: bytes) -> bytes:
    """Insert the upstream's name of the model. A body that is not a whole JSON object keeps its bytes."""
    name = setup.settings.route(model).name
    if name == model:
        return body
    try:
        return await gateway.pool.run(lambda: splice(body, {"model": name}), size_bytes=len(body) // READS_FASTER)
    except (ValueError, RecursionError):
        return body
