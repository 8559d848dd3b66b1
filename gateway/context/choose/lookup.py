"""Look-up: which of many old messages hold the rare words of a question, told from their texts alone, without reading them as lines."""

from bisect import bisect_right
from collections.abc import Collection, Sequence
from itertools import accumulate
from math import log
from typing import Final

from gateway.context.choose.weights import PINNED_WORD
from gateway.context.choose.words import words

MOST_SOUGHT: Final = 48
"""Different words of a question that are looked for, the last ones: what is asked stands at the end."""
SEARCHED: Final = 4_000_000
"""Characters of old messages, the newest first, that are looked through: a few milliseconds of work for each word."""


def holding(texts: Sequence[str], query: str, known: Collection[str], most: int) -> list[int]:
    """The positions of the texts that hold a question's rarest words, the best first, at most ``most`` of them.

    Rare words count by the square of their rarity, as in `recall`; ``known`` are the words of pinned messages.
    """
    skipped = _beyond(texts)
    lowered = [text.lower() for text in texts[skipped:]]
    joined = "\n".join(lowered)
    starts = [0, *accumulate([len(text) + 1 for text in lowered])]
    scores: dict[int, float] = {}
    for key in [word.key for word in words(query)][-MOST_SOUGHT:]:
        found = _having(joined, starts, key)
        worth = log((len(lowered) + 1) / (len(found) + 0.5)) ** 2 * (PINNED_WORD if key in known else 1.0)
        for position in found:
            scores[position] = scores.get(position, 0.0) + worth
    best = sorted(scores, key=lambda position: (-scores[position], -position))
    return [position + skipped for position in best[:most]]


def _beyond(texts: Sequence[str]) -> int:
    """How many texts, from the first on, are too old to be looked through."""
    left = SEARCHED
    for position in range(len(texts) - 1, -1, -1):
        left -= len(texts[position])
        if left < 0:
            return position + 1
    return 0


def _having(joined: str, starts: Sequence[int], key: str) -> list[int]:
    """The positions of the texts that have a word, each once; ``starts`` says where in ``joined`` each begins."""
    found: list[int] = []
    at = joined.find(key)
    while at >= 0:
        position = bisect_right(starts, at) - 1
        found.append(position)
        at = joined.find(key, starts[position + 1])
    return found
