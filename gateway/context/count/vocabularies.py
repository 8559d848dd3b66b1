"""Vocabularies: count the tokens of a text by its exact vocabulary, or estimate them by classes of characters.

Texts are encoded as ordinary text, so special tokens spelled out in a hostile text hide nothing. A vocabulary is loaded
on first use and stays. The Rust package with the vocabularies may be missing or panic (its panics derive from
BaseException); then tokens are estimated. The package holds the interpreter's lock while it works, so long texts are
counted in pieces: other threads run between them.
"""

import importlib
import re
from collections.abc import Callable, Iterator
from functools import cache
from math import ceil
from threading import Lock
from typing import Any, Final

import msgspec

from gateway.wire.memory import Memory, Recent

VOCABULARIES: Final = frozenset(
    {
        "o200k_base", "cl100k_base", "llama2", "llama3", "deepseek_v3", "phi4", "mistral_v1", "mistral_v2", "mistral_v3",
        "gemma4", "glm4", "kimi_k2", "kimi_k3", "qwen3",
    }
)  # fmt: skip
"""The vocabularies of the package that we use. ``gemma4`` counts like Gemma 2 and 3, 20 times faster than their
SentencePiece form."""

PIECE_BYTES: Final = 32_000
"""Bytes, about, that are counted in one call. It takes 1-2 ms for ordinary text, 20 ms for the most hostile one."""

_ID_BYTES: Final = 4
"""Bytes of a token in what ``encode_flat`` returns."""
COUNT_BYTES: Final = 130
"""Bytes of a cached count: two numbers and their entry in a table. The texts themselves are not kept."""
COUNTS_SHARE: Final = 1 / 16
"""Share of the memory's budget that the counts of one vocabulary may take."""


def count(text: str, vocabulary: str) -> int:
    """Count the tokens of a text; with an unknown vocabulary they are estimated."""
    if not text:
        return 0
    if vocabulary in _APPROXIMATE_VOCABULARIES:
        return _APPROXIMATE_VOCABULARIES[vocabulary].count(text)
    size = PIECE_BYTES if text.isascii() else PIECE_BYTES // 3
    if len(text) <= size:
        return _count(text, vocabulary)
    return sum(_count(piece, vocabulary) for piece in pieces(text, size))


_CAPITALS: Final = re.compile(r"[A-Z]{4,}")


class ApproximateVocabulary(msgspec.Struct, frozen=True):
    """An unpublished vocabulary, whose counts are computed from those of a published one. The numbers are fitted to bills."""

    vocabulary: str
    ratio: float
    capitals: float
    """Additional tokens for each word in capitals, which is one token in the published vocabulary."""

    def count(self, text: str) -> int:
        return ceil(count(text, self.vocabulary) * self.ratio + self.capitals * len(_CAPITALS.findall(text)))


_APPROXIMATE_VOCABULARIES: Final = {
    "claude": ApproximateVocabulary("cl100k_base", 1.06, 0.7),
    # Since Opus 4.7 "roughly 1.0 to 1.35 times" as many: https://platform.claude.com/docs/about-claude/models/whats-new-claude-4-7
    "claude-5": ApproximateVocabulary("cl100k_base", 1.32, 0.7),
}


class Counts:
    """A cache of token counts by content, for one vocabulary.

    Call it with a text to get its token count. The cache holds a hash of the text, not the text: 64 bits under a key
    that is secret to the process, so of ten thousand texts two share a hash less than once in 10^11.
    """

    __slots__ = ("_tokens", "_vocabulary")

    def __init__(self, vocabulary: str, memory: Memory) -> None:
        self._vocabulary = vocabulary
        self._tokens: Recent[int, int] = Recent(memory, lambda key, tokens: COUNT_BYTES, COUNTS_SHARE)

    def __call__(self, text: str) -> int:
        key = hash(text)
        tokens = self._tokens.get(key)
        return self._tokens.put(key, count(text, self._vocabulary)) if tokens is None else tokens

    def __contains__(self, text: str) -> bool:
        return self._tokens.get(hash(text)) is not None


def loaded(vocabulary: str) -> bool:
    """Return whether counting can begin without loading anything."""
    if vocabulary in _APPROXIMATE_VOCABULARIES:
        vocabulary = _APPROXIMATE_VOCABULARIES[vocabulary].vocabulary
    return vocabulary not in VOCABULARIES or vocabulary in _LOADED


_SAMPLE: Final = """Kinds of text, and words in no vocabulary: qzxwvk zyxwvutsrq antidisestablishmentarianismus.
It's 2026-11-03T14:05:59Z; {"id": "a1-b2", "total": 1234.50, "paths": ["/usr/lib/x.so", "C:\\\\tmp"]} != null && f(x) => x**2 + y_z;
\tfor i in range(10):\n\t\tprint(f"{i:>4}", end="")  # ÄÖÜ ß é ñ; Привет, мир! 你好，世界。 こんにちは 안녕하세요 مرحبا नमस्ते สวัสดี 😀👩‍💻\r\n\r\n   ...   ---
"""


def preload(vocabulary: str) -> None:
    """Load a vocabulary now, including tables built at the first word that is not one token: 0.2 s; 1 s for Gemma."""
    count(_SAMPLE, vocabulary)


def _count(text: str, vocabulary: str) -> int:
    """Count the tokens of a text; estimate them if the vocabulary is unknown, or if it fails on this text."""
    with _LOADING:
        tokens_in = _exact_count(vocabulary)
    if tokens_in is None:
        return estimate(text)
    try:
        return tokens_in(text)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001  # a panic of Rust is no Exception
        return estimate(text)


_LOADED: Final[set[str]] = set()
"""The vocabularies that were loaded, or could not be loaded."""

_LOADING: Final = Lock()
"""Held while a vocabulary is loaded, so that two threads do not load it twice."""


@cache
def _exact_count(vocabulary: str) -> Callable[[str], int] | None:
    """Return the function that counts a text by a vocabulary; None without the vocabulary."""
    if vocabulary not in VOCABULARIES:
        return None
    try:
        return _counting(importlib.import_module("splintr").Tokenizer.from_pretrained(vocabulary))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001  # a missing or broken wheel: tokens are estimated
        return None
    finally:
        _LOADED.add(vocabulary)


def _counting(tokenizer: Any) -> Callable[[str], int]:
    """Return the function that counts ordinary text with a tokenizer, without the tokens it adds around any text: a begin
    mark belongs to the request.

    ``encode_flat`` finds the same tokens for two thirds of the cost, because it makes no Python numbers. But it reads special
    tokens, so it is asked only about texts without the characters with which these begin.
    """
    ordinary, flat = tokenizer.encode_ordinary, tokenizer.encode_flat
    frame, flat_frame = len(ordinary("")), len(flat(""))
    marks = tuple({name[0] for name in tokenizer.special_tokens()})

    def count_text(text: str) -> int:
        if any([mark in text for mark in marks]):
            return len(ordinary(text)) - frame
        return (len(flat(text)) - flat_frame) // _ID_BYTES

    return count_text


# A text can be cut here without changing its tokens: every vocabulary begins a new token at a space before a letter
# that follows a letter, and after the end of a line.
_SAFE_CUT: Final = re.compile(r"(?<=[^\W\d_])(?= [^\W\d_])|(?<=\n)(?=[^\s/])")
_LOOK_BACK: Final = (100, 2_000)
"""Characters before the end of a piece that are searched for a safe cut: first a few words, then more. Chosen: ordinary text has a
safe cut within a line."""


def pieces(text: str, size: int) -> Iterator[str]:
    """Yield the pieces of a long text. Their counts add up to the text's; where no safe cut is near, one or two tokens more."""
    start = 0
    while len(text) - start > size:
        cut = _last_safe_cut(text, start + 1, start + size)
        yield text[start:cut]
        start = cut
    yield text[start:]


def _last_safe_cut(text: str, start: int, end: int) -> int:
    """Return where a piece that begins before ``start`` ends: at its last safe cut, or at ``end`` if no safe cut is near."""
    for characters in _LOOK_BACK:
        safe_cuts = [found.start() for found in _SAFE_CUT.finditer(text, max(start, end - characters), end)]
        if safe_cuts:
            return safe_cuts[-1]
    return end


@cache
def _classes() -> re.Pattern[str]:
    """Return the pattern of the classes. It is made when it is first needed: a hundredth of the start."""
    return re.compile(
        r"([A-Za-z0-9+/=_-]{60,})|([A-Z]?[a-z]+|[A-Z]+)|([0-9]{1,3})|([\u0300-\u036f\u200b-\u200f\u202a-\u202e\U00010000-\U0010ffff])|([\u0080-\u02ff\u0370-\u200a\u2010-\u2029\u202f-\u2e7f]+)|([\u2e80-\uffff])|(\s+)|[^\w\s]|_"
    )


def estimate(text: str) -> int:
    """Estimate the tokens of a text from classes of its characters; the result tends to be too high.

    A Latin word (or part of aMixedOne) is one token and one more for each further six letters. Three digits, one mark,
    or 16 blanks (besides the one before a word) are one token. Encoded data takes 7 tokens for 10 characters. Other
    alphabets take one token for two letters; Chinese, Japanese and Korean one for each sign; characters beyond the
    basic plane two.
    """
    total = 0
    for found in _classes().finditer(text):
        kind = found.lastindex
        length = found.end() - found.start()
        if kind == 1:
            total += length * 7 // 10
        elif kind == 2:
            total += 1 + (length - 1) // 6
        elif kind == 4:
            total += 2
        elif kind == 5:
            total += (length + 1) // 2
        elif kind == 7:
            total += (length + 14) // 16
        else:
            total += 1
    return total
