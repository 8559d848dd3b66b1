"""The whole life of a request that may be folded, on one page: do the work of its state, and go to the next state."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final, assert_never, cast

from aiohttp import web

from gateway.context.life.events import Event
from gateway.context.life.states import (
    Answered,
    Ended,
    Life,
    PassedThrough,
    Ready,
    Received,
    State,
    TooLarge,
    Unreachable,
)
from gateway.context.life.transitions import advance, after_failed_transition
from gateway.observe.exchange import CLIENT_GONE
from gateway.serve import arrival as arrivals
from gateway.serve import key_limits, key_models
from gateway.serve import record as records
from gateway.serve.endpoints import compact
from gateway.serve.endpoints.passthrough import forward
from gateway.serve.gateway import Gateway, Setup
from gateway.serve.incoming.body import read
from gateway.serve.incoming.errors import OUR_FAULT, ClientError
from gateway.serve.request import finish, learn, summary, texts
from gateway.serve.request.conversation import conversation_in
from gateway.serve.request.decisions import DECISIONS
from gateway.serve.request.deployment import with_model
from gateway.serve.request.mode import mode_of
from gateway.serve.request.outcome import Delivery, Times
from gateway.serve.request.places import find_places
from gateway.serve.request.sending import send
from gateway.serve.request.served import ServedRequest, close_all, close_others, served_request
from gateway.state.threads import LARGE
from gateway.wire.format import Conversation, Format

WORK: Final[Mapping[type[Any], Callable[[ServedRequest, Any], Awaitable[Event]]]] = MappingProxyType(
    {Received: find_places, **DECISIONS, Ready: send}
)
"""The work in each state that is not final. It is a table, because comparing a state with one type after the other takes longer than the step."""


async def chat(gateway: Gateway, request: web.BaseRequest, format: Format) -> web.StreamResponse:
    """Serve a request at a path that may be folded. What cannot be folded goes to the endpoint that serves it."""
    arrival = arrivals.of(request)
    times = Times(arrived=arrival.started)
    setup = gateway.setup  # once: it is replaced when the configuration changes, and a request keeps its own
    raw = await read(request, setup.settings.server)
    times.read = time.perf_counter()
    if arrival.deployment:
        request, raw = await with_model(gateway, request, raw, arrival.deployment)
    conversation = await _parse(gateway, request, raw, format, setup)
    if conversation is None or not _has_upstream(setup, conversation):
        return await forward(gateway, request, raw)
    if arrival.key is not None:
        await key_models.check_conversation(gateway, request, conversation)
        await key_limits.reserve_for(gateway, arrival, conversation, setup.settings)
    if compact.wants_compaction(conversation):
        return await compact.compact_conversation(gateway, request, raw, conversation)
    served = served_request(gateway, setup, request, raw, conversation)
    return await _drive(served, Received(Life(conversation, mode_of(request, served.route))), times)


def _has_upstream(setup: Setup, conversation: Conversation) -> bool:
    """Return whether an upstream can be found for a request. If not, `forward` refuses it.

    A model that is not a text names none of several upstreams. An endpoint outside ``/v1`` is one that only some servers have.
    """
    has_unreadable_model = not conversation.model and "model" in conversation.head
    if has_unreadable_model and len(setup.targets) > 1:
        return False
    path = conversation.format.path
    if path.startswith("/v1/"):
        return True  # all upstreams have it, so no route is made
    return any(setup.targets[name].serves("POST", path) for name, _ in setup.settings.route(conversation.model).choices)


async def _drive(served: ServedRequest, received: Received, times: Times) -> web.StreamResponse:
    """Drive a request from state to state: do the work of its state, and look up the next one, until a final state. Then end it."""
    state: State = received
    try:
        is_slow = _advances_slowly(served, received.life.conversation)
        while (work := WORK.get(type(state))) is not None:
            event = await work(served, state)
            state = await _advance_in_thread(served, state, event) if is_slow else _advance(served, state, event)
            close_others(served, state)
            if not times.decided and type(state) is Ready:
                times.decided = time.perf_counter()
        ended = cast("Ended", state)
        times.first_byte = time.perf_counter()
        served.delivery = Delivery(finish.status_of(ended), CLIENT_GONE)
        response, served.delivery = await _end(served, ended)
        if isinstance(state, Answered) and state.good:
            summary.consider(served, state)
            if not state.reply.handle.complete:  # else it was learned from before it was sent
                served.delivery = await learn.learn_after_delivery(served, state)
        return response
    except (asyncio.CancelledError, ConnectionResetError):
        raise  # the client left, as `served.delivery` says
    except Exception:
        served.delivery = Delivery(OUR_FAULT.status, OUR_FAULT.code)
        raise
    finally:
        close_all(served)
        if type(state) is not PassedThrough:  # the entrance makes the record of a request that is passed through
            records.of(served.request).done = True
            finish.observe(served, state, times)
            texts.keep(served, state)


def _advances_slowly(served: ServedRequest, conversation: Conversation) -> bool:
    """Return whether the next state may take long: it writes the name of another model into a large body."""
    return len(conversation.raw) >= LARGE and served.route.name != conversation.model


async def _advance_in_thread(served: ServedRequest, state: State, event: Event) -> State:
    size_bytes = len(state.life.conversation.raw)
    return await served.gateway.threads.run(partial(_advance, served, state, event), size_bytes=size_bytes)


def _advance(served: ServedRequest, state: State, event: Event) -> State:
    """Look up the next state in the table."""
    try:
        return advance(state, event)
    except Exception as error:  # noqa: BLE001  # promise 6: a bug in the table never costs the client its answer
        served.gateway.failed("life", error)
        return after_failed_transition(state, event)


async def _parse(
    gateway: Gateway, request: web.BaseRequest, raw: bytes, format: Format, setup: Setup
) -> Conversation | None:
    """Parse the body; None if it is no conversation in this format, or if our own code fails. Raises ClientError."""
    try:
        return await conversation_in(gateway, setup, request, raw, format)
    except ClientError:
        raise
    except Exception as error:  # noqa: BLE001  # promise 6: it is passed through
        gateway.failed("body", error)
        return None


def _end(served: ServedRequest, state: Ended) -> Awaitable[tuple[web.StreamResponse, Delivery]]:
    """Give the client its answer."""
    match state:
        case Answered():
            return finish.forward_answer(served, state)
        case TooLarge():
            return finish.refuse_too_large(served, state)
        case Unreachable():
            return finish.report_unreachable(served, state)
        case PassedThrough():
            return _pass_through(served)
        case _:
            assert_never(state)


async def _pass_through(served: ServedRequest) -> tuple[web.StreamResponse, Delivery]:
    response = await forward(served.gateway, served.request, served.raw)
    records.of(served.request).why = "failed"
    return response, Delivery(response.status)
