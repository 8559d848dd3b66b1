"""Look-up: which of many old messages bear on a question, found in their texts alone, without reading them as lines."""

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate
from math import log, sqrt
from typing import Final

from gateway.context.choose.weights import NEIGHBOUR_DISTANCE, NEIGHBOUR_SHARE, PINNED_WORD
from gateway.context.choose.words import words

MOST_SOUGHT: Final = 48
"""Different words of a question that are looked for, the last ones: what is asked stands at the end."""
SEARCHED: Final = 4_000_000
"""Characters of old messages, the newest first, that are looked through: a few milliseconds of work for each word."""
COMMON_SHARE: Final = 1 / 3
"""Share of the texts or lines. A word in more of them, and in more than `FEW`, distinguishes none."""
FEW: Final = 30
"""Texts or lines; see `COMMON_SHARE`."""
OPENING: Final = 60
"""Characters that the beginning of a message counts as, so that very short ones get no advantage."""


def bearing(
    texts: Sequence[str], roles: Sequence[str], query: str, known: Collection[str], speakers: Mapping[str, float]
) -> list[int]:
    """Return the positions of the texts that bear on a question, the best first.

    They are scored as passages are in `recall`: by the square of the rarity of the question's words in them, and by those in
    the messages around them, divided by the root of their size. ``known`` are the words of pinned messages, ``speakers``
    factors by role.
    """
    skipped = _beyond(texts)
    lowered = [text.lower() for text in texts[skipped:]]
    joined = "\n".join(lowered)
    starts = [0, *accumulate([len(text) + 1 for text in lowered])]
    own: dict[int, float] = {}
    for key in [word.key for word in words(query)][-MOST_SOUGHT:]:
        found = _having(joined, starts, key)
        if not distinguishes(len(found), len(lowered)):
            continue
        worth = log((len(lowered) + 1) / (len(found) + 0.5)) ** 2 * (PINNED_WORD if key in known else 1.0)
        for position in found:
            own[position] = own.get(position, 0.0) + worth
    around = beside(own, len(lowered))
    scores: dict[int, float] = {}
    for place in own.keys() | around.keys():
        position, score = place + skipped, own.get(place, 0.0) + around.get(place, 0.0)
        scores[position] = score * speakers.get(roles[position], 1.0) / sqrt(len(texts[position]) + OPENING)
    return sorted(scores, key=lambda position: (-scores[position], -position))


def distinguishes(having: int, total: int) -> bool:
    """Return whether a word that so many texts or lines have tells these from the others."""
    return having <= max(total * COMMON_SHARE, FEW)


def beside(own: Mapping[int, float], number: int) -> dict[int, float]:
    """Return the shares that messages, by rank, get in the scores of those beside them; the better one of each distance counts."""
    shares: dict[int, float] = {}
    for away in range(1, NEIGHBOUR_DISTANCE + 1):
        best: dict[int, float] = {}
        for place, score in own.items():
            for near in (place - away, place + away):
                if 0 <= near < number:
                    best[near] = max(best.get(near, 0.0), NEIGHBOUR_SHARE / away * score)
        for near, score in best.items():
            shares[near] = shares.get(near, 0.0) + score
    return shares


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
