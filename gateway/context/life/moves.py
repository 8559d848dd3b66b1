"""The steps of the table of transitions (`gateway.context.life.transitions`): each returns the state that follows.

Their names and the rows of the table say what each does.
"""

from msgspec.structs import replace

from gateway.context.life import ladder
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
from gateway.context.life.lessons import StatedWindow
from gateway.context.life.place import Place
from gateway.context.life.replies import Refusal, StatedNumbers
from gateway.context.life.states import (
    Answered,
    Chosen,
    Life,
    Measured,
    PassedThrough,
    Ready,
    Received,
    Refused,
    State,
    TooLarge,
    Uncounted,
    Unreachable,
    Visit,
    refusal_in,
)


def choose(state: Received, event: PlacesFound) -> State:
    life = Life(state.life.conversation, state.life.mode, event.places[1:], event.larger)  # nothing else is known yet
    return _at_place(life, event.places[0])


def pass_through(state: Received, event: PartFailed) -> State:
    return PassedThrough(state.life)


def send_proven(state: Chosen, event: FitProven) -> State:
    return _send_unchanged(state.life, Visit(state.visit.place, fit_proven=True))


def measure(state: Chosen, event: Counted) -> State:
    return Measured(state.life, replace(state.visit, task=event.task))


def send_despite_failure(state: Chosen | Measured, event: Event) -> State:
    return _send_unchanged(state.life, replace(state.visit, failed=True))


def send_and_report(state: Measured, event: AttemptMade) -> State:
    return _send_unchanged(state.life, replace(state.visit, planned=event.attempt))


def send(state: Measured | Refused, event: AttemptMade) -> State:
    assert event.attempt is not None
    visit = (
        replace(state.visit, limit_unknown=_limit_unknown(state, event)) if isinstance(state, Refused) else state.visit
    )
    return Ready(_one_more_call(state.life), visit, event.attempt)


def refuse(state: Measured, event: AttemptMade) -> State:
    assert event.attempt is not None
    return _or_earlier_end(TooLarge(state.life, state.visit, event.attempt))


def count_after_all(state: Ready, event: ReplyCame) -> State:
    refusal = refusal_in(state, event)
    assert refusal is not None
    return Uncounted(_one_more_refusal(state.life, refusal), state.visit, state.attempt, event.reply, refusal)


def take_refusal(state: Ready, event: ReplyCame) -> State:
    refusal = refusal_in(state, event)
    assert refusal is not None
    return Refused(_one_more_refusal(state.life, refusal), state.visit, state.attempt, event.reply, refusal)


def take_refusal_counted(state: Uncounted, event: Counted) -> State:
    attempt = replace(state.attempt, prompt=event.task.prompt)
    visit = replace(state.visit, task=event.task)
    return Refused(state.life, visit, attempt, state.reply, state.refusal)


def forward_answer(state: Ready, event: ReplyCame) -> State:
    refusal = refusal_in(state, event)
    life = _one_more_refusal(state.life, refusal) if refusal else state.life
    return Answered(life, state.visit, state.attempt, event.reply)


def forward_refusal(state: Uncounted | Refused, event: Event) -> State:
    return _or_earlier_end(
        Answered(state.life, state.visit, state.attempt, state.reply, too_long=state.refusal.too_long)
    )


def try_next_place(state: Ready, event: ReplyCame | NoReply) -> State:
    """Choose the next place; the first answer that came is kept, for the client if no later place does better."""
    life = state.life
    if isinstance(event, ReplyCame) and life.best_end is None:
        life = replace(life, best_end=Answered(life, state.visit, state.attempt, event.reply))
    return _next_place(life)


def try_larger(state: Measured | Uncounted | Refused, event: Event) -> State:
    """Choose the next larger model. The end that was reached without one is kept for the client, if no larger model does better."""
    if isinstance(state, Measured):
        assert isinstance(event, AttemptMade) and event.attempt is not None
        end: Answered | TooLarge = TooLarge(state.life, state.visit, event.attempt)
    else:
        end = Answered(state.life, state.visit, state.attempt, state.reply, too_long=True)
    # At a second larger model the end before the first one stays.
    best_end = state.life.best_end if state.life.tries_larger else end
    return _next_place(replace(state.life, best_end=best_end, tries_larger=True))


def end_with_earlier_answer(state: Ready, event: Event) -> State:
    assert state.life.best_end is not None
    return replace(state.life.best_end, life=state.life)


def give_up(state: Ready, event: NoReply) -> State:
    return Unreachable(state.life, state.visit, state.attempt, event.error)


def _next_place(life: Life) -> Chosen | Ready:
    """Choose the next of the places, or of the larger models once these are tried."""
    if life.tries_larger:
        return _at_place(replace(life, larger=life.larger[1:]), life.larger[0])
    return _at_place(replace(life, places=life.places[1:]), life.places[0])


def _at_place(life: Life, place: Place) -> Chosen | Ready:
    """Choose a place. In mode off nothing is counted: the request is sent there unchanged."""
    return _send_unchanged(life, Visit(place)) if life.mode == "off" else Chosen(life, Visit(place))


def _send_unchanged(life: Life, visit: Visit) -> Ready:
    """Return the state in which the client's own bytes are sent to the place of a visit."""
    prompt = visit.task.prompt if visit.task else 0
    attempt = ladder.unchanged_attempt(life.conversation, visit.place.model, visit.place.window, prompt)
    return Ready(_one_more_call(life), visit, attempt)


def _one_more_call(life: Life) -> Life:
    # All fields, because every request comes here and `replace` takes four times as long.
    return Life(
        life.conversation,
        life.mode,
        life.places,
        life.larger,
        life.calls + 1,
        life.refusals,
        life.best_end,
        life.tries_larger,
    )


def _one_more_refusal(life: Life, refusal: Refusal) -> Life:
    return replace(life, refusals=(*life.refusals, refusal.sign))


def _limit_unknown(state: Refused, event: AttemptMade) -> bool:
    """Return whether it is still unknown how much the upstream accepts: the refusal states no limit, or a limit that is not believed."""
    numbers = state.refusal.numbers
    if not isinstance(numbers, StatedNumbers):
        return state.visit.limit_unknown
    believed = any(isinstance(lesson, StatedWindow) for lesson in event.lessons)
    return numbers.limit is None or (numbers.limit < state.attempt.window and not believed)


def _or_earlier_end(end: Answered | TooLarge) -> Answered | TooLarge:
    """Return this end or, if only a larger model remained to be tried, the one before it."""
    return replace(end.life.best_end, life=end.life) if end.life.tries_larger and end.life.best_end else end
