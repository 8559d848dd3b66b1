"""A conversation whose agent calls in its text is read with calls and results, and sent as it came."""

import pytest

from gateway.context.cut.turns import split
from gateway.context.read import lines
from gateway.context.read.as_calls import as_calls
from gateway.context.read.line import LineKind
from gateway.context.read.view import as_sent, calls_of
from gateway.wire.memory import Memory
from gateway.wire.message import dumps
from tests.context.messages import message

TASK = message("user", "Find the order.")
CALL = message("assistant", 'I look.\n<tool_call>{"name": "find", "arguments": {"order": "R-2231"}}</tool_call>')
RESULT = message("user", '<tool_response>{"order": "R-2231", "carrier": "DHL"}</tool_response>')
DONE = message("assistant", "It is with DHL.")
TALK = [message("system", "s"), TASK, CALL, RESULT, DONE, message("user", "Thanks!")]


def test_a_result_belongs_to_its_call_and_begins_no_turn() -> None:
    structure = split(as_calls(TALK))

    assert [turn.indices for turn in structure.turns] == [(1, 2, 3, 4), (5,)]
    assert structure.callers == {3: 2}


def test_calls_and_results_are_read_as_such() -> None:
    _, _, call, result, _, _ = as_calls(TALK)

    assert [(line.kind, line.text) for line in lines.read(call)] == [
        (LineKind.SENTENCE, "I look."),
        (LineKind.CALL, "find(R-2231)"),
    ]
    assert [line.kind for line in lines.read(result)] == [LineKind.RECORD, LineKind.RECORD]


def test_what_is_sent_is_what_came() -> None:
    assert all(as_sent(read) is came for read, came in zip(as_calls(TALK), TALK, strict=True))


def test_a_shortened_message_is_sent_in_its_own_role() -> None:
    result = as_calls(TALK)[3]

    assert as_sent({**result, "content": "<tool_response>…"}) == message("user", "<tool_response>…")


def test_what_is_left_out_stays_left_out() -> None:
    call = as_calls([TASK, {**CALL, "reasoning_content": "hm"}, RESULT])[1]
    shorter = {name: value for name, value in call.items() if name != "reasoning_content"}

    assert as_sent(shorter) == CALL


def test_other_conversations_are_read_as_they_came() -> None:
    talk = [TASK, DONE, message("user", "Observation: it rains."), CALL, message("user", "No, wait.")]
    native = [TASK, {**CALL, "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]}, RESULT]

    assert as_calls(talk) is talk
    assert as_calls(native) is native


def test_a_remembered_message_is_read_once() -> None:
    memory = Memory()
    talk = [memory.message(dumps(each)) for each in TALK]

    first, again = as_calls(talk), as_calls([memory.message(dumps(each)) for each in TALK])
    assert first[2] is again[2]
    assert first[3] is again[3]


@pytest.mark.parametrize("budget", range(13_000, 16_000, 400))
def test_a_message_that_is_forgotten_meanwhile_is_read_all_the_same(budget: int) -> None:
    """A conversation may be larger than the memory: then what is read of a message pushes itself out."""
    memory = Memory(budget)
    came = [{**each, "content": f"{each['content']} {number}"} for number in range(20) for each in TALK]
    talk = [memory.message(dumps(each)) or {} for each in came]

    assert [as_sent(read) for read in as_calls(talk)] == came


def test_calls_of_the_api_are_found_too() -> None:
    made = [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]

    assert calls_of({"role": "assistant", "content": None, "tool_calls": made}) == made
