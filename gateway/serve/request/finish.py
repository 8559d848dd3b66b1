"""The end of a request: forward the answer to the client, and learn from it for the next request.

After a good answer, a failure in reading its usage, in learning or in requesting a summary is only logged: the client has
its answer.
"""

import asyncio
import time
from collections.abc import Awaitable, Mapping

import structlog
from aiohttp import web
from msgspec.structs import replace

from gateway.context.life.lessons import BilledPrompt, Learned
from gateway.context.life.states import Answered, Ended, PassedThrough, State, TooLarge, Unreachable, Visit
from gateway.observe.exchange import Exchange
from gateway.serve import record as records
from gateway.serve.answers.answer import Answer, readable
from gateway.serve.answers.relay import ends_in, ends_in_error, relay, tail_of, usage_in
from gateway.serve.incoming import errors
from gateway.serve.request import outcome, summary, uncounted_bill
from gateway.serve.request.missing_endpoint import missing_endpoint_message, says_endpoint_missing
from gateway.serve.request.outcome import Ending, Origin, Times
from gateway.serve.request.places import place_at
from gateway.serve.request.work import ServedRequest
from gateway.state.pool import INLINE
from gateway.upstream.client import UpstreamUnreachable
from providers.record import Usage

log = structlog.get_logger(__name__)


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
            return records.CLIENT_GONE


def forward_answer(served: ServedRequest, state: Answered) -> Awaitable[tuple[web.StreamResponse, Ending]]:
    """Forward an upstream's answer."""
    return _forward_whole(served, state) if state.reply.handle.complete else _forward_arriving(served, state)


async def _forward_whole(served: ServedRequest, state: Answered) -> tuple[web.StreamResponse, Ending]:
    """Forward an answer that has arrived completely. It is learned from first, so that its headers can carry a warning."""
    answer: Answer = state.reply.handle
    usage, warning = None, ""
    if state.good:
        usage = usage_in(answer, readable(answer.response, answer.held), served.gateway.failed)
        warning = await _learn(served, state, usage)
    if usage is None and answer.is_web_page:
        log.warning("upstream_sent_web_page", request_id=served.request_id, upstream=state.visit.place.upstream,
                    status=answer.status, expected="JSON; check its base_url, which often ends in /v1")  # fmt: skip
    headers = headers_of(served, state, warning)
    if says_endpoint_missing(state.life.request.format, answer.status, answer.text):
        return _refuse_missing_endpoint(state, headers)
    relayed = await relay(served.request, answer, headers)
    return relayed.response, Ending(answer.status, usage=usage, warning=warning, delivered=True)


async def _forward_arriving(served: ServedRequest, state: Answered) -> tuple[web.StreamResponse, Ending]:
    """Forward an answer as it arrives. Its usage and an error are read from its last bytes."""
    answer: Answer = state.reply.handle
    tail = tail_of(answer)
    try:
        relayed = await relay(served.request, answer, headers_of(served, state), tail)
    except (asyncio.CancelledError, ConnectionResetError):
        served.left = _ending_without_client(served, state, tail.text())
        raise
    if not state.good:
        return relayed.response, Ending(answer.status, relayed.error, delivered=True)
    last_bytes, failed = tail.text(), served.gateway.failed
    usage, error = usage_in(answer, last_bytes, failed), relayed.error
    if not error and ends_in_error(answer, last_bytes, failed):
        error = "response_failed"
    return relayed.response, Ending(answer.status, error, usage, delivered=True)


def _refuse_missing_endpoint(state: Answered, headers: Mapping[str, str]) -> tuple[web.StreamResponse, Ending]:
    """Refuse a request whose API the upstream does not have."""
    format = state.life.request.format
    message = missing_endpoint_message(format, state.visit.place.upstream)
    refused = errors.ClientError(400, message, code="format_not_supported")
    response = errors.response(refused, {**headers, "x-turnfold-action": "error"}, format=format)
    return response, Ending(400, refused.code)


def _ending_without_client(served: ServedRequest, state: Answered, tail: bytes) -> Ending:
    """Return how an answer ended if the client left. Many clients leave after the last event: then the answer is complete."""
    answer: Answer = state.reply.handle
    if not state.good:
        return Ending(answer.status, "client_gone")
    usage = usage_in(answer, tail, served.gateway.failed)
    if not ends_in(answer, tail, served.gateway.failed):
        return Ending(answer.status, "client_gone", usage)
    _consider_summary(served, state)
    served.gateway.tasks.start(_learn(served, state, usage), "learn", must_finish=True)
    return Ending(answer.status, usage=usage, delivered=True)


async def learn_after_delivery(served: ServedRequest, state: Answered, ending: Ending) -> Ending:
    """Learn from a delivered answer, and request a summary. This goes on if the client leaves meanwhile."""
    if not state.good:
        return ending
    _consider_summary(served, state)
    if state.reply.handle.complete:
        return ending  # already learned from before it was sent
    learning = served.gateway.tasks.start(_learn(served, state, ending.usage), "learn", must_finish=True)
    return ending if learning is None else replace(ending, warning=await asyncio.shield(learning))


async def refuse_too_large(served: ServedRequest, state: TooLarge) -> tuple[web.StreamResponse, Ending]:
    """Refuse a request whose smallest form does not fit; the error states the sizes."""
    headers = headers_of(served, state)
    body = await served.gateway.pool.run(state.refusal, size_bytes=len(state.life.request.raw))
    response = web.Response(status=400, body=body, headers=headers, content_type=errors.JSON)
    return response, Ending(400, "context_length_exceeded")


def report_unreachable(served: ServedRequest, state: Unreachable) -> tuple[web.StreamResponse, Ending]:
    """Tell the client that no upstream answered."""
    error = _unreachable(state)
    response = errors.response(error, headers_of(served, state), format=state.life.request.format)
    return response, Ending(error.status, error.code)


def headers_of(served: ServedRequest, state: Ended, warning: str = "") -> Mapping[str, str]:
    """Return the headers that say what the gateway did; after a failure of our own, only the request's id."""
    try:
        served.outcome = outcome.of(state)
        return outcome.headers(served.outcome, served.request_id, warning)
    except Exception as error:  # noqa: BLE001  # promise 6
        served.gateway.failed("headers", error)
        return {"x-turnfold-request-id": served.request_id, "x-turnfold-action": "none"}


def observe(served: ServedRequest, state: State, times: Times, ending: Ending) -> None:
    """Make the one record of the request and inform every observer."""
    origin = _origin(served, state)
    try:
        found = served.outcome  # made for the headers
        if found is None or found.state is not state:
            found = outcome.of(state)
        record = outcome.exchange(found, origin, times, ending)
    except Exception as error:  # noqa: BLE001  # promise 6
        served.gateway.failed("record", error)
        record = Exchange.passed(
            served.request_id, "failed", ending.status, error=ending.error, at=time.time(), client=origin.client,
            key=origin.key, method=origin.method, path=origin.path, calls=origin.calls,
        )  # fmt: skip
    served.gateway.observe(record)


def _origin(served: ServedRequest, state: State) -> Origin:
    """Collect where a request came from and where it went."""
    request, known = served.request, served.record
    visit: Visit | None = getattr(state, "visit", None)
    if visit is not None:
        caller = place_at(visit).caller
    else:
        caller = served.identity_at(served.setup.targets[served.route.upstream])
    return Origin(
        request_id=served.request_id,
        method=request.method,
        path=records.path_of(request),
        client=known.client,
        key=known.key.name if known.key is not None else "",
        session=served.session,
        caller=caller.key,
        answer_bytes=known.answer_bytes,
        calls=tuple(served.calls),
        contents=served.contents,
    )


def _unreachable(state: Unreachable) -> UpstreamUnreachable:
    assert isinstance(state.error, UpstreamUnreachable)
    return state.error


async def _learn(served: ServedRequest, state: Answered, usage: Usage | None) -> str:
    """Learn from an answer; return the warning that it causes, or an empty text."""
    gateway, size_bytes = served.gateway, len(state.life.request.raw)
    try:
        if size_bytes < INLINE or _is_quick(state, usage):
            learned = _learned(served, state, usage)
        else:
            learned = await gateway.pool.run(lambda: _learned(served, state, usage), size_bytes=size_bytes)
        gateway.learning.learn(learned.lessons, place_at(state.visit).caller.learner)
    except Exception as error:  # noqa: BLE001  # promise 6: nothing is learned from this answer
        gateway.failed("learning", error)
        return ""
    if learned.warning:
        log.warning("truncated_silently", request_id=served.request_id, upstream=state.visit.place.upstream,
                    told=learned.warning)  # fmt: skip
    return learned.warning


def _is_quick(state: Answered, usage: Usage | None) -> bool:
    """Return whether learning reads no messages: of an uncounted request, with an ordinary bill or none."""
    return state.visit.task is None and (
        usage is None
        or not uncounted_bill.needs_count(len(state.life.request.raw), BilledPrompt(usage.prompt, usage.cached))
    )


def _learned(served: ServedRequest, state: Answered, usage: Usage | None) -> Learned:
    bill = BilledPrompt(usage.prompt, usage.cached) if usage else None
    if not state.visit.fit_proven or state.visit.task is not None or bill is None:
        return state.lessons(bill)
    return uncounted_bill.learn(served.gateway, place_at(state.visit), state.life.request, bill)


def _consider_summary(served: ServedRequest, state: Answered) -> None:
    try:
        summary.request_if_needed(served.gateway, served.setup, state, served.headers)
    except Exception as error:  # noqa: BLE001  # promise 6: this conversation has no summary
        served.gateway.failed("summary", error)
