"""Salience: words of which questions are built find less than words that name something, however rare they are."""

import pkgutil

import pytest

from benchmarks.recall.salience import rows
from gateway.context.choose import recall
from gateway.context.choose.salience import salience
from gateway.context.read.words import stem
from gateway.context.weights import COMMON_WORD, EMPTY_WORD
from tests.context.choose.paraphrase import WITH_EXTRA
from tests.context.choose.test_weights import FILLER, ranked
from tests.context.pools import pool

TABLE = (pkgutil.get_data("gateway.context.choose", "salience.txt") or b"").decode()
ROWS = [row.split() for row in TABLE.splitlines()]
NAMED = ("user", "The garden is behind the mill.")
BUILT = ("user", "That is the thing that they said.")


@pytest.mark.parametrize(
    ("words", "worth"),
    [
        ("what which said thing through than", EMPTY_WORD),
        ("time think name give", COMMON_WORD),
        ("garden wedding kitchen monday Zahnarzt perro 薬 b-17 qqqq", 1.0),
    ],
)
def test_a_word_counts_as_much_as_it_tells(words: str, worth: float) -> None:
    for word in words.split():
        assert salience(stem(word)) == worth, word


def test_each_stem_stands_once_and_is_found() -> None:
    empty, common = ROWS

    assert len({*empty, *common}) == len(empty) + len(common)
    assert {salience(key) for key in empty} == {EMPTY_WORD}
    assert {salience(key) for key in common} == {COMMON_WORD}


@pytest.mark.parametrize("key", ["", " ", "th", "\n"])
def test_a_part_of_a_stem_is_none(key: str) -> None:
    assert salience(key) == 1.0


def test_a_question_finds_what_it_names_before_the_words_it_is_built_of() -> None:
    found = pool(NAMED, *FILLER, *FILLER, BUILT, *FILLER)

    assert ranked(found, "What thing is said to be in the garden?")[0] == NAMED[1]


def test_without_the_weight_it_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    found = pool(NAMED, *FILLER, *FILLER, BUILT, *FILLER)
    monkeypatch.setattr(recall, "salience", lambda key: 1.0)

    assert ranked(found, "What thing is said to be in the garden?")[0] == BUILT[1]


@WITH_EXTRA
def test_the_table_is_what_its_script_computes() -> None:
    assert rows() == ROWS
