"""Where a conversation's turns and steps begin."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.context.cut.turns import callers_of, split
from gateway.wire.message import CONTINUES, LATE

U: dict[str, Any] = {"role": "user", "content": "u"}
A: dict[str, Any] = {"role": "assistant", "content": "a"}
S: dict[str, Any] = {"role": "system", "content": "s"}
D: dict[str, Any] = {"role": "developer", "content": "d"}


def call(*names: str) -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": [{"id": name, "function": {"name": "f"}} for name in names]}


def res(name: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": name, "content": "r"}


def later(before: Any) -> dict[str, Any]:
    """A message that continues another, so many messages before it."""
    return {**A, CONTINUES: before}


def late(name: str) -> dict[str, Any]:
    """The result of an asynchronous call."""
    return {**res(name), LATE: True}


F: dict[str, Any] = {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}
R: dict[str, Any] = {"role": "function", "name": "f", "content": "r"}


@pytest.mark.parametrize(
    ("messages", "pinned", "turns"),
    [
        ([], (), []),
        ([S, U, A, U], (0,), [((1,), ((2,),)), ((3,), ())]),
        ([U, call("x"), res("x"), call("y"), res("y"), A], (), [((0,), ((1, 2), (3, 4), (5,)))]),
        ([A, U, A], (), [((), ((0,),)), ((1,), ((2,),))]),
        ([U, U, U, A], (), [((0, 1, 2), ((3,),))]),
        ([U, S, U, A, D, U], (1, 4), [((0, 2), ((3,),)), ((5,), ())]),
        ([U, call("a", "b"), res("b"), res("a"), U], (), [((0,), ((1, 2, 3),)), ((4,), ())]),
        ([U, A, call("a"), res("a")], (), [((0,), ((1,), (2, 3)))]),
        ([U, F, R, U], (), [((0,), ((1, 2),)), ((3,), ())]),
        ([U, call("a"), U, res("a"), U], (), [((0,), ((1, 2, 3),)), ((4,), ())]),
        ([U, call("a"), res("a"), U, call("a"), res("a")], (), [((0,), ((1, 2),)), ((3,), ((4, 5),))]),
        ([res("x"), U], (), [((), ((0,),)), ((1,), ())]),
        ([U, call("a")], (), [((0,), ((1,),))]),
        ([U, call("a"), res("a"), later(2), A, U], (), [((0,), ((1, 2, 3), (4,))), ((5,), ())]),
        ([U, A, later(1), U, later(3), U], (), [((0,), ((1, 2, 3, 4),)), ((5,), ())]),
        ([U, call("a"), late("a"), A], (), [((0,), ((1, 2), (3,)))]),
        ([U, call("a"), A, late("a"), A], (), [((0,), ((2,), (3, 1), (4,)))]),
        ([U, call("a"), A, U, A, late("a")], (), [((0,), ((2,),)), ((3,), ((4,), (5, 1)))]),
        ([call("a"), U, late("a"), U], (), [((1,), ((2, 0),)), ((3,), ())]),
        ([U, call("a"), U, call("b"), late("a"), U, late("b")], (), [((0,), ()), ((2,), ((4, 1),)), ((5,), ((6, 3),))]),
        ([U, call("a", "b"), res("b"), A, U, late("a")], (), [((0,), ((3,),)), ((4,), ((5, 1, 2),))]),
        ([U, call("a", "b"), U, late("b"), A, U, late("a")], (), [((0,), ()), ((2,), ((4,),)), ((5,), ((6, 3, 1),))]),
        ([U, A, later(9), later("x"), later(0), U], (), [((0,), ((1,), (2,), (3,), (4,))), ((5,), ())]),
    ],
)
def test_turns_begin_with_the_user_and_steps_with_the_assistant(
    messages: list[dict[str, Any]], pinned: tuple[int, ...], turns: list[Any]
) -> None:
    """Cases 4, 10, 15, 17, 19: runs of user messages, chains of calls and their results stay together."""
    found = split(messages)

    assert found.pinned == pinned
    assert [(turn.user, turn.steps) for turn in found.turns] == turns


def test_a_reused_id_pairs_with_its_newest_call() -> None:
    """Case 11."""
    assert callers_of([call("a"), res("a"), call("a"), res("a"), res("a")]) == {1: 0, 3: 2}


@given(st.lists(st.sampled_from([U, A, S, D, F, R, call("a"), call("a", "b"), res("a"), res("b"), {"role": "critic"}])))
def test_every_message_has_one_place(messages: list[dict[str, Any]]) -> None:
    found = split(messages)

    places = [*found.pinned, *(index for turn in found.turns for index in turn.indices)]
    assert sorted(places) == list(range(len(messages)))
    assert [turn.indices[0] for turn in found.turns] == sorted(turn.indices[0] for turn in found.turns)
