"""Vocabularies: exact, in short calls on hostile texts, and never the reason for a crash."""

import importlib
import random
import sys
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.context.count import message_cost
from gateway.context.count import vocabularies as tokenizers
from gateway.context.count.vocabularies import VOCABULARIES, Counts, count, estimate, loaded, pieces
from gateway.wire.memory import Memory
from tests.context.texts import TEXTS

GOLDEN = orjson.loads((Path(__file__).parent / "golden_counts.json").read_bytes())


@pytest.mark.parametrize("vocabulary", sorted(GOLDEN))
def test_every_vocabulary_counts_as_recorded(vocabulary: str) -> None:
    """The counts of o200k_base are those of OpenAI's tiktoken."""
    assert {name: count(text, vocabulary) for name, text in TEXTS.items()} == GOLDEN[vocabulary]


def test_every_vocabulary_in_use_is_recorded() -> None:
    assert set(GOLDEN) == VOCABULARIES


@pytest.mark.parametrize("vocabulary", sorted(VOCABULARIES))
def test_a_special_token_spelled_out_hides_nothing(vocabulary: str) -> None:
    text = "<|endoftext|><|im_start|><|eot_id|>[INST]<s></s><|im_end|>" * 20

    assert count(text, vocabulary) > 100


@pytest.mark.parametrize("vocabulary", sorted(VOCABULARIES - {"qwen3"}))
@pytest.mark.parametrize("name", TEXTS)
def test_no_text_makes_more_tokens_than_bytes(vocabulary: str, name: str) -> None:
    assert count(TEXTS[name], vocabulary) <= len(TEXTS[name].encode())


def _exactly(vocabulary: str, text: str) -> int:
    """Count a text with the package itself, as ordinary text."""
    return len(_tokenizer(vocabulary).encode_ordinary(text))


@cache
def _tokenizer(vocabulary: str) -> Any:
    return importlib.import_module("splintr").Tokenizer.from_pretrained(vocabulary)


@pytest.mark.parametrize("vocabulary", sorted(VOCABULARIES))
@given(st.text(max_size=60))
@example("<|endoftext|>")
@example("[INST] /nothink </s>")
@example("plain words")
@example("")
def test_a_text_counts_as_ordinary_text(vocabulary: str, text: str) -> None:
    """Special tokens are not looked for, whichever way of counting is cheaper."""
    assert count(text, vocabulary) == _exactly(vocabulary, text)


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("vocabulary", ["o200k_base", "qwen3", "deepseek_v3", "mistral_v3", "llama3"])
def test_a_long_text_counts_in_pieces_as_it_does_whole(name: str, vocabulary: str) -> None:
    text = TEXTS[name] * (100_000 // len(TEXTS[name]))
    whole = _exactly(vocabulary, text)

    assert abs(count(text, vocabulary) - whole) <= 2 + whole * 0.0005


@given(st.text(), st.integers(1, 50))
def test_the_pieces_together_are_the_text(text: str, size: int) -> None:
    assert "".join(pieces(text, size)) == text
    assert all(len(piece) <= size for piece in pieces(text, size))


HOSTILE = {
    "blanks": lambda n: " " * n,
    "ends of lines": lambda n: "\n" * n,
    "one letter": lambda n: "a" * n,
    "one mark": lambda n: "=" * n,
    "letters": lambda n: "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz0123456789+/", k=n)),
    "printable": lambda n: "".join(random.Random(2).choices([chr(c) for c in range(33, 127)], k=n)),
    "emoji": lambda n: "".join(random.Random(3).choices([chr(c) for c in range(0x1F300, 0x1F6FF)], k=n // 4)),
    "chinese": lambda n: "".join(random.Random(4).choices([chr(c) for c in range(0x4E00, 0x9FFF)], k=n // 3)),
    "nothing": lambda n: "\0" * n,
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("vocabulary", ["o200k_base", "deepseek_v3", "mistral_v3"])
def test_a_hostile_megabyte_is_counted_in_short_calls(
    kind: str, vocabulary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What keeps the event loop free, for the lock is held during each call; how long they take is in docs/counting.md."""
    text = HOSTILE[kind](1_000_000)
    sizes: list[int] = []

    def watched(piece: str) -> int:
        sizes.append(len(piece.encode()))
        return _exactly(vocabulary, piece)

    _exactly(vocabulary, "loaded before")
    monkeypatch.setattr(tokenizers, "_exact_count", lambda _: watched)

    assert 0 < count(text, vocabulary) <= len(text.encode()) + len(sizes)
    assert max(sizes) <= 1.4 * tokenizers.PIECE_BYTES
    assert sum(sizes) == len(text.encode())


@pytest.mark.parametrize("text", ["\ud800 alone", "a\udfffb", "\ufeff", "\U0010ffff" * 10])
def test_what_no_encoding_knows_is_estimated(text: str) -> None:
    assert count(text, "o200k_base") > 0


def test_an_unknown_vocabulary_is_estimated() -> None:
    assert count("some words", "klingon") == estimate("some words")


@pytest.mark.parametrize("name", TEXTS)
def test_the_estimate_stays_near_a_real_vocabulary(name: str) -> None:
    """Without any vocabulary at all: rather too many than too few."""
    if name == "blanks":
        assert estimate(TEXTS[name]) < 40
        return
    assert 0.9 * GOLDEN["o200k_base"][name] <= estimate(TEXTS[name]) <= 2.2 * GOLDEN["o200k_base"][name]


class Panic(BaseException):
    """What a panic of a Rust package is to Python: no Exception."""


class Panicking:
    """A package whose every call panics, if not before then at the first text."""

    Tokenizer: "type[Panicking]"

    @staticmethod
    def from_pretrained(name: str) -> "Panicking":
        return Panicking()

    def special_tokens(self) -> dict[str, int]:
        return {"<s>": 1}

    def encode_ordinary(self, text: str) -> list[int]:
        if text:
            raise Panic("called `Result::unwrap()` on an `Err` value: StackOverflow")
        return []

    def encode_flat(self, text: str) -> bytes:
        return bytes(4 * len(self.encode_ordinary(text)))


Panicking.Tokenizer = Panicking


@pytest.mark.parametrize("package", [None, Panicking], ids=["missing", "panicking"])
def test_without_a_working_package_everything_is_estimated(package: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "splintr", package)
    tokenizers._exact_count.cache_clear()
    try:
        assert count("some words", "o200k_base") == estimate("some words")
    finally:
        tokenizers._exact_count.cache_clear()


def test_counts_are_remembered_by_content_and_bounded() -> None:
    memory = Memory(2**20)
    counts = Counts("o200k_base", memory)
    for n in range(600):
        counts(f"text number {n}")

    assert "".join(["text ", "number 599"]) in counts
    assert "never seen" not in counts
    assert "text number 0" not in counts
    assert 0 < memory.size <= memory.budget * tokenizers.COUNTS_SHARE


def test_the_counts_of_a_vocabulary_are_shared() -> None:
    memory = Memory()

    assert message_cost.counts_of("o200k_base", memory) is message_cost.counts_of("o200k_base", memory)
    assert message_cost.counter("o200k", memory=memory) is message_cost.counter("o200k", memory=memory)
    assert loaded("o200k_base")
    assert loaded("klingon"), "nothing to load"
