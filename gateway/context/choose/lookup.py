"""Look-up: find the relevant ones among many old messages by their texts alone, without reading them as lines."""

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate
from math import log, sqrt
from typing import Final

from gateway.context.read.words import words
from gateway.context.weights import NEIGHBOUR_DISTANCE, NEIGHBOUR_SHARE, PINNED_WORD

MOST_SEARCHED_WORDS: Final = 48
"""Different words of a question that are searched, the last ones: what is asked is at the end."""
MOST_SEARCHED_CHARACTERS: Final = 4_000_000
"""Characters of old messages, the newest first, that are searched: a few milliseconds for each word."""
COMMON_SHARE: Final = 1 / 3
"""Share of the texts or lines. A word in more of them, and in more than `COMMON_COUNT`, distinguishes none."""
COMMON_COUNT: Final = 30
"""Number of texts or lines; see `COMMON_SHARE`."""
OPENING_CHARACTERS: Final = 60
"""Characters that are added to the size of a message, so that very short ones get no advantage."""


def most_relevant(
    texts: Sequence[str],
    roles: Sequence[str],
    query: str,
    pinned_words: Collection[str],
    role_factors: Mapping[str, float],
) -> list[int]:
    """Return the positions of the texts that are relevant to a question, the most relevant first.

    The scores are like those of passages in `relevance`. A word of the question has the square of its rarity as its weight. A
    text gets the weights of its words and shares of its neighbours' scores, multiplied by the factor of its role and divided
    by the square root of its size. ``pinned_words`` are the words of pinned messages.
    """
    skipped = _unsearched(texts)
    lowered = [text.lower() for text in texts[skipped:]]
    joined = "\n".join(lowered)
    starts = [0, *accumulate([len(text) + 1 for text in lowered])]
    own_scores: dict[int, float] = {}
    for key in [word.key for word in words(query)][-MOST_SEARCHED_WORDS:]:
        texts_with_word = _texts_with(joined, starts, key)
        if not distinguishes(len(texts_with_word), len(lowered)):
            continue
        weight = log((len(lowered) + 1) / (len(texts_with_word) + 0.5)) ** 2 * pinned_factor(key, pinned_words)
        for number in texts_with_word:
            own_scores[number] = own_scores.get(number, 0.0) + weight
    shares = neighbour_shares(own_scores, len(lowered))
    scores: dict[int, float] = {}
    for number in own_scores.keys() | shares.keys():
        position, score = number + skipped, own_scores.get(number, 0.0) + shares.get(number, 0.0)
        scores[position] = (
            score * role_factors.get(roles[position], 1.0) / sqrt(len(texts[position]) + OPENING_CHARACTERS)
        )
    return sorted(scores, key=lambda position: (-scores[position], -position))


def distinguishes(count: int, total: int) -> bool:
    """Return whether a word in ``count`` of ``total`` texts or lines is rare enough to distinguish these."""
    return count <= max(total * COMMON_SHARE, COMMON_COUNT)


def pinned_factor(key: str, pinned_words: Collection[str]) -> float:
    """Return the factor for a word of a question, given the words of pinned messages."""
    return PINNED_WORD if key in pinned_words else 1.0


def neighbour_shares(own_scores: Mapping[int, float], number: int) -> dict[int, float]:
    """Return for each of ``number`` messages, by rank, what it gets from its neighbours' scores. Of two neighbours at one
    distance the higher score counts."""
    shares: dict[int, float] = {}
    for distance in range(1, NEIGHBOUR_DISTANCE + 1):
        best: dict[int, float] = {}
        for rank, score in own_scores.items():
            for neighbour in (rank - distance, rank + distance):
                if 0 <= neighbour < number:
                    best[neighbour] = max(best.get(neighbour, 0.0), NEIGHBOUR_SHARE / distance * score)
        for neighbour, score in best.items():
            shares[neighbour] = shares.get(neighbour, 0.0) + score
    return shares


def _unsearched(texts: Sequence[str]) -> int:
    """Return the number of texts, from the first on, that are too old to be searched."""
    left = MOST_SEARCHED_CHARACTERS
    for position in range(len(texts) - 1, -1, -1):
        left -= len(texts[position])
        if left < 0:
            return position + 1
    return 0


def _texts_with(joined: str, starts: Sequence[int], key: str) -> list[int]:
    """Return the numbers of the texts that have a word, each once. ``starts`` has the position in ``joined`` where each
    begins."""
    numbers: list[int] = []
    at = joined.find(key)
    while at >= 0:
        number = bisect_right(starts, at) - 1
        numbers.append(number)
        at = joined.find(key, starts[number + 1])
    return numbers
