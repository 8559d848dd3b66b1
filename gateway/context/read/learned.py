"""Learned points of a text: how much its words and pairs of words sound like a standing wish, a revocation, or a request.

The weights were learned from sentences written for it, in 37 languages, those of requests in 24 (`python -m benchmarks.recall.learn`). The points of wishes and
revocations are added to those of the classes of words in `wishes`, and were learned as such an addition.
"""

import pkgutil
import re
from functools import cache
from itertools import pairwise
from typing import Final, NamedTuple

import msgspec

from gateway.context.read.number_table import NumberTable

Feature = str | tuple[str, str]
"""A word, or two neighbouring words."""
EDGE: Final = "^"
"""The mark of punctuation: where a clause begins or ends."""
_PUNCTUATION: Final = b'.,;:!()[]{}<>/\\|"*_~=+&%$#@-'
_ASCII: Final = bytes(
    code
    if chr(code) in "abcdefghijklmnopqrstuvwxyz'?^"
    else ord("0")
    if chr(code) in "0123456789"
    else ord("^")
    if code in _PUNCTUATION
    else ord(" ")
    for code in range(256)
)
"""For each ASCII code the replacement of its character: a small letter, a digit, the mark of punctuation, or a space."""
_NUMBER: Final = re.compile(r"\d+")
_UNSPACED: Final = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")
_MARKS: Final = re.compile(r"[^\w\s'?？]|_")
MOST_CHARACTERS: Final = 180
"""The most characters of a text that are read: two lines. Chosen: more would cost a fold of long messages 5 %."""
TENTHS: Final = 10
"""Parts of a point in which the weights are stored: sums of whole numbers are the same in any order."""


class SentencePoints(NamedTuple):
    """Points of a sentence as a wish and as a revocation. They are added to other points."""

    wish: float
    revocation: float


class Weights(msgspec.Struct, frozen=True):
    """The weights of features for wishes and revocations, in tenths: the real and the imaginary part of a number. So one sum adds both.

    Words and pairs are apart, because a dict whose keys are all texts is smaller and quicker.
    """

    words: dict[str, complex]
    pairs: dict[tuple[str, str], complex]

    def of(self, text: str) -> complex:
        """Return the sum of the weights of a text's features."""
        parts = _parts(text)
        words = sum(filter(None, map(self.words.get, {*parts})), 0j)
        return sum(filter(None, map(self.pairs.get, {*pairwise(parts)})), words) / TENTHS


def features(sentence: str) -> set[Feature]:
    """Return the words of a sentence and the pairs of neighbours."""
    parts = _parts(sentence)
    return {*parts, *pairwise(parts)}


def text_of(feature: Feature) -> str:
    """Return a feature as the files name it."""
    return feature if isinstance(feature, str) else " ".join(feature)


def _parts(sentence: str) -> list[str]:
    """Return the words of a sentence in order; in scripts without spaces each character is a word."""
    text = sentence[:MOST_CHARACTERS].lower()
    if text.isascii():
        text = text.encode().translate(_ASCII).decode().replace("00", "0").replace("00", "0").replace("00", "0")
    else:
        text = _MARKS.sub(EDGE, _UNSPACED.sub(r" \g<0> ", _NUMBER.sub("0", text.replace("’", "'"))))
        text = text.replace("？", "?")
    return f"^{text}^".replace("?", " ?^").replace(EDGE, f" {EDGE} ").split()


def read(text: str) -> Weights:
    """Return the weights in a text: each row has two weights, the words that have both, and the pairs that have both."""
    words: dict[str, complex] = {}
    rows = [row.split("\t") for row in text.splitlines()]
    for first, second, those, _ in rows:
        both = complex(int(first), int(second))
        for word in those.split("|"):
            words[word] = both
    words.pop("", None)  # of a row without words
    objects = dict(zip(words, words, strict=True))  # one for each word
    pairs: dict[tuple[str, str], complex] = {}
    for first, second, _, those in rows:
        both = complex(int(first), int(second))
        for pair in those.split("|") if those else ():
            one, _, other = pair.partition(" ")
            pairs[objects.setdefault(one, one), objects.setdefault(other, other)] = both
    return Weights(words, pairs)


@cache
def weights() -> Weights:
    """Return the weights for wishes and for revocations."""
    return read(_bytes_of("learned.txt").decode())


@cache
def request_weights() -> NumberTable:
    """Return the weights for requests, in tenths. Few messages are asked for them, so they are in a table that is small instead of quick."""
    return NumberTable(_bytes_of("learned_requests.txt"))


def _bytes_of(file: str) -> bytes:
    return pkgutil.get_data(__package__, file) or b""


def load() -> None:
    """Read all weights, which takes an eighth of a start. Else the first sentence would wait for it."""
    weights()
    request_weights()


def points_of(sentence: str) -> SentencePoints:
    """Return the learned points of a sentence. Every sentence has an edge, so the weight of the edge is a constant."""
    points = weights().of(sentence)
    return SentencePoints(points.real, points.imag)


def request_points(message: str) -> float:
    """Return how much a message sounds like a request for something that was said, by its last `MOST_CHARACTERS`: a logarithm of odds."""
    table = request_weights()
    return sum(map(table.get, map(text_of, features(message[-MOST_CHARACTERS:])))) / TENTHS
