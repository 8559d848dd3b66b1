"""The I/O of a client's request: find its places, send an attempt, close what is not forwarded.

A failure of our own is counted and logged, and becomes an event, so that the client is still served.
"""

import time
from functools import partial
from typing import Final

import msgspec
import structlog
from aiohttp import web
from multidict import CIMultiDict

from gateway.config import Route
from gateway.context.life.events import Event, NoReply, PartFailed, PlacesFound, ReplyCame
from gateway.context.life.replies import Refusal
from gateway.context.life.states import FAULT_STATUSES, Life, Ready, Received, State, replies_in
from gateway.context.life.task import Attempt
from gateway.context.life.transitions import advance, after_failed_transition
from gateway.observe.exchange import Call
from gateway.serve import keys
from gateway.serve import record as records
from gateway.serve.answers.answer import Answer, peek
from gateway.serve.gateway import Gateway, Setup
from gateway.serve.incoming.callers import Identity, is_credential
from gateway.serve.incoming.encoding import readable_encodings
from gateway.serve.record import LONGEST_NAME, Record
from gateway.serve.request import model_lists, places
from gateway.serve.request.contents import AttemptContents
from gateway.serve.request.outcome import Ending, Outcome
from gateway.serve.request.places import UNKNOWN, Place, larger_places, place_at, window_at
from gateway.serve.request.sessions import session_of
from gateway.upstream.client import Target, UpstreamUnreachable

log = structlog.get_logger(__name__)

SHORT_BODY: Final = 4096
"""Bytes. A body this short fits every server, so the window of a running server need not be read yet."""
KEY_STATUSES: Final = frozenset({429})
"""Statuses about the quota of one key: the upstream is then avoided for this key only."""


class ServedRequest(msgspec.Struct, eq=False):
    """A client's request while it is served: its bytes, the configuration at its start, and everything that was opened for it."""

    gateway: Gateway
    setup: Setup
    request: web.BaseRequest
    record: Record
    """Facts about the request for its record."""
    raw: bytes
    """The body in its original content encoding."""
    route: Route
    headers: CIMultiDict[str]
    """The client's headers for an upstream."""
    request_id: str
    opened: list[Answer] = []
    """Answers whose connections we still have to close."""
    calls: list[Call] = []
    """The calls to upstreams so far, for the record."""
    used: list[str] = []
    """Upstreams that count this request as running."""
    contents: AttemptContents | None = None
    """What the last attempt sends and leaves out, for the record."""
    outcome: Outcome | None = None
    """The outcome of the last state, once headers were made from it."""
    left: Ending | None = None
    """How the answer ended, if the client left while it was forwarded."""
    session: str = ""
    """The client's own name of the conversation; set by `find_places`."""

    def identity_at(self, target: Target) -> Identity:
        """Return the client's hashes at an upstream."""
        return self.record.identity_at(target, self.headers)


def served_request(gateway: Gateway, setup: Setup, request: web.BaseRequest, raw: bytes, model: str) -> ServedRequest:
    """Return a request at the beginning of its life."""
    headers = keys.forwarded(request)
    if "Accept-Encoding" in headers:
        headers["Accept-Encoding"] = readable_encodings(headers["Accept-Encoding"])
    record = records.of(request)
    request_id = record.request_id or gateway.request_id()
    return ServedRequest(gateway, setup, request, record, raw, setup.settings.route(model), headers, request_id)


async def find_places(served: ServedRequest, state: Received) -> Event:
    """Return the places to try in order; upstreams that failed lately come last. Facts about a model are fetched when they are due."""
    gateway, setup, route = served.gateway, served.setup, served.route
    try:
        for name, _ in route.choices:
            await _fetch_facts(served, setup.targets[name])
        served.session = session_of(served.headers, state.life.request.head)
        identify = served.identity_at
        found = places.places_for(
            gateway, setup, route, state.life.request, identify, key=_own_key(served), session=served.session
        )
        if len(found) > 1:
            found.sort(key=lambda place: gateway.balance.resting(place.target.name, _key_for(place)))
        return PlacesFound(tuple(found), tuple(larger_places(gateway, setup, route, identify)))
    except Exception as error:  # noqa: BLE001  # promise 6: the request is passed through
        gateway.failed("places", error)
        return PartFailed()


async def _fetch_facts(served: ServedRequest, target: Target) -> None:
    """Fetch what the store and the upstream's model list say about a model, where that is due."""
    learning = served.gateway.learning
    owner = target.name, served.route.name, served.identity_at(target).learner
    if learning.is_due(owner):
        await learning.fetch(owner)
    if learning.lists.is_due(target.name) and _needs_list(served, target):
        await model_lists.ask_windows(served.gateway, target, served.headers)


def _needs_list(served: ServedRequest, target: Target) -> bool:
    """Return whether an upstream's model list may tell more about the window or the vocabulary, and the request could be too
    long."""
    names_prove_nothing = not target.vendor and len(served.raw) > SHORT_BODY
    if served.route.window is not None:
        return names_prove_nothing and served.route.tokenizer == "auto" and len(served.raw) > served.route.window
    _, source = window_at(served.gateway, served.setup, served.route, target)
    return source in UNKNOWN or names_prove_nothing


def _own_key(served: ServedRequest) -> str:
    """Return the hash of the client's key at the model's own upstream. Empty if no choice of an upstream depends on it: there is
    only one, or the key is configured."""
    target = served.setup.targets[served.route.upstream]
    if len(served.route.choices) == 1 or target.endpoint.key:
        return ""
    return served.identity_at(target).key


def _key_for(place: Place) -> str:
    """Return the hash of the client's key if it is sent, because its quota is its owner's; empty when the key is
    configured."""
    return "" if place.target.endpoint.key else place.caller.key


async def send(served: ServedRequest, state: Ready) -> Event:
    """Send the attempt, and read the answer far enough to recognise a refusal."""
    place, balance = place_at(state.visit), served.gateway.balance
    name, key, began = place.target.name, _key_for(place), time.perf_counter()
    if name not in served.used:
        served.used.append(name)
        balance.began(name)
    try:
        answer = await _call_upstream(served, place, state.attempt, state.life)
    except UpstreamUnreachable as error:
        served.calls.append(_call_record(state, place, 0, None, began))
        balance.failed(name)
        log.warning("upstream_failed", upstream=name, reason=str(error))
        return NoReply(error)
    served.opened.append(answer)
    reply = answer.reply()
    served.calls.append(_call_record(state, place, reply.status, reply.refusal, began))
    if reply.status in FAULT_STATUSES and reply.refusal is None:
        balance.failed(name, answer.retry_after_s(), key if reply.status in KEY_STATUSES else "")
    else:
        balance.succeeded(name, key)
    return ReplyCame(reply)


def _call_record(state: Ready, place: Place, status: int, refusal: Refusal | None, began: float) -> Call:
    """Return the record of one call."""
    return Call(
        upstream=place.target.name,
        model=place.model[:LONGEST_NAME],
        status=status,
        sign=refusal.sign if refusal is not None else "",
        limit=refusal.numbers.limit if refusal is not None else None,
        tokens=state.attempt.prompt if state.visit.task is not None else None,
        rung=state.attempt.rung,
        seconds=time.perf_counter() - began,
    )


async def _call_upstream(served: ServedRequest, place: Place, attempt: Attempt, life: Life) -> Answer:
    """Send an attempt with the headers for its place, and return the start of the answer. Raises UpstreamUnreachable."""
    headers = CIMultiDict(served.headers)
    if place.target.name not in dict(served.route.choices):
        # The client gave its key to the model it named, not to a model that replaces it.
        for name in [name for name in headers if is_credential(name)]:
            headers.popall(name, None)
    body = attempt.body
    if body is life.request.raw and not life.request.rewritten:
        body = served.raw  # unchanged, in its original encoding
    else:
        headers.popall("Content-Encoding", None)
    if attempt.may_drop_thinking:
        for name, value in life.request.format.drop_thinking_headers.items():
            headers[name] = ",".join([*headers.popall(name, ()), value])
    headers = place.target.authorised(headers)
    call = served.record.call(served.request, place.route.name)
    response = await served.gateway.client.send(place.target, call, headers, body)
    return await peek(place.target, response, life.request.format, served.gateway.failed)


def next_state(served: ServedRequest, state: State, event: Event) -> State:
    """Return the next state, and close the connections of answers that will not be forwarded."""
    following = _advance(served, state, event)
    _close_others(served, following)
    return following


async def next_state_in_pool(served: ServedRequest, state: State, event: Event, size_bytes: int) -> State:
    """Like `next_state`, in the pool: writing another model's name into a body of so many bytes would delay the event loop."""
    work = partial(_advance, served, state, event)
    following = await served.gateway.pool.run(work, size_bytes=size_bytes)
    _close_others(served, following)
    return following


def _advance(served: ServedRequest, state: State, event: Event) -> State:
    """Look up the next state in the table."""
    try:
        return advance(state, event)
    except Exception as error:  # noqa: BLE001  # promise 6: a bug in the table never costs the client its answer
        served.gateway.failed("life", error)
        return after_failed_transition(state, event)


def close_all(served: ServedRequest) -> None:
    """Close the connections of all answers, and count the request as ended at every upstream it used."""
    for name in served.used:
        served.gateway.balance.ended(name)
    served.used.clear()
    for answer in served.opened:
        answer.drop()
    served.opened.clear()


def _close_others(served: ServedRequest, state: State) -> None:
    """Close the connections of all answers except those that a state may still forward."""
    if not served.opened:
        return
    kept = [reply.handle for reply in replies_in(state)]
    for answer in tuple(served.opened):
        if answer not in kept:
            answer.drop()
            served.opened.remove(answer)
