"""What is folded does not depend on what was folded before: a conversation is continued from what is remembered of it."""

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.context.count.message_cost import counter
from gateway.context.cut.budget import Budget
from gateway.context.cut.policy import Policy
from gateway.context.write.draft import Draft
from gateway.context.write.folding import fold_conversation
from gateway.wire import chat
from gateway.wire.memory import Memory
from gateway.wire.message import Message
from tests.context.messages import call, message, result

ROOM = 360
"""Tokens: a few turns of those below."""


def turn(number: int) -> list[Message]:
    """A turn with a value that changes, an identifier that comes again, and sometimes a call."""
    told = (
        f"The budget is {number % 7} thousand dollars now, and please keep {'ABC'[number % 3]}{number % 5:04} in mind."
    )
    asked = message("user", told if number % 4 else f"What was the budget when {number % 5:04} came up?")
    answer = message("assistant", f"Noted. Street {number % 6} it is, as for A{number % 5:04}. " * (1 + number % 3))
    if number % 3:
        return [asked, answer]
    key = f"c{number}"
    found = [{"order": f"A{number % 5:04}", "paid": f"KX{4000 + number % 4}", "day": f"2026-05-{10 + number % 9}"}] * 2
    return [asked, call(key, "find", order=f"A{number % 5:04}"), result(key, found), answer]


def folded(turns: list[int], memory: Memory) -> Draft:
    messages = [message("system", "You help."), *(each for number in turns for each in turn(number))]
    return folded_from([*messages, message("user", f"And what of A{len(turns) % 5:04}, what was its budget?")], memory)


def folded_from(messages: list[Message], memory: Memory) -> Draft:
    request = chat.parse(orjson.dumps({"model": "m", "messages": messages, "pad": " " * 4096}), memory)
    assert request is not None
    return fold_conversation(
        request.messages, Budget(ROOM, 0, 0, 0), counter("o200k", "", memory), Policy(), memory=memory
    )


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(0, 60), min_size=10, max_size=24),
    st.lists(st.tuples(st.integers(0, 24), st.lists(st.integers(0, 60), max_size=6)), max_size=5),
)
def test_a_conversation_that_grew_was_edited_or_went_on_otherwise_folds_as_one_never_seen(
    begun: list[int], changes: list[tuple[int, list[int]]]
) -> None:
    memory, turns = Memory(), begun
    for kept, more in ((len(begun), []), *changes):
        turns = [*turns[:kept], *more]
        grown, anew = folded(turns, memory), folded(turns, Memory())

        assert grown.messages == anew.messages
        assert grown.steps == anew.steps


def test_what_was_read_in_full_is_skimmed_once_much_follows_it() -> None:
    def said(number: int) -> list[Message]:
        rows = [f"Parcel {number * 100 + row} of crate {row} went to dock {row % 9}." for row in range(200)]
        return [message("user", f"Where is parcel {number * 100 + 50}?"), message("assistant", " ".join(rows))]

    memory = Memory(2**28)
    for turns in (12, 18, 24):
        messages = [*(each for number in range(turns) for each in said(number)), message("user", "And parcel 77?")]
        grown, anew = folded_from(messages, memory), folded_from(messages, Memory())

        assert grown.messages == anew.messages
        assert grown.steps == anew.steps
