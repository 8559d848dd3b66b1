"""Which old messages hold the rare words of a question."""

import pytest

from gateway.context.choose.lookup import SEARCHED, holding

TEXTS = (
    "The plumber comes on Thursday.",
    "The bill of the plumber was high, the one of the PAINTER was higher.",
    "Nothing new today.",
    "猫は台所にいる",
)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("Who painted, and what did the plumber charge?", [1, 0]),
        ("plumbers?", [1, 0]),
        ("猫はどこ？", [3]),
        ("swallows", []),
        ("?", []),
        ("", []),
    ],
)
def test_the_texts_with_the_rarest_words_come_first(query: str, found: list[int]) -> None:
    assert holding(TEXTS, query, (), 10) == found


def test_no_more_are_found_than_asked_for() -> None:
    assert holding(["plumber"] * 50, "plumber", (), 3) == [49, 48, 47]


def test_a_word_of_the_system_prompt_counts_less() -> None:
    texts = ["plumber", "painter", "other", "more"]
    assert holding(texts, "plumber painter", {"painter"}, 1) == [0]


def test_what_is_too_far_back_is_not_looked_through() -> None:
    assert holding(["plumber", "x" * SEARCHED], "plumber", (), 3) == []
