"""The table of transitions: each row is one test, in the order of the table, and no socket is needed for any of them."""

from dataclasses import dataclass
from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from gateway.context.count.counter import Counter
from gateway.context.cut.policy import Policy
from gateway.context.life.attempt import Attempt
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
from gateway.context.life.ladder import first_attempt
from gateway.context.life.replies import OutputLimit, Refusal, Reply, StatedNumbers
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
    replies_in,
)
from gateway.context.life.task import Task
from gateway.context.life.transitions import TABLE, NoTransition, advance, after_failed_transition
from gateway.context.write.draft import Draft, Step
from gateway.wire.chat import CHAT


@dataclass(frozen=True)
class Place:
    """A place as far as the table sees it."""

    model: str = "m"
    upstream: str = "u"
    window: int = 300
    max_retries: int = 3


FIRST, SECOND, LARGER = Place("m"), Place("m2"), Place("large", window=9000)
GOOD, BUSY, LONG, OUTPUT, EMPTY = (
    Reply(200),
    Reply(503),
    Reply(400, Refusal("too_long", StatedNumbers(limit=200, prompt=420))),
    Reply(400, Refusal("output", OutputLimit(10))),
    Reply(200, empty_stream=True),
)
ERROR = ConnectionError("refused")


def conversation(turns: int = 4, **fields: Any) -> Any:
    messages = [
        {"role": "user" if n % 2 == 0 else "assistant", "content": f"{n} " + "word " * 40} for n in range(2 * turns + 1)
    ]
    return CHAT.parse(orjson.dumps({"model": "m", "messages": messages, **fields}))


def task(asked: Any = None, window: int = 300) -> Task:
    asked = asked or conversation()
    counter = Counter(
        lambda message: 4 + len(str(message.get("content"))) // 4, lambda text: len(text) // 4, exact=True
    )
    return Task(
        conversation=asked, model="m", window=window, prompt=sum(map(counter.message, asked.messages)) + 10, fixed=10, margin=0,
        fold_margin=0, reserve=50, output_limit=None, min_output=20, counter=counter, policy=Policy(), plain_counter=counter, plain_fixed=10,
        configured_window=window, basis="exact",
    )  # fmt: skip


def life(mode: str = "enforce", **known: Any) -> Life:
    return Life(ASKED, mode, **known)  # type: ignore[arg-type]


ASKED = conversation()
TASK = task(ASKED)
FOLDED = first_attempt(TASK)
BROKEN = replace(FOLDED, steps=(Step("failed", 0, "KeyError"),))
AS_IT_CAME = Attempt(TASK.conversation.raw, TASK.prompt, 300)
COUNTED = Visit(FIRST, TASK)


def ready(mode: str = "enforce", visit: Visit = COUNTED, attempt: Attempt = FOLDED, **known: Any) -> Ready:
    return Ready(life(mode, calls=1, **known), visit, attempt)


def measured(mode: str = "enforce", **known: Any) -> Measured:
    return Measured(life(mode, **known), COUNTED)


def uncounted(**known: Any) -> Uncounted:
    return Uncounted(
        life(calls=1, **known), Visit(FIRST, fit_proven=True), replace(AS_IT_CAME, prompt=0), LONG, LONG.refusal
    )


def refused(mode: str = "enforce", reply: Reply = LONG, **known: Any) -> Refused:
    assert reply.refusal is not None
    return Refused(life(mode, calls=1, **known), COUNTED, FOLDED, reply, reply.refusal)


EARLIER = Answered(life(calls=1), COUNTED, FOLDED, BUSY)
PLACES = PlacesFound((FIRST, SECOND), (LARGER,))

# The row by its number in the table, the state, the event, and what must hold of the state that follows.
ROWS: list[tuple[State, Event, Any]] = [
    (Received(life()), PLACES, lambda to: to == Chosen(life(places=(SECOND,), larger=(LARGER,)), Visit(FIRST))),
    (Received(life()), PartFailed(), lambda to: to == PassedThrough(life())),
    (Chosen(life(), Visit(FIRST)), FitProven(), lambda to: as_it_came(to) and to.visit.fit_proven),
    (Chosen(life(), Visit(FIRST)), Counted(TASK), lambda to: to == measured()),
    (Chosen(life(), Visit(FIRST)), PartFailed(), lambda to: as_it_came(to) and to.visit.failed),
    (measured(), AttemptMade(BROKEN), lambda to: as_it_came(to) and to.visit.failed),
    (measured("observe"), AttemptMade(FOLDED), lambda to: as_it_came(to) and to.visit.planned is FOLDED),
    (measured(larger=(LARGER,)), AttemptMade(FOLDED, cannot_fit=True),
     lambda to: type(to) is Chosen and to.visit.place is LARGER and type(to.life.best_end) is TooLarge and to.life.tries_larger),
    (measured(), AttemptMade(FOLDED, cannot_fit=True), lambda to: type(to) is TooLarge and to.life.calls == 0),
    (measured(), AttemptMade(FOLDED), lambda to: to == ready()),
    (measured(), PartFailed(), lambda to: as_it_came(to) and to.attempt.prompt == TASK.prompt),
    (ready(), ReplyCame(GOOD), lambda to: type(to) is Answered and to.good),
    (ready("off", Visit(FIRST)), ReplyCame(LONG), lambda to: type(to) is Answered and to.life.refusals == ("too_long",)),
    (ready(visit=Visit(FIRST, fit_proven=True)), ReplyCame(LONG), lambda to: type(to) is Uncounted and to.reply is LONG),
    (ready(), ReplyCame(LONG), lambda to: type(to) is Refused and to.life.refusals == ("too_long",)),
    (ready(places=(SECOND,)), ReplyCame(BUSY),
     lambda to: type(to) is Chosen and to.visit.place is SECOND and to.life.best_end.reply is BUSY),
    (ready(best_end=EARLIER), ReplyCame(Reply(500)), lambda to: to == replace(EARLIER, life=to.life) and to.life.calls == 1),
    (ready(), ReplyCame(BUSY), lambda to: type(to) is Answered and to.reply is BUSY),
    (ready(places=(SECOND,)), NoReply(ERROR), lambda to: type(to) is Chosen and to.life.best_end is None),
    (ready(best_end=EARLIER), NoReply(ERROR), lambda to: type(to) is Answered and to.reply is BUSY),
    (ready(), NoReply(ERROR), lambda to: type(to) is Unreachable and to.error is ERROR),
    (uncounted(), Counted(TASK), lambda to: type(to) is Refused and to.attempt.prompt == TASK.prompt),
    (uncounted(larger=(LARGER,)), PartFailed(), lambda to: type(to) is Chosen and to.life.best_end.too_long),
    (uncounted(), PartFailed(), lambda to: type(to) is Answered and to.too_long and to.reply is LONG),
    (refused(larger=(LARGER,)), AttemptMade(None), lambda to: type(to) is Chosen and to.visit.place is LARGER),
    (refused(), AttemptMade(None), lambda to: type(to) is Answered and to.too_long and not to.good),
    (refused(), AttemptMade(FOLDED), lambda to: type(to) is Ready and to.life.calls == 2),
    (refused(larger=(LARGER,)), PartFailed(), lambda to: type(to) is Chosen and to.life.tries_larger),
    (refused(), PartFailed(), lambda to: type(to) is Answered and to.reply is LONG),
]  # fmt: skip


def as_it_came(state: State) -> bool:
    return isinstance(state, Ready) and state.attempt.body is state.life.conversation.raw and state.life.calls == 1


@pytest.mark.parametrize("number", range(len(TABLE)), ids=[row.name for row in TABLE])
def test_each_row_leads_to_its_state(number: int):
    state, event, follows = ROWS[number]
    row = next(
        row for row in TABLE if isinstance(state, row.state) and isinstance(event, row.event) and row.when(state, event)
    )
    assert row is TABLE[number]
    assert follows(advance(state, event))


def test_each_row_has_its_case():
    assert len(ROWS) == len(TABLE)


def test_an_event_that_cannot_come_is_a_bug():
    with pytest.raises(NoTransition, match="NoReply in Received"):
        advance(Received(life()), NoReply(ERROR))


# Stories of several rows.


def test_a_request_too_long_for_the_larger_model_too_ends_with_the_first_refusal():
    state = advance(refused(larger=(LARGER, LARGER)), AttemptMade(None))
    state = advance(advance(state, FitProven()), NoReply(ERROR))
    state = advance(advance(state, FitProven()), ReplyCame(LONG))
    state = advance(state, PartFailed())
    assert isinstance(state, Answered) and state.too_long and state.visit.place is FIRST and state.life.calls == 3


def test_a_request_that_no_larger_model_can_hold_ends_with_its_own_models_refusal():
    state = advance(refused(larger=(LARGER, Place("largest", window=9001))), AttemptMade(None))
    state = advance(advance(state, Counted(TASK)), AttemptMade(FOLDED, cannot_fit=True))
    assert state.life.best_end is not None and state.life.best_end.visit.place is FIRST
    state = advance(advance(state, FitProven()), NoReply(ERROR))
    assert isinstance(state, Answered) and state.too_long and state.visit.place is FIRST


@pytest.mark.parametrize("status", [401, 404])
def test_an_error_of_a_larger_model_is_not_the_clients_answer(status: int):
    state = advance(refused(larger=(LARGER,)), AttemptMade(None))
    state = advance(advance(state, FitProven()), ReplyCame(Reply(status)))
    assert isinstance(state, Answered) and state.too_long and state.reply is LONG


@pytest.mark.parametrize("trouble", [ReplyCame(BUSY), NoReply(ERROR)])
def test_in_mode_off_the_next_place_gets_the_clients_own_bytes(trouble: Event):
    state = advance(Received(life("off")), PLACES)
    for place in (FIRST, SECOND):
        assert isinstance(state, Ready) and state.attempt.draft is None
        assert state.attempt.body == ASKED.raw.replace(b'"model":"m"', b'"model":"%s"' % place.model.encode())
        state = advance(state, trouble)
    assert isinstance(state, (Answered, Unreachable))


def test_a_larger_model_that_answers_wins():
    state = advance(advance(measured(larger=(LARGER,)), AttemptMade(FOLDED, cannot_fit=True)), FitProven())
    state = advance(state, ReplyCame(GOOD))
    assert isinstance(state, Answered) and state.good and state.visit.place is LARGER


def test_nothing_smaller_is_made_in_observe_nor_beyond_the_retries():
    assert refused("observe").make_smaller_attempt() is None
    assert replace(refused(), life=life(calls=4)).make_smaller_attempt() is None
    assert refused().make_smaller_attempt() is not None


def test_an_output_refused_is_lowered_and_never_goes_to_a_larger_model():
    asked = replace(task(conversation(max_tokens=60)), output_limit=60)
    state = replace(
        refused(reply=OUTPUT, larger=(LARGER,)), visit=Visit(FIRST, asked), attempt=replace(FOLDED, prompt=100)
    )
    lowered = state.make_smaller_attempt()
    assert lowered is None or lowered.output is not None
    end = advance(state, AttemptMade(None))
    assert isinstance(end, Answered) and not end.too_long


@pytest.mark.parametrize(
    ("attempt", "is_refusal"),
    [(FOLDED, True), (replace(AS_IT_CAME, prompt=250), True), (replace(AS_IT_CAME, prompt=20), False)],
)
def test_an_empty_stream_is_a_refusal_where_the_prompt_is_folded_or_near_its_window(attempt: Attempt, is_refusal: bool):
    assert isinstance(advance(ready(attempt=attempt), ReplyCame(EMPTY)), Refused) is is_refusal


@pytest.mark.parametrize(("asked", "follows"), [({}, Refused), ({"max_tokens": 0}, Answered)])
def test_no_room_for_any_output_means_too_long_unless_none_was_asked_for(asked: dict[str, int], follows: type):
    reply = Reply(400, Refusal("zero", OutputLimit(0)))
    state = Ready(Life(conversation(**asked), "enforce", calls=1), COUNTED, FOLDED)
    assert isinstance(advance(state, ReplyCame(reply)), follows)


def test_whatever_fails_in_the_table_the_client_gets_the_answer_that_is_there():
    assert after_failed_transition(ready(), ReplyCame(GOOD)).reply is GOOD
    assert after_failed_transition(refused(), PartFailed()).reply is LONG
    assert after_failed_transition(ready(best_end=EARLIER), NoReply(ERROR)) is EARLIER
    assert after_failed_transition(measured(), PartFailed()) == PassedThrough(measured().life)


def test_only_answers_that_may_be_handed_on_are_kept_open():
    assert replies_in(ready(best_end=EARLIER)) == [BUSY]
    assert replies_in(refused(best_end=EARLIER)) == [LONG, BUSY]
    assert replies_in(ready()) == []


def test_a_fold_stands_in_the_draft_of_its_attempt():
    assert isinstance(FOLDED.draft, Draft) and FOLDED.turns_folded > 0
