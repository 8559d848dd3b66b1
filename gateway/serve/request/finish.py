"""The end of a request: give the client an upstream's answer or our own, and make the record."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping

import structlog
from aiohttp import web

from gateway.context.life.states import Answered, Ended, PassedThrough, State, TooLarge, Unreachable, Visit
from gateway.observe.exchange import CLIENT_GONE, CLIENT_GONE_STATUS, Exchange
from gateway.serve import record as records
from gateway.serve.answers.answer import Answer, readable
from gateway.serve.answers.relay import relay, relay_whole
from gateway.serve.answers.tail import ends_in_error, has_last_event, tail_of, usage_in
from gateway.serve.incoming import errors
from gateway.serve.request import known_ids, outcome, summary
from gateway.serve.request.learn import learn
from gateway.serve.request.missing_endpoint import missing_endpoint_message, says_endpoint_missing
from gateway.serve.request.outcome import Delivery, Times, Traffic
from gateway.serve.request.place import place_at
from gateway.serve.request.served import ServedRequest
from gateway.upstream.client import UpstreamUnreachable

log = structlog.get_logger(__name__)

Forward = Callable[[ServedRequest, Answered], Awaitable[tuple[web.StreamResponse, Delivery]]]
"""Forwards an answer to the client; returns the response, and what the client got."""


def status_of(state: Ended) -> int:
    """Return the status that the client gets. Before a request is passed through it is unknown, and counts as a client that
    left."""
    match state:
        case Answered():
            return state.reply.status
        case TooLarge():
            return 400
        case Unreachable():
            return _unreachable(state).status
        case PassedThrough():
            return CLIENT_GONE_STATUS


def forward_answer(served: ServedRequest, state: Answered) -> Awaitable[tuple[web.StreamResponse, Delivery]]:
    """Forward an upstream's answer."""
    forward = _forward_whole if state.reply.handle.complete else _forward_arriving
    return (
        _remember_first(forward, served, state) if known_ids.may_have_new_ids(served, state) else forward(served, state)
    )


async def _remember_first(
    forward: Forward, served: ServedRequest, state: Answered
) -> tuple[web.StreamResponse, Delivery]:
    """Remember the ids in an answer, which only its upstream knows, and forward the answer."""
    await known_ids.remember_before_delivery(served, state)
    return await forward(served, state)


async def _forward_whole(served: ServedRequest, state: Answered) -> tuple[web.StreamResponse, Delivery]:
    """Forward an answer that has arrived completely. It is learned from first, so that its headers can carry a warning."""
    answer: Answer = state.reply.handle
    usage, warning = None, ""
    if state.good:
        usage = usage_in(answer, readable(answer.response, answer.held), served.gateway.failed)
        warning = await learn(served, state, usage)
    if usage is None and answer.is_web_page:
        log.warning("upstream_sent_web_page", request_id=served.request_id, upstream=state.visit.place.upstream,
                    status=answer.status, expected="JSON; check its base_url, which often ends in /v1")  # fmt: skip
    headers = headers_of(served, state, warning)
    if says_endpoint_missing(state.life.conversation.format, answer.status, answer.text):
        return _refuse_missing_endpoint(state, headers)
    response = relay_whole(served.request, answer, headers)
    return response, Delivery(answer.status, usage=usage, warning=warning)


async def _forward_arriving(served: ServedRequest, state: Answered) -> tuple[web.StreamResponse, Delivery]:
    """Forward an answer as it arrives. Its usage and an error are read from its last bytes."""
    answer: Answer = state.reply.handle
    tail = tail_of(answer)
    try:
        relayed = await relay(served.request, answer, headers_of(served, state), tail)
    except (asyncio.CancelledError, ConnectionResetError):
        served.delivery = _delivered_before_leaving(served, state, tail.text())
        raise
    if not state.good:
        return relayed.response, Delivery(answer.status, relayed.error)
    last_bytes, failed = tail.text(), served.gateway.failed
    known_ids.remember_after_delivery(served, state, last_bytes)
    usage, error = usage_in(answer, last_bytes, failed), relayed.error
    if not error and ends_in_error(answer, last_bytes, failed):
        error = "response_failed"
    return relayed.response, Delivery(answer.status, error, usage)


def _refuse_missing_endpoint(state: Answered, headers: Mapping[str, str]) -> tuple[web.StreamResponse, Delivery]:
    """Refuse a request whose API the upstream does not have."""
    format = state.life.conversation.format
    message = missing_endpoint_message(format, state.visit.place.upstream)
    refused = errors.ClientError(400, message, code="format_not_supported")
    response = errors.response(refused, {**headers, "x-turnfold-action": "error"}, format=format)
    return response, Delivery(400, refused.code)


def _delivered_before_leaving(served: ServedRequest, state: Answered, tail: bytes) -> Delivery:
    """Return what a client got that left. Many clients leave after the last event: then the answer is complete."""
    answer: Answer = state.reply.handle
    if not state.good:
        return Delivery(answer.status, CLIENT_GONE)
    usage = usage_in(answer, tail, served.gateway.failed)
    if not has_last_event(answer, tail, served.gateway.failed):
        return Delivery(answer.status, CLIENT_GONE, usage)
    known_ids.remember_after_delivery(served, state, tail)
    summary.consider(served, state)
    served.gateway.tasks.start(learn(served, state, usage), "learn", must_finish=True)
    return Delivery(answer.status, usage=usage)


async def refuse_too_large(served: ServedRequest, state: TooLarge) -> tuple[web.StreamResponse, Delivery]:
    """Refuse a request whose smallest form does not fit; the error states the sizes."""
    headers = headers_of(served, state)
    body = await served.gateway.threads.run(state.write_refusal, size_bytes=len(state.life.conversation.raw))
    response = web.Response(status=400, body=body, headers=headers, content_type=errors.JSON)
    return response, Delivery(400, "context_length_exceeded")


async def report_unreachable(served: ServedRequest, state: Unreachable) -> tuple[web.StreamResponse, Delivery]:
    """Tell the client that no upstream answered."""
    error = _unreachable(state)
    response = errors.response(error, headers_of(served, state), format=state.life.conversation.format)
    return response, Delivery(error.status, error.code)


def headers_of(served: ServedRequest, state: Ended, warning: str = "") -> Mapping[str, str]:
    """Return the headers that say what the gateway did; after a failure of our own, only the request's id."""
    try:
        served.outcome = outcome.of(state)
        return outcome.headers(served.outcome, served.request_id, warning)
    except Exception as error:  # noqa: BLE001  # promise 6
        served.gateway.failed("headers", error)
        return {"x-turnfold-request-id": served.request_id, "x-turnfold-action": "none"}


def observe(served: ServedRequest, state: State, times: Times) -> None:
    """Make the one record of the request and inform every observer."""
    traffic = _traffic(served, state)
    try:
        last_outcome = served.outcome  # the one that was made for the headers
        if last_outcome is None or last_outcome.state is not state:
            last_outcome = outcome.of(state)
        record = outcome.exchange(last_outcome, traffic, times, served.delivery)
    except Exception as error:  # noqa: BLE001  # promise 6
        served.gateway.failed("record", error)
        record = Exchange.passed(
            served.request_id, "failed", served.delivery.status, error=served.delivery.error, at=time.time(), client=traffic.client,
            key=traffic.key, method=traffic.method, path=traffic.path, calls=traffic.calls,
        )  # fmt: skip
    served.gateway.observe(record)


def _traffic(served: ServedRequest, state: State) -> Traffic:
    """Collect who sent a request, and the calls that were made for it."""
    request, arrival = served.request, served.arrival
    visit: Visit | None = getattr(state, "visit", None)
    if visit is not None:
        caller = place_at(visit).caller
    else:
        caller = served.identity_at(served.setup.targets[served.route.upstream])
    return Traffic(
        request_id=served.request_id,
        method=request.method,
        path=records.path_of(request),
        client=arrival.client,
        key=arrival.key.name if arrival.key is not None else "",
        session=served.session,
        caller=caller.key,
        answer_bytes=records.of(request).answer_bytes,
        calls=tuple(served.calls),
        contents=served.contents,
    )


def _unreachable(state: Unreachable) -> UpstreamUnreachable:
    assert isinstance(state.error, UpstreamUnreachable)
    return state.error
