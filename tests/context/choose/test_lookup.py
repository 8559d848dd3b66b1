"""Which old messages are relevant to a question."""

from collections.abc import Collection, Sequence

import pytest

from gateway.context.choose.lookup import MOST_SEARCHED_CHARACTERS, most_relevant, neighbour_shares
from gateway.context.weights import NEIGHBOUR_DISTANCE, NEIGHBOUR_SHARE

TEXTS = (
    "The plumber comes on Thursday.",
    "The bill of the plumber was high, the one of the PAINTER was higher.",
    "Nothing new today.",
    "猫は台所にいる",
)


def found_in(texts: Sequence[str], query: str, known: Collection[str] = (), roles: str = "") -> list[int]:
    speaking = [{"u": "user", "a": "assistant"}[role] for role in roles] or ["user"] * len(texts)
    return most_relevant(texts, speaking, query, known, {"user": 2.0})


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("Who painted, and what did the plumber charge?", 1),
        ("plumbers?", 0),
        ("猫はどこ？", 3),
    ],
)
def test_the_text_with_the_rarest_words_comes_first(query: str, first: int) -> None:
    assert found_in(TEXTS, query)[0] == first


@pytest.mark.parametrize("query", ["swallows", "?", ""])
def test_a_question_without_a_word_of_theirs_finds_none(query: str) -> None:
    assert found_in(TEXTS, query) == []


def test_of_equal_texts_the_newest_comes_first() -> None:
    assert found_in(["plumber", *[""] * (2 * NEIGHBOUR_DISTANCE)] * 3, "plumber")[:3] == [
        4 * NEIGHBOUR_DISTANCE + 2,
        2 * NEIGHBOUR_DISTANCE + 1,
        0,
    ]


def test_messages_beside_a_match_come_before_weak_matches() -> None:
    """An answer seldom repeats the words of its question."""
    texts = [
        "Is it the boiler?",
        "No, the valve behind it.",
        *["Fine."] * 9,
        "The boiler, the tiles and the roof. " * 40,
    ]
    assert found_in(texts, "What was wrong with the boiler?")[:2] == [0, 1]


def test_a_match_counts_for_the_messages_around_it_less_with_each_message_between() -> None:
    far = 2 * NEIGHBOUR_DISTANCE
    shares = neighbour_shares({far: 12.0}, 2 * far + 1)

    assert sorted(shares) == [
        place for place in range(far - NEIGHBOUR_DISTANCE, far + NEIGHBOUR_DISTANCE + 1) if place != far
    ]
    assert [shares[far + away] for away in range(1, NEIGHBOUR_DISTANCE + 1)] == [
        NEIGHBOUR_SHARE * 12.0 / away for away in range(1, NEIGHBOUR_DISTANCE + 1)
    ]
    assert all(shares[far - away] == shares[far + away] for away in range(1, NEIGHBOUR_DISTANCE + 1))


def test_of_two_matches_as_far_away_the_better_counts() -> None:
    assert neighbour_shares({0: 3.0, 2: 5.0}, 3)[1] == NEIGHBOUR_SHARE * 5.0


def test_the_likely_speaker_of_an_answer_counts() -> None:
    assert found_in(["plumber", "", "", "", "plumber"], "plumber", roles="uaaaa")[0] == 0


def test_a_word_of_the_system_prompt_counts_less() -> None:
    texts = ["plumber", "", "", "painter", "", "", "more"]
    assert found_in(texts, "plumber painter", {"painter"})[0] == 0


def test_what_is_too_far_back_is_not_looked_through() -> None:
    assert found_in(["plumber", "x" * MOST_SEARCHED_CHARACTERS], "plumber") == []
