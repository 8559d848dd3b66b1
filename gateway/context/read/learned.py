"""Learned points of a text: how much its words and pairs of words sound like a standing wish, a revocation, or a request.

The weights were learned from sentences written for it, in 37 languages, those of requests in 24 (`python -m benchmarks.recall.learn`). The points of wishes and
revocations are added to those of the classes of words in `wishes`, and were learned as such an addition.
"""

import pkgutil
import re
import sys
from itertools import pairwise
from typing import Final, NamedTuple

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


def features(sentence: str) -> set[Feature]:
    """Return the words of a sentence and the pairs of neighbours; in scripts without spaces each character is a word."""
    text = sentence[:MOST_CHARACTERS].lower()
    if text.isascii():
        text = text.encode().translate(_ASCII).decode().replace("00", "0").replace("00", "0").replace("00", "0")
    else:
        text = _MARKS.sub(EDGE, _UNSPACED.sub(r" \g<0> ", _NUMBER.sub("0", text.replace("’", "'"))))
        text = text.replace("？", "?")
    parts = f"^{text}^".replace("?", " ?^").replace(EDGE, f" {EDGE} ").split()
    return {*parts, *pairwise(parts)}


def read(text: str) -> dict[Feature, complex]:
    """Return the weights in a text, in tenths: each row has both weights and the features that have them.

    Each pair of weights is one complex number: the weight for wishes is its real part, the weight for revocations its imaginary
    part. So one sum adds both.
    """
    weights: dict[Feature, complex] = {}
    for row in text.splitlines():
        wish, revocation, those = row.split("\t")
        both = complex(int(wish), int(revocation))
        for feature in those.split("|"):
            # One object for each word, and one for the weights of a row: 1.2 MB less.
            one, other = [sys.intern(word) for word in feature.partition(" ")[::2]]
            weights[(one, other) if other else one] = both
    return weights


def _file(name: str) -> str:
    return (pkgutil.get_data(__package__, name) or b"").decode()


WEIGHTS: Final = read(_file("learned.txt"))
"""The two weights of each feature. They are read once, with the module."""
REQUEST_WEIGHTS: Final = read(_file("learned_requests.txt"))
"""Each feature with its weight for requests, in tenths, as the real part."""


def points_of(sentence: str) -> SentencePoints:
    """Return the learned points of a sentence. Every sentence has an edge, so the weight of the edge is a constant."""
    points = sum(filter(None, map(WEIGHTS.get, features(sentence))), 0j) / TENTHS
    return SentencePoints(points.real, points.imag)


def request_points(message: str) -> float:
    """Return how much a message sounds like a request for something that was said, by its last `MOST_CHARACTERS`: a logarithm of odds."""
    return sum(filter(None, map(REQUEST_WEIGHTS.get, features(message[-MOST_CHARACTERS:]))), 0j).real / TENTHS
