"""The conditions of the table of transitions (`gateway.context.life.transitions`).

Words in their names:

- *off*, *observing*: modes.
- *uncounted*: the tokens of the request were not counted.
- *faulty*: the answer is an error that another place may not give. A *failure* is our own.
- *larger*: models with a larger window.
"""

from gateway.context.life.events import AttemptMade, Event, PartFailed, ReplyCame
from gateway.context.life.states import (
    FAULT_STATUSES,
    Measured,
    Ready,
    Refused,
    State,
    Uncounted,
    failure_in,
    refusal_in,
)


def always(state: State, event: Event) -> bool:
    return True


def observing(state: State, event: Event) -> bool:
    return state.life.mode == "observe"


def folding_failed(state: Measured, event: AttemptMade) -> bool:
    return event.attempt is None or failure_in(event.attempt) != ""


def cannot_fit(state: Measured, event: AttemptMade) -> bool:
    return event.cannot_fit


def cannot_fit_with_larger_left(state: Measured, event: AttemptMade) -> bool:
    return bool(state.life.larger) and cannot_fit(state, event)


def is_final_answer(state: Ready, event: ReplyCame) -> bool:
    """Most answers are final, so the table checks this first."""
    reply = event.reply
    return reply.refusal is None and not reply.empty_stream and not _faulty(state, event)


def _faulty(state: Ready, event: ReplyCame) -> bool:
    """Return whether another place may give a better answer. From a larger model, which the client did not name, this holds for every
    error: the refusal of the client's own model says more."""
    status = event.reply.status
    return status in FAULT_STATUSES or (status >= 400 and state.life.tries_larger)


def refused(state: Ready, event: ReplyCame) -> bool:
    return refusal_in(state, event) is not None


def refused_off(state: Ready, event: ReplyCame) -> bool:
    return state.life.mode == "off" and refused(state, event)


def refused_uncounted(state: Ready, event: ReplyCame) -> bool:
    return state.visit.task is None and refused(state, event)


def faulty_with_places_left(state: Ready, event: ReplyCame) -> bool:
    return _faulty(state, event) and places_left(state, event)


def faulty_with_earlier_answer(state: Ready, event: ReplyCame) -> bool:
    return _faulty(state, event) and earlier_answer(state, event)


def places_left(state: State, event: Event) -> bool:
    return bool(state.life.larger if state.life.tries_larger else state.life.places)


def earlier_answer(state: State, event: Event) -> bool:
    return state.life.best_end is not None


def nothing_smaller(state: Uncounted | Refused, event: AttemptMade | PartFailed) -> bool:
    return isinstance(event, PartFailed) or event.attempt is None


def nothing_smaller_with_larger_left(state: Uncounted | Refused, event: AttemptMade | PartFailed) -> bool:
    life = state.life
    return nothing_smaller(state, event) and state.refusal.too_long and life.mode == "enforce" and bool(life.larger)
