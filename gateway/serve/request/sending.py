"""Send an attempt to an upstream, and read the beginning of the answer."""

import time
from typing import Final

import structlog
from aiohttp import hdrs
from multidict import CIMultiDict

from gateway.context.life.attempt import Attempt
from gateway.context.life.events import Event, NoReply, ReplyCame
from gateway.context.life.replies import Refusal
from gateway.context.life.states import FAULT_STATUSES, Life, Ready
from gateway.observe.exchange import Call
from gateway.serve.answers.answer import peek
from gateway.serve.incoming.callers import is_credential
from gateway.serve.record import LONGEST_NAME
from gateway.serve.request.place import Place, place_at
from gateway.serve.request.served import ServedRequest
from gateway.upstream.client import UpstreamUnreachable

log = structlog.get_logger(__name__)

KEY_STATUSES: Final = frozenset({429})
"""Statuses about the quota of a key: the client's own, unless one is configured for the upstream."""


async def send(served: ServedRequest, state: Ready) -> Event:
    """Send the attempt, and read the answer far enough to recognise a refusal."""
    place, balance = place_at(state.visit), served.gateway.balance
    name, began = place.target.name, time.perf_counter()
    if name not in served.used:
        served.used.append(name)
        balance.began(name)
    client, format = served.gateway.client, state.life.conversation.format
    try:
        headers, body = _request_to(served, place, state.attempt, state.life)
        call = served.arrival.call(served.request, place.route.name)
        response = await client.send(place.target, call, headers, body)
        answer = await peek(place.target, response, format, served.gateway.failed)
    except UpstreamUnreachable as error:
        served.calls.append(call_of(state, 0, None, time.perf_counter() - began))
        balance.failed(place.owner)
        log.warning("upstream_failed", upstream=name, reason=str(error))
        return NoReply(error)
    served.opened.append(answer)
    reply = answer.reply()
    served.calls.append(call_of(state, reply.status, reply.refusal, time.perf_counter() - began))
    if reply.status in FAULT_STATUSES and reply.refusal is None:
        own_quota = reply.status in KEY_STATUSES and not place.target.endpoint.key
        balance.failed(place.owner, answer.retry_after_s(), own_quota=own_quota)
    else:
        balance.succeeded(place.owner)
    return ReplyCame(reply)


def call_of(state: Ready, status: int, refusal: Refusal | None, seconds: float = 0.0) -> Call:
    """Return the record of the call that sent an attempt."""
    place = place_at(state.visit)
    return Call(
        upstream=place.target.name,
        model=place.model[:LONGEST_NAME],
        status=status,
        sign=refusal.sign if refusal is not None else "",
        limit=refusal.numbers.limit if refusal is not None else None,
        tokens=state.attempt.prompt if state.visit.task is not None else None,
        rung=state.attempt.rung,
        seconds=seconds,
    )


def _request_to(served: ServedRequest, place: Place, attempt: Attempt, life: Life) -> tuple[CIMultiDict[str], bytes]:
    """Return the headers and the body of an attempt at its place."""
    headers = CIMultiDict(served.headers)
    if place.target.name not in dict(served.route.choices):
        # The client gave its key to the model it named, not to a model that replaces it.
        for name in [name for name in headers if is_credential(name)]:
            headers.popall(name, None)
    body = attempt.body
    if body is life.conversation.raw and not life.conversation.rewritten:
        body = served.raw  # unchanged, in its original encoding
    else:
        headers.popall(hdrs.CONTENT_ENCODING, None)
    if attempt.may_drop_thinking:
        for name, value in life.conversation.format.drop_thinking_headers.items():
            headers[name] = ",".join([*headers.popall(name, ()), value])
    return place.target.authorised(headers), body
