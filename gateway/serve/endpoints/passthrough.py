"""Every other path and method: under /v1, and the own endpoints of self-hosted servers. Streamed through with its query, headers and status.

With one upstream a body is read only if some model has another name there. With several, the body is read to find its model and so its
upstream. A body whose model cannot be read is answered with 400, because the default upstream and its key may be the wrong ones.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

import msgspec
from aiohttp import web
from msgspec.structs import replace
from multidict import CIMultiDict

from gateway.observe.exchange import CLIENT_GONE
from gateway.serve import arrival as arrivals
from gateway.serve import key_limits, key_models, keys
from gateway.serve import record as records
from gateway.serve.answers.answer import Answer
from gateway.serve.answers.relay import relay
from gateway.serve.answers.tail import STREAM_TAIL, Tail, has_last_event, tail_of, usage_in
from gateway.serve.endpoints import kept
from gateway.serve.endpoints.kept import Destinations
from gateway.serve.endpoints.named_model import aliased_model, find_in_body, model_of_body, model_of_url, unclear
from gateway.serve.gateway import Gateway, Setup
from gateway.serve.incoming.body import decompress, read, read_ahead, reading_size
from gateway.serve.incoming.errors import ClientError
from gateway.serve.incoming.paths import CLIENT_SECRETS, LISTS, REALTIME, known, native_providers, query_for
from gateway.serve.record import Record
from gateway.serve.request.deployment import (
    is_multipart,
    path_decides,
    renamed,
    renamed_session,
    takes_model,
    with_model,
)
from gateway.state.rates import writes_text
from gateway.upstream.client import Target, UpstreamCall, UpstreamUnreachable
from gateway.upstream.sending import Body
from gateway.wire.formats import format_of
from gateway.wire.model_name import NO_MODEL, other_models
from providers.native import BILLED, FIRST_END
from providers.native import read_usage as read_native_usage
from providers.record import Usage

WITHOUT_MODEL: Final = ("/v1/files", "/v1/uploads")
"""Endpoints whose bodies are files: they name no model and may be longer than server.max_body, so they stream to the
default upstream."""

SMALL_ANSWER: Final = 2**16
"""Bytes. Of a passed answer no longer than this the bill is read for the record: an embedding has 8 to 40 KB."""


async def forward(gateway: Gateway, request: web.BaseRequest, body: bytes | None = None) -> web.StreamResponse:
    """Forward a request unchanged, and its answer.

    Raises UpstreamUnreachable when no answer comes, ClientError when the upstream cannot be chosen. ``body`` is given
    when it was already read, and is not a chat request.
    """
    setup, record = gateway.setup, records.of(request)
    await _set_why(gateway, request, body)
    key_models.check_batch(request)
    record.body_bytes = request.content_length or 0
    named = await _read_models(gateway, request, body)
    request, payload, model = named.request, named.payload, named.body_model or named.url_model
    destinations = await kept.destinations_of(gateway, setup, request, model)
    target, name = destinations.targets[0], setup.settings.route(model).name if model else NO_MODEL
    _check_endpoint(request, target)
    path = request.rel_url.raw_path
    if isinstance(payload, bytes) and setup.has_aliases and path.startswith(REALTIME):
        request, payload = await renamed_session(gateway, setup, request, payload, target)
    if isinstance(payload, bytes) and named.body_model and name != model and path != CLIENT_SECRETS:
        request, payload = await renamed(gateway, request, payload, name)
    await _reserve(gateway, request, record.body_bytes, setup.settings.default_window)
    call = record.arrival.call(request, name)
    if name != model and named.url_model == model:
        call = replace(call, query=query_for(call.query, name))
    sending = _Sending(gateway, request, payload, model, call)
    with await _ask(sending, destinations.targets) as answer:
        record.first_byte, record.stream = time.perf_counter(), answer.is_stream or answer.is_in_lines
        return await _relayed(gateway, request, answer, record, destinations)


class _Sending(NamedTuple):
    """A request to be passed through, ready for any upstream that may get it."""

    gateway: Gateway
    request: web.BaseRequest
    payload: Body
    model: str
    """The client's name of the model."""
    call: UpstreamCall


async def _ask(sending: _Sending, targets: Sequence[Target]) -> Answer:
    """Send a request to the first of these upstreams; if it does not know what the request names, to the next. Return the first answer of
    success, else the first answer. Raises UpstreamUnreachable when the first upstream sends none."""
    first = await _send(sending, targets[0])
    if first.status != kept.MISSING or len(targets) == 1:
        return first
    try:
        for target in targets[1:]:
            with suppress(UpstreamUnreachable):
                answer = await _send(sending, target)
                if answer.status < 400:
                    first.drop()
                    return answer
                answer.drop()
    except BaseException:
        first.drop()
        raise
    _set_upstream(sending, first.target)
    return first


async def _send(sending: _Sending, target: Target) -> Answer:
    """Send a request to an upstream; return the start of its answer. Raises UpstreamUnreachable when none comes."""
    request, payload, record = sending.request, sending.payload, records.of(sending.request)
    headers = _set_upstream(sending, target)
    if payload is not None and not isinstance(payload, bytes) and request.content_length is not None:
        headers["Content-Length"] = str(request.content_length)
    try:
        response = await sending.gateway.client.send(target, sending.call, target.authorised(headers), payload)
    except UpstreamUnreachable:
        if (broken := request.content.exception()) is not None:
            raise broken from None  # the client's body broke off
        record.add_call(0)
        raise
    record.add_call(response.status)
    return Answer(target, response)


def _set_upstream(sending: _Sending, target: Target) -> CIMultiDict[str]:
    """Set the upstream of a request in its record; return the client's headers for it."""
    headers, record = keys.forwarded(sending.request), records.of(sending.request)
    record.set_upstream(target, sending.model, sending.call.model, headers)
    return headers


class _Named(NamedTuple):
    """A request, its body, and the models that it names."""

    request: web.BaseRequest
    payload: Body
    body_model: str
    url_model: str


async def _read_models(gateway: Gateway, request: web.BaseRequest, body: bytes | None) -> _Named:
    """Read the models that a request names, as far as they must be known. Raises ClientError when the key is not for them.

    A model is named by a deployment in the path, by the URL's query, or in the body:

    - A deployment decides: it is written into the body where that is possible.
    - If the model decides the upstream or whether the key is for it, the body is read. It may not name another one than the URL.
    - If the default upstream has the model in its URLs, the body is read for it.
    - If only some model has another name at its upstream, the body is read for that name, where it can be.
    - In all other cases no model is read from the body.
    """
    setup, arrival = gateway.setup, arrivals.of(request)
    url_model, must_know_model = model_of_url(setup, request), key_models.must_know_model(setup, request)
    payload = await _body_to_send(setup, request, body, must_know_model=must_know_model)
    if not isinstance(payload, bytes):
        if url_model or _shows_models(request):
            key_models.check_model(request, url_model)
        return _Named(request, payload, NO_MODEL, url_model)
    records.of(request).body_bytes = len(payload)
    body_model = NO_MODEL
    if arrival.deployment and takes_model(request):
        body_model = arrival.deployment
        request, payload = await with_model(gateway, request, payload, body_model)
    if arrival.deployment and path_decides(gateway, request, arrival.deployment):
        return _Named(request, payload, body_model, url_model)
    if must_know_model or (_default_has_model_in_url(setup) and not url_model):
        body_model = await model_of_body(gateway, request, payload)
    elif setup.has_aliases and not body_model:
        body_model = await aliased_model(setup, gateway, request, payload)
    if must_know_model and url_model and body_model not in (NO_MODEL, url_model):
        raise unclear("The URL and the body name two models")
    key_models.check_model(request, body_model)
    if key_models.is_restricted(request):
        key_models.check_models(request, await find_in_body(gateway, request, payload, other_models))
    return _Named(request, payload, body_model, url_model)


async def _set_why(gateway: Gateway, request: web.BaseRequest, body: bytes | None) -> None:
    """Set the reason why a request is passed through. ``body`` is that of a request that is not understood."""
    record = records.of(request)
    if body is not None:
        readable = await gateway.threads.run(
            lambda: _is_json(request, body, gateway), size_bytes=reading_size(request, body)
        )
        record.why = "not_understood" if readable else "not_json"
    elif _is_below_v1(request) and not known(request.rel_url.raw_path):
        record.why = "unknown_endpoint"


def _is_below_v1(request: web.BaseRequest) -> bool:
    return request.rel_url.raw_path.startswith("/v1/")


def _shows_models(request: web.BaseRequest) -> bool:
    """Return whether an endpoint may show models without being asked for one: then it is not for a key that is held to some."""
    return not _is_below_v1(request) or request.rel_url.raw_path.rstrip("/").lower() in LISTS


def _default_has_model_in_url(setup: Setup) -> bool:
    """Return whether the default upstream has the model in its URLs."""
    return setup.targets[setup.settings.default_upstream].model_in_url


def _check_endpoint(request: web.BaseRequest, target: Target) -> None:
    """Refuse an endpoint of another kind of server than the upstream. Raises ClientError."""
    path = request.rel_url.raw_path
    if not _is_below_v1(request) and not target.has_native(request.method, path):
        having = native_providers(request.method, path)
        message = (
            f"Nothing is served at {request.method} {path}: upstreams.{target.name} has provider {target.provider.name}. "
            f"This endpoint needs an upstream with provider {' or '.join(having)}."
        )
        raise ClientError(404, message, code="not_found")


async def _reserve(gateway: Gateway, request: web.BaseRequest, body_bytes: int, window: int) -> None:
    """Reserve what the request may take of its key's tokens. Raises RateLimited."""
    path, arrival = request.rel_url.raw_path, arrivals.of(request)
    if request.method == "POST" and (writes_text(path) or format_of(path) is not None):
        await key_limits.reserve(gateway, arrival, body_bytes, window, None)
    elif _is_declared_json(request) and not path.startswith(WITHOUT_MODEL):
        await key_limits.reserve(gateway, arrival, body_bytes, window, 0)


def _is_declared_json(request: web.BaseRequest) -> bool:
    """Return whether a client says that its body is JSON."""
    return "json" in request.headers.get("Content-Type", "").lower()


async def _relayed(
    gateway: Gateway, request: web.BaseRequest, answer: Answer, record: Record, destinations: Destinations
) -> web.StreamResponse:
    limited = key_limits.limits_tokens(record.arrival)
    tail = _tail(request, answer) if limited else Tail(SMALL_ANSWER)
    try:
        relayed = await relay(request, answer, record.own_headers(gateway, "none"), tail)
    except (asyncio.CancelledError, ConnectionResetError):
        whole = has_last_event(answer, tail.text(), gateway.failed)
        record.set_outcome(answer.status, "" if whole else CLIENT_GONE)
        raise
    finally:
        record.body_bytes = max(record.body_bytes, request.content.total_bytes)  # a body in chunks has no stated length
        if limited or record.answer_bytes <= SMALL_ANSWER:
            record.usage = _usage(gateway, request, answer, tail.text())
    record.set_outcome(answer.status, relayed.error)
    kept.remember(gateway, request, destinations, answer, tail.text())
    return relayed.response


def _tail(request: web.BaseRequest, answer: Answer) -> Tail:
    """Return an empty tail that will keep the bill of an answer."""
    if answer.is_stream and request.rel_url.raw_path in BILLED:
        return Tail(STREAM_TAIL, FIRST_END)
    return tail_of(answer)


def _usage(gateway: Gateway, request: web.BaseRequest, answer: Answer, tail: bytes) -> Usage | None:
    """Return the bill at the end of an answer; None without one."""
    if answer.status == 200 and request.rel_url.raw_path in BILLED:
        return read_native_usage(tail, answer.response.headers)
    return usage_in(answer, tail, gateway.failed)


async def _body_to_send(setup: Setup, request: web.BaseRequest, body: bytes | None, *, must_know_model: bool) -> Body:
    """Return the body to send: whole if its model must be known or may have to be written, otherwise a stream."""
    if body is not None or not request.can_read_body:
        return body
    limits = setup.settings.server
    if request.rel_url.raw_path.startswith(WITHOUT_MODEL):
        return request.content
    if _must_be_read(setup, request, must_know_model=must_know_model):
        return await read(request, limits)
    if setup.has_aliases and not arrivals.of(request).deployment and (request.content_length or 0) <= limits.max_body:
        return await read_ahead(request, limits)
    return request.content


def _must_be_read(setup: Setup, request: web.BaseRequest, *, must_know_model: bool) -> bool:
    """Return whether a body must be read: its size or its model must be known, or a model written into it or into the upstream's URL."""
    if must_know_model or _hides_size(request):
        return True
    if deployment := arrivals.of(request).deployment:
        return takes_model(request) and not (is_multipart(request) and setup.target_of(deployment).model_in_url)
    return _default_has_model_in_url(setup)


def _hides_size(request: web.BaseRequest) -> bool:
    """Return whether only reading a prompt tells what it takes of its key's limit of tokens, because it comes in chunks."""
    return (
        request.method == "POST"
        and request.content_length is None
        and (writes_text(request.rel_url.raw_path) or _is_declared_json(request))
        and key_limits.limits_tokens(arrivals.of(request))
    )


def _is_json(request: web.BaseRequest, body: bytes, gateway: Gateway) -> bool:
    try:
        msgspec.json.decode(decompress(request, body, gateway.settings.server.max_body), type=msgspec.Raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True
