"""Fields: a question finds what was said in other words, also in another language."""

import pkgutil

import pytest

from gateway.context.choose import fields, relevance
from gateway.context.read.words import words
from tests.context.choose.test_weights import FILLER, ranked
from tests.context.pools import pool

ROWS = (pkgutil.get_data("gateway.context.choose", "fields.txt") or b"").decode().splitlines()
LANGUAGES = 10
"""English, German, French, Spanish, Italian, Portuguese, Dutch, Russian, Chinese, Japanese."""
FEVER = ("user", "Those new pills made Dad see mice on the ceiling.")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split()[0])
def test_a_field_has_words_in_each_language_and_each_is_found(row: str) -> None:
    parts = [part.split() for part in row.split("|")]

    assert len(parts) == LANGUAGES
    for part in parts:
        assert len(part) == len(set(part)) >= 3
        for word in part:
            assert word == word.lower()
            assert [ROWS[field] for field in fields.fields_of(words(word)[0].key)].count(row) == 1, word


@pytest.mark.parametrize(
    "question",
    [
        "Which medicine confused my father?",
        "Welche Arznei hat ihn durcheinandergebracht?",
        "¿Qué medicina le sentó mal?",
        "他吃了什么药片？",
    ],
)
def test_a_question_in_other_words_finds_the_remark(question: str) -> None:
    found = pool(*FILLER, FEVER, ("assistant", "Oh no."), *FILLER)

    assert ranked(found, question)[0] == FEVER[1]


def test_without_the_weight_it_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    found = pool(*FILLER, FEVER, ("assistant", "Oh no."), *FILLER)
    monkeypatch.setattr(relevance, "FIELD_WORD", 0.0)

    assert ranked(found, "Which medicine did he take?") == []


def test_the_word_itself_outweighs_words_of_its_field() -> None:
    said = ("user", "The medicine stands in the green cupboard.")
    found = pool(*FILLER, ("user", "A pill, a tablet, a drug: the pharmacy had every dose."), *FILLER, said, *FILLER)

    assert ranked(found, "Where is the medicine?")[0] == said[1]


def test_no_field_has_a_word_with_which_sentences_are_built() -> None:
    built = "can not but his was see nicht nur wir dans pas est pero molto niet maar"

    assert [word.key for word in words(built) if fields.fields_of(word.key)] == []


def test_a_pasted_text_is_searched_for_its_own_words_alone() -> None:
    found = pool(*FILLER, FEVER, *FILLER)
    pasted = " ".join(f"subject{number}" for number in range(relevance.MOST_WORDS))

    assert ranked(found, f"Which medicine? {pasted}") == []
