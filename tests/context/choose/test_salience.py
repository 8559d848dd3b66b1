"""Salience: words of which questions are built find less than words that name something, however rare they are."""

import pkgutil

import pytest

from benchmarks.recall import common_words
from benchmarks.recall.salience import rows
from gateway.context.choose import relevance
from gateway.context.choose.salience import salience
from gateway.context.read.words import stem
from gateway.context.weights import COMMON_WORD, EMPTY_WORD
from tests.context.choose.paraphrase import WITH_EXTRA
from tests.context.choose.test_weights import FILLER, ranked
from tests.context.pools import pool


def rows_of(file: str) -> list[list[str]]:
    return [row.split() for row in (pkgutil.get_data("gateway.context.choose", file) or b"").decode().splitlines()]


ROWS = rows_of("salience.txt")
COUNTED = rows_of("common_words.txt")
NAMED = ("user", "The garden is behind the mill.")
BUILT = ("user", "That is the thing that they said.")


@pytest.mark.parametrize(
    ("words", "worth"),
    [
        ("what which said thing through than", EMPTY_WORD),
        ("place money", COMMON_WORD),
        ("combien pourquoi eigentlich mañana сколько gdzie neden 什么 一个 って", EMPTY_WORD),
        ("déjà hätte irgendwann cuándo monday", COMMON_WORD),
        ("garden wedding kitchen Zahnarzt horno 薬 牙医 b-17 qqqq", 1.0),
    ],
)
def test_a_word_counts_as_much_as_it_tells(words: str, worth: float) -> None:
    for word in words.split():
        assert salience(stem(word)) == worth, word


@pytest.mark.parametrize("table", [ROWS, COUNTED])
def test_each_stem_stands_once_in_a_table_and_is_found(table: list[list[str]]) -> None:
    empty, common = table

    assert len({*empty, *common}) == len(empty) + len(common)
    assert {salience(key) for key in empty} == {EMPTY_WORD}
    assert {salience(key) for key in common} <= {COMMON_WORD, EMPTY_WORD}


def test_of_two_tables_the_lower_factor_counts() -> None:
    counted_as_empty, told_as_common = COUNTED[0], ROWS[1]

    assert {salience(key) for key in {*counted_as_empty} & {*told_as_common}} == {EMPTY_WORD}


@pytest.mark.parametrize("key", ["", " ", "th", "\n"])
def test_a_part_of_a_stem_is_none(key: str) -> None:
    assert salience(key) == 1.0


def test_a_question_finds_what_it_names_before_the_words_it_is_built_of() -> None:
    found = pool(NAMED, *FILLER, *FILLER, BUILT, *FILLER)

    assert ranked(found, "What thing is said to be in the garden?")[0] == NAMED[1]


def test_without_the_weight_it_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    found = pool(NAMED, *FILLER, *FILLER, BUILT, *FILLER)
    monkeypatch.setattr(relevance, "salience", lambda key: 1.0)

    assert ranked(found, "What thing is said to be in the garden?")[0] == BUILT[1]


@WITH_EXTRA
def test_the_table_is_what_its_script_computes() -> None:
    assert rows() == ROWS


def test_the_counted_table_is_what_its_script_computes() -> None:
    assert common_words.rows() == COUNTED


@pytest.mark.parametrize(
    ("question", "named", "built"),
    [
        (
            "combien on avait pour le déménageur ?",
            "Le déménageur passe jeudi.",
            "Il y en a combien dans le train, on avait dit.",
        ),
        ("wann eigentlich kommt der Schornsteinfeger", "Der Schornsteinfeger war da.", "Wann fahren wir eigentlich?"),
        ("サルサの教室っていつだったっけ", "サルサは木曜です。", "それだったら、いつでもいいって。"),
    ],
)
def test_in_every_language_what_a_question_names_is_found_first(question: str, named: str, built: str) -> None:
    found = pool(("user", named), *FILLER, *FILLER, ("user", built), *FILLER)

    assert ranked(found, question)[0] == named
