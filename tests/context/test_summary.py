"""When a summary is wanted, and that growth towards the cut does not change which."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.context.summary import Standing, wanted
from gateway.context.turns import split

Message = dict[str, Any]
AT = 0.7


def talk(turns: int) -> list[Message]:
    system: Message = {"role": "system", "content": "Be brief."}
    return [system, *(each for _ in range(turns) for each in ({"role": "user"}, {"role": "assistant"}))]


def agent(steps: int) -> list[Message]:
    """One question, then calls and results without end."""
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    one: list[Message] = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c"}]
    return [{"role": "user", "content": "mend it"}, *(message for _ in range(steps) for message in one)]


def ask(
    messages: Sequence[Message],
    *,
    room: int = 1000,
    cost: int = 50,
    cut: int = 0,
    covered: int = 0,
    sent: int | None = None,
) -> int | None:
    costs = [cost] * len(messages)
    standing = Standing(costs, sum(costs) if sent is None else sent, room, going=350, cut=cut, covered=covered)
    return wanted(split(messages), standing, AT)


def test_below_the_share_nothing_is_wanted() -> None:
    assert ask(talk(6), room=1000) is None


def test_past_the_share_the_turns_that_will_surely_go_are_wanted() -> None:
    # 350 tokens will go: three turns of 100, not the half of the fourth; the system message stands and does not count.
    assert ask(talk(7)) == 7


def test_the_wish_stays_the_same_while_the_conversation_grows_towards_the_cut() -> None:
    assert {ask(talk(turns)) for turns in (7, 8, 9, 10)} == {7}


def test_what_is_covered_is_not_wanted_again() -> None:
    assert ask(talk(8), covered=7) is None


def test_after_a_cut_the_next_one_is_foretold_from_there() -> None:
    # Messages 0 to 8 are folded and all but a turn of them covered; from message 9 on three turns more will go.
    assert ask(talk(14), cut=9, covered=7, sent=800) == 15


def test_what_was_folded_without_a_summary_comes_first() -> None:
    assert ask(talk(60), cut=101, sent=800) == 101


def test_in_one_endless_turn_whole_steps_are_wanted() -> None:
    # The question and three steps are 350 tokens.
    assert ask(agent(10)) == 7


def test_a_single_turn_without_steps_has_no_place_to_end() -> None:
    assert ask([{"role": "user"}, {"role": "assistant"}], cost=400) is None
    assert ask([]) is None


def test_without_room_nothing_is_wanted() -> None:
    assert ask(talk(7), room=0) is None
    assert ask(talk(7), room=-5) is None


@given(
    messages=st.lists(st.fixed_dictionaries({"role": st.sampled_from(["system", "user", "assistant", "tool"])}), max_size=40),
    data=st.data(),
)  # fmt: skip
def test_a_summary_never_ends_inside_a_step_nor_behind_the_last_message(
    messages: list[Message], data: st.DataObject
) -> None:
    costs = data.draw(st.lists(st.integers(0, 500), min_size=len(messages), max_size=len(messages)))
    cut = data.draw(st.integers(0, len(messages)))
    covered = data.draw(st.integers(0, cut))
    room, going = data.draw(st.integers(1, 4000)), data.draw(st.integers(0, 2000))
    end = wanted(split(messages), Standing(costs, sum(costs), room, going, cut, covered), AT)
    if end is not None and end != cut:
        assert covered < end < len(messages)
        starts = {turn.indices[0] for turn in split(messages).turns}
        assert end in starts | {step[0] for turn in split(messages).turns for step in turn.steps}
