"""The decisions about a request in its states that need no upstream: the same whether this process or Envoy sends it.

A failure of our own is counted and logged, and becomes an event, so that the client is still served.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import Any, Final, Protocol

import structlog

from gateway.context.life.attempt import Attempt
from gateway.context.life.events import FIT_PROVEN, AttemptMade, Counted, Event, PartFailed
from gateway.context.life.lessons import Lesson
from gateway.context.life.states import Chosen, Measured, Refused, State, Uncounted, failure_in
from gateway.context.life.task import Task
from gateway.context.life.transitions import advance
from gateway.serve.gateway import Gateway
from gateway.serve.request import measure, summary
from gateway.serve.request.contents import AttemptContents, contents_of
from gateway.serve.request.place import place_at
from gateway.state.threads import LARGE

log = structlog.get_logger(__name__)


class Decidable(Protocol):
    """The parts of a request that decisions need. Implemented for requests of clients, of sockets and of Envoy."""

    @property
    def gateway(self) -> Gateway:
        """Everything that the requests of this process share."""

    @property
    def request_id(self) -> str:
        """Its id in logs and records."""

    contents: AttemptContents | None


async def measure_request(served: Decidable, state: Chosen) -> Event:
    """Check whether the request fits by its size alone, a large one in a thread; else count it."""
    try:
        gateway, place, conversation = served.gateway, place_at(state.visit), state.life.conversation
        size_bytes = len(conversation.raw)
        if not measure.must_count(gateway, place) and (
            measure.fits_by_size(place, conversation)
            if size_bytes < LARGE
            else await gateway.threads.run(partial(measure.fits_by_size, place, conversation), size_bytes=size_bytes)
        ):
            return FIT_PROVEN
        task = await measure.task_for(gateway, place, conversation)
        return Counted(await summary.with_summary(gateway, place, task))
    except Exception as error:  # noqa: BLE001  # promise 6: the request is sent unchanged
        served.gateway.failed("fold", error)
        return PartFailed()


async def count_refused(served: Decidable, state: Uncounted) -> Event:
    """Count a request that was refused although its size seemed to prove that it fits."""
    try:
        return Counted(await measure.task_for(served.gateway, place_at(state.visit), state.life.conversation))
    except Exception as error:  # noqa: BLE001  # promise 6: the client still gets the upstream's own answer
        served.gateway.failed("ladder", error)
        return PartFailed()


async def make_first_attempt(served: Decidable, state: Measured) -> Event:
    """Make the first attempt: in a thread if the conversation is long."""
    gateway = served.gateway
    try:
        made = await gateway.threads.run(
            lambda: _make_first(served, state), size_bytes=len(state.life.conversation.raw)
        )
    except Exception as error:  # noqa: BLE001  # promise 6: a bug of ours never costs the client its answer
        gateway.failed("fold", error)
        return PartFailed()
    if made.attempt is not None and (failure := failure_in(made.attempt)):
        gateway.degraded("fold", failure, "gateway.context")
    return made


async def make_smaller_attempt(served: Decidable, state: Refused) -> Event:
    """Learn from the refusal and make a smaller attempt."""
    gateway, size_bytes = served.gateway, len(state.life.conversation.raw)
    log.info("attempt_refused", request_id=served.request_id, upstream=state.visit.place.upstream, sign=state.refusal.sign,
             limit=state.refusal.numbers.limit, rung=state.attempt.rung, prompt=state.attempt.prompt)  # fmt: skip
    learned: tuple[Lesson, ...] = ()
    try:
        learned = await gateway.threads.run(state.find_lessons, size_bytes=size_bytes)
        gateway.learning.learn(learned, place_at(state.visit).caller.learner)
    except Exception as error:  # noqa: BLE001  # promise 6: nothing is learned from this refusal
        gateway.failed("learning", error)
    try:
        attempt = await gateway.threads.run(lambda: _make_smaller(served, state), size_bytes=size_bytes)
        return AttemptMade(attempt, lessons=learned)
    except Exception as error:  # noqa: BLE001  # promise 6: the client still gets the upstream's own answer
        gateway.failed("ladder", error)
        return PartFailed()


def _make_first(served: Decidable, state: Measured) -> AttemptMade:
    """Make the first attempt, and keep its contents. Slow for a long conversation."""
    made = state.make_first_attempt()
    _keep_contents(served, state.visit.counted, made.attempt)
    return made


def _make_smaller(served: Decidable, state: Refused) -> Attempt | None:
    """Make a smaller attempt after a refusal, and keep its contents. Slow for a long conversation."""
    attempt = state.make_smaller_attempt()
    _keep_contents(served, state.visit.counted, attempt)
    return attempt


def _keep_contents(served: Decidable, task: Task, attempt: Attempt | None) -> None:
    """Keep the contents of an attempt for the record. A failure is ignored here: the record tries again, and counts it."""
    if attempt is not None:
        with suppress(Exception):
            served.contents = contents_of(task, attempt)


Decisions = Mapping[type[Any], Callable[[Any, Any], Awaitable[Event]]]
"""The work in some states, by their type."""

DECISIONS: Final[Decisions] = MappingProxyType(
    {
        Chosen: measure_request,
        Measured: make_first_attempt,
        Uncounted: count_refused,
        Refused: make_smaller_attempt,
    }
)
"""The work in each state that needs no upstream."""


async def run_decisions(served: Decidable, state: State, decisions: Decisions = DECISIONS) -> State:
    """Go from state to state until one has no decision: the request can be sent, or has ended."""
    while (decide := decisions.get(type(state))) is not None:
        event = await decide(served, state)
        # Writing another model's name into a large body would delay the event loop.
        size_bytes = len(state.life.conversation.raw)
        state = await served.gateway.threads.run(
            partial(advance, state, event), size_bytes=size_bytes if size_bytes >= LARGE else 0
        )
    return state
