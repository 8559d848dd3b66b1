"""A message that asks or instructs among other things is given what it needs of the folded part."""

import pytest

from gateway.context.write.draft import Draft
from gateway.wire.message import text_of
from tests.context.write.test_chat_with_calls import talk
from tests.context.write.test_folding import folded
from tests.context.write.test_set_aside import quoted
from tests.fakes import user

MOST = 1000
"""Tokens of quotes for such a message."""
STORY = (
    "It was a long day, the bus was late again, and I sat on the stairs for an hour with the shopping and a wet coat."
)
PLACE = "behind the oil lamp"


def says_place(draft: Draft) -> bool:
    """Return whether the fact is in what is sent."""
    return PLACE in "".join(map(text_of, draft.messages))


@pytest.mark.parametrize("room", [800, 1500, 3000])
def test_the_digest_of_this_talk_does_not_have_the_fact(room: int) -> None:
    """Else the tests below would prove nothing."""
    assert not says_place(folded([*talk(70), user("Wednesday.")], room))


@pytest.mark.parametrize(
    "message",
    [
        "Draft a mail to my brother that says where the key of the boat house hangs.",
        f"{STORY} Where was the key of the boat house? {STORY}",
        f"Hello again. {STORY} Write my neighbour a note about the key of the boat house. {STORY}",
    ],
)
@pytest.mark.parametrize("room", [800, 1500, 3000])
def test_an_instruction_and_a_question_in_a_story_are_quoted_for(message: str, room: int) -> None:
    draft = folded([*talk(70), user(message)], room)

    assert says_place(draft)
    assert quoted(draft) <= MOST + 60
    assert draft.cost <= room


@pytest.mark.parametrize(
    "message",
    [
        "my brother wants to know where the key of the boat house hangs",
        "the place of the key, for the boat house, one line",
        "on the form goes where my neighbour finds the key of the boat house",
        f"{STORY} {STORY[:-1]} and where was the key of the boat house {STORY}",
    ],
)
def test_a_message_that_asks_without_a_mark_is_quoted_for(message: str) -> None:
    assert says_place(folded([*talk(70), user(message)], 1500))


@pytest.mark.parametrize(
    "message",
    [
        "my brother wants to sell the boat house to a dentist",
        f"{STORY} I gave the key of the boat house to my brother. {STORY}",
        "Wednesday.",
    ],
)
def test_a_message_that_tells_something_breaks_no_cached_prefix(message: str) -> None:
    assert quoted(folded([*talk(70), user(message)], 1500)) <= 200


@pytest.mark.parametrize(
    "message", ["Write a haiku about winter in Tallinn.", f"{STORY} What should I cook with leeks and barley? {STORY}"]
)
def test_a_message_about_something_new_breaks_no_cached_prefix(message: str) -> None:
    """Most instructions are about something new: quotes would be guesses, and cost part of the prefix."""
    assert quoted(folded([*talk(70), user(message)], 1500)) <= 200
