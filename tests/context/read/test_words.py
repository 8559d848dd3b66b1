"""What a word looks like."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.context.read import lines
from gateway.context.read.words import Shape, lexicon_of, stem, words
from gateway.wire.memory import Memory
from tests.allocation import allocation


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("order", Shape.PLAIN),
        ("42", Shape.NUMBER),
        ("1250.50", Shape.NUMBER),
        ("Lisbon", Shape.NAME),
        ("JFK", Shape.CODE),
        ("src/app/main.py", Shape.SYMBOL),
        ("getUserName", Shape.SYMBOL),
        ("ann@example.com", Shape.IDENT),
        ("ann@localhost", Shape.SYMBOL),
        ("@app.route", Shape.SYMBOL),
        ("2024-05-27", Shape.DATE),
        ("15:30", Shape.DATE),
        ("01:00:00+1", Shape.DATE),
        ("HAT117", Shape.IDENT),
        ("credit_card_9879898", Shape.IDENT),
        ("45451592", Shape.IDENT),
        ("привет", Shape.PLAIN),
    ],
)
def test_a_word_is_told_by_its_shape(text: str, kind: Shape) -> None:
    assert [word.shape for word in words(text)] == [kind]


@pytest.mark.parametrize(
    ("one", "other"), [("adopted", "adopting"), ("hikes", "hiking"), ("cities", "cities'"), ("Nora's", "nora")]
)
def test_forms_of_a_word_have_one_stem(one: str, other: str) -> None:
    assert stem(one) == stem(other.strip("'"))


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("src/board.hpp:25:I2cLines& lines();", ["src/board.hpp", "25", "i2clines", "lin"]),
        ("src/lib.rs:10:5", ["src/lib.rs", "10", "5"]),
        ("values.yaml:29:", ["values.yaml", "29"]),
        ("http://127.0.0.1:8080/x", ["http://127.0.0.1:8080/x"]),
        ("db.internal:5432", ["db.internal:5432"]),
        ("12:30:05", ["12:30:05"]),
    ],
)
def test_a_place_in_a_file_is_the_file_and_the_row(text: str, keys: list[str]) -> None:
    assert [word.key for word in words(text)] == keys


def test_a_token_of_any_number_of_places_is_read_as_one() -> None:
    assert [word.key for word in words("a.py:1:" * 100_000)][:2] == ["a.py", "1"]


def test_scripts_without_spaces_are_read_in_pairs() -> None:
    """A question meets its answer in Chinese too."""
    asked, told = ({word.key for word in words(text)} for text in ("我的航班号是什么?", "航班号 MU5137 已确认。"))

    assert {"航班", "班号"} <= asked & told


@given(st.text(max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    found = words(text)

    assert len({word.key for word in found}) == len(found)


def chinese(rng: random.Random, characters: int) -> str:
    """Return characters that stand beside others each time."""
    return "".join([chr(0x4E00 + rng.randrange(20_000)) for _ in range(characters)])


@pytest.mark.parametrize("characters", [40, 400])
def test_pairs_of_characters_count_with_what_they_take(characters: int) -> None:
    """A memory of 2 MB had 60 MB of them, and counted less than 1 MB."""
    rng, memory = random.Random(1), Memory(2 * 2**20)
    lexicon = lexicon_of(memory)
    with allocation() as found:
        for _ in range(400_000 // characters):
            lexicon(chinese(rng, characters))
    assert found.left <= 1.5 * memory.budget
    assert memory.size <= memory.budget


def test_lines_of_a_script_without_spaces_count_with_what_they_take() -> None:
    rng, memory = random.Random(2), Memory(2 * 2**20)
    with allocation() as found:
        for _ in range(40):
            text = "\n".join([chinese(rng, 120) for _ in range(40)])
            lines.read({"role": "tool", "tool_call_id": "a", "content": text}, memory)
    assert found.left <= 1.6 * memory.budget
    assert memory.size <= memory.budget
