"""The life of a request as one table: what follows when an event comes in a state.

The rules, which the table keeps:

1. A request that fits is sent unchanged. So is a request in mode ``off``, and a request for which a part of the gateway failed.
2. A refusal is followed by something strictly smaller, as often as the place allows; then by a model with a larger window, if one is named;
   then the client gets the upstream's own last refusal.
3. A place that is unreachable or in trouble is followed by the next place. If no place does better, the client gets the first answer that came.
4. Our own refusal goes out only where no form of the request can fit, and no upstream was asked.
5. Modes ``observe`` and ``off`` never change what is sent.

The first row whose condition holds is taken. Nothing here does I/O, and no state is ever changed.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from gateway.context.life import conditions as when
from gateway.context.life import moves as then
from gateway.context.life.events import (
    AttemptMade,
    Counted,
    Event,
    FitProven,
    NoReply,
    PartFailed,
    PlacesFound,
    ReplyCame,
)
from gateway.context.life.states import (
    Answered,
    Chosen,
    Measured,
    PassedThrough,
    Ready,
    Received,
    Refused,
    State,
    Uncounted,
)

When = Callable[[Any, Any], bool]
Then = Callable[[Any, Any], State]


class NoTransition(Exception):
    """The table has no row for an event in a state: a bug of our own."""


class Row(msgspec.Struct, frozen=True):
    """One transition: in this state, at this event, if the condition holds, the next state follows."""

    state: type[Any]
    event: type[Any]
    when: When
    then: Then

    @property
    def name(self) -> str:
        """The row's name in tests and messages."""
        return f"{self.state.__name__} + {self.event.__name__}, {self.when.__name__}: {self.then.__name__}"


TABLE: Final = (
    # The first attempt.
    Row(Received, PlacesFound, when.always, then.choose),
    Row(Received, PartFailed, when.always, then.pass_through),
    Row(Chosen, FitProven, when.always, then.send_proven),
    Row(Chosen, Counted, when.always, then.measure),
    Row(Chosen, PartFailed, when.always, then.send_despite_failure),
    Row(Measured, AttemptMade, when.folding_failed, then.send_despite_failure),
    Row(Measured, AttemptMade, when.observing, then.send_and_report),
    Row(Measured, AttemptMade, when.cannot_fit_with_larger_left, then.try_larger),
    Row(Measured, AttemptMade, when.cannot_fit, then.refuse),
    Row(Measured, AttemptMade, when.always, then.send),
    Row(Measured, PartFailed, when.always, then.send_despite_failure),
    # An answer.
    Row(Ready, ReplyCame, when.is_final_answer, then.forward_answer),
    Row(Ready, ReplyCame, when.refused_off, then.forward_answer),
    Row(Ready, ReplyCame, when.refused_uncounted, then.count_after_all),
    Row(Ready, ReplyCame, when.refused, then.take_refusal),
    Row(Ready, ReplyCame, when.faulty_with_places_left, then.try_next_place),
    Row(Ready, ReplyCame, when.faulty_with_earlier_answer, then.end_with_earlier_answer),
    Row(Ready, ReplyCame, when.always, then.forward_answer),
    # No answer.
    Row(Ready, NoReply, when.places_left, then.try_next_place),
    Row(Ready, NoReply, when.earlier_answer, then.end_with_earlier_answer),
    Row(Ready, NoReply, when.always, then.give_up),
    # A refusal.
    Row(Uncounted, Counted, when.always, then.take_refusal_counted),
    Row(Uncounted, PartFailed, when.nothing_smaller_with_larger_left, then.try_larger),
    Row(Uncounted, PartFailed, when.always, then.forward_refusal),
    Row(Refused, AttemptMade, when.nothing_smaller_with_larger_left, then.try_larger),
    Row(Refused, AttemptMade, when.nothing_smaller, then.forward_refusal),
    Row(Refused, AttemptMade, when.always, then.send),
    Row(Refused, PartFailed, when.nothing_smaller_with_larger_left, then.try_larger),
    Row(Refused, PartFailed, when.always, then.forward_refusal),
)


def _by_pair(table: tuple[Row, ...]) -> Mapping[tuple[type[Any], type[Any]], tuple[Row, ...]]:
    pairs = dict.fromkeys((row.state, row.event) for row in table)
    rows = {pair: tuple(row for row in table if (row.state, row.event) == pair) for pair in pairs}
    return MappingProxyType(rows)


_ROWS: Final = _by_pair(TABLE)


def advance(state: State, event: Event) -> State:
    """Return the state that follows an event. Raises NoTransition when the table has no row."""
    for row in _ROWS.get((type(state), type(event)), ()):
        if row.when is when.always or row.when(state, event):
            return row.then(state, event)
    raise NoTransition(f"{type(event).__name__} in {type(state).__name__}")


def after_failed_transition(state: State, event: Event) -> State:
    """Return the state after a failure of the table itself: the client gets an existing answer, else the request is
    passed through."""
    if isinstance(event, ReplyCame) and isinstance(state, Ready):
        return Answered(state.life, state.visit, state.attempt, event.reply)
    if isinstance(state, (Uncounted, Refused)):
        return Answered(state.life, state.visit, state.attempt, state.reply)
    return state.life.best_end or PassedThrough(state.life)
