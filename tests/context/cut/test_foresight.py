"""Which summary is wanted next: one a cut, in time, and never of more than the cut will take."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.context.count.counter import Counter
from gateway.context.cut.budget import Budget
from gateway.context.cut.foresight import LATE_SHARE, LEAST_SHARE, SummaryGoal, messages_before_cut, next_summary
from gateway.context.cut.policy import Policy
from gateway.context.cut.source import Source
from gateway.context.cut.turns import split
from gateway.wire.message import call_arguments, text_of, tool_calls

Message = dict[str, Any]


def text(value: str) -> int:
    return -(-len(value) // 4)


def cost(message: Message) -> int:
    return 4 + text(text_of(message)) + sum(text(call_arguments(call)) for call in tool_calls(message))


def source(messages: Sequence[Message], room: int = 4000, policy: Policy | None = None) -> Source:
    counter = Counter(cost, text)  # type: ignore[arg-type]
    return Source(messages, split(messages), Budget(room, 0, 0, 0), counter, policy or Policy())


def chat(turns: int, tokens: int = 100) -> list[Message]:
    system: Message = {"role": "system", "content": "Be brief."}
    said = [
        (
            {"role": "user", "content": f"{turn} " + "why " * tokens},
            {"role": "assistant", "content": f"{turn} " + "so. " * tokens},
        )
        for turn in range(turns)
    ]
    return [system, *(message for turn in said for message in turn)]


def agent(steps: int, tokens: int = 200) -> list[Message]:
    """One question, then calls and results without end."""
    messages: list[Message] = [{"role": "user", "content": "mend it"}]
    for step in range(steps):
        call = {"id": f"c{step}", "type": "function", "function": {"name": "look", "arguments": f'{{"at":{step}}}'}}
        messages += [
            {"role": "assistant", "content": "thinking " * tokens, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{step}", "content": f"{step} " + "row\n" * tokens},
        ]
    return messages


def lived(messages: Sequence[Message], policy: Policy | None = None, at: float = 0.7) -> list[tuple[int, int, int]]:
    """Let a conversation grow request by request, each goal granted at once: (cut before, cut, covered) at every move."""
    cut, covered, moves = 0, 0, []
    for end in range(1, len(messages) + 1):
        if messages[end - 1]["role"] == "assistant":
            continue
        now = source(messages[:end], policy=policy)
        if messages_before_cut(now) != cut:
            moves.append((cut, messages_before_cut(now), covered))
            cut = messages_before_cut(now)
        if cut or sum(map(cost, messages[:end])) >= at * now.budget.room:
            goal = next_summary(now, covered)
            covered = goal.covers if goal else covered
    return moves


@pytest.mark.parametrize(
    ("messages", "policy"),
    [(chat(100), None), (chat(40, 400), None), (chat(100), Policy(max_turns=12)), (agent(60), None)],
    ids=["small turns", "large turns", "few turns allowed", "one endless turn"],
)
def test_when_a_cut_comes_a_summary_of_nearly_all_it_takes_is_there(
    messages: list[Message], policy: Policy | None
) -> None:
    moves = lived(messages, policy)
    assert len(moves) > 3
    for _, cut, covered in moves[1:]:
        assert covered <= cut, "a summary of what still stands would be of no use yet"
        turn = max(map(cost, messages)) * 2 if len(messages) < 100 else 0
        assert sum(map(cost, messages[covered:cut])) <= (LATE_SHARE + LEAST_SHARE) * 4000 + turn


def test_one_summary_is_wanted_for_each_cut() -> None:
    messages = chat(100)
    covered, wishes, cuts = 0, [], set()
    for end in range(2, len(messages), 2):
        now = source(messages[:end])
        cuts.add(messages_before_cut(now))
        if (messages_before_cut(now) or sum(map(cost, messages[:end])) >= 2800) and (
            goal := next_summary(now, covered)
        ):
            wishes.append(goal)
            covered = goal.covers
    assert len(wishes) <= len(cuts) + 1


def test_what_is_provided_for_is_not_wanted_again() -> None:
    now = source(chat(16))
    goal = next_summary(now, 0)
    assert goal is not None
    assert next_summary(now, goal.covers) is None


def test_a_session_attached_late_wants_what_is_folded_already() -> None:
    now = source(chat(200))
    assert next_summary(now, 0) == SummaryGoal(
        messages_before_cut(now), sum(map(cost, now.messages[1 : messages_before_cut(now)]))
    )
    assert sum(map(cost, now.messages[1 : messages_before_cut(now)])) > LATE_SHARE * now.budget.room


def test_too_little_is_not_worth_a_call() -> None:
    messages = chat(4, 300)
    messages[3] = {"role": "user", "content": "x" * 9000}
    goal = next_summary(source(messages), 0)
    assert goal is None or goal.replaced_tokens >= 400


@pytest.mark.parametrize(
    "messages", [[], [{"role": "system", "content": "alone"}], [{"role": "user", "content": "x" * 15_000}], chat(0)]
)
def test_where_there_is_nothing_to_end_at_nothing_is_wanted(messages: list[Message]) -> None:
    assert next_summary(source(messages), 0) is None


MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "user", "assistant", "tool"]), "content": st.integers(0, 1200).map("x".__mul__)}
    ),
    max_size=30,
)  # fmt: skip


@settings(max_examples=60)
@given(messages=MESSAGES, covered=st.integers(0, 30), room=st.integers(-10, 3000))
def test_a_summary_ends_between_turns_or_steps_and_covers_something_new(
    messages: list[Message], covered: int, room: int
) -> None:
    now = source(messages, room)
    goal = next_summary(now, covered)
    if goal is not None:
        assert covered < goal.covers <= len(messages)
        turns = now.structure.turns
        ends = {turn.indices[0] for turn in turns} | {step[0] for turn in turns for step in turn.steps}
        assert goal.covers in ends
