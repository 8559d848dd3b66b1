"""Recall: excerpts of the folded part that bear on the current question."""

from collections.abc import Collection, Sequence
from itertools import repeat
from math import log
from typing import Final

from gateway.context import marks
from gateway.context.choose import digest
from gateway.context.choose.cues import asks
from gateway.context.choose.digest import Count
from gateway.context.choose.words import Kind, Word, words
from gateway.context.choose.worth import Pool

ASKED: Final = 0.08
TOLD: Final = 0.25
"""Of all that a message is about, by the rarity of its words, a line must have so much to be quoted: little where the
message asks something, more where it only tells. Quotes cost part of a cached prefix at the next turn."""
NEAR: Final = 0.5
"""Of the best line's score, another line must have so much."""

COMMON: Final = 1 / 3
"""A word that stands in a larger share of the lines, and in more than `FEW` of them, tells none apart."""
FEW: Final = 30


def excerpts(pool: Pool, query: str, tokens: int, count: Count, skip: Collection[int]) -> list[int]:
    """Choose the lines that bear on a question, by position; none when nothing does.

    ``skip`` holds the positions of lines that the model sees anyway or must not see.
    """
    scores = {
        place: score
        for place, score in relevance(pool, words(query), ASKED if asks(query) else TOLD).items()
        if place not in skip
    }
    room = tokens - count(marks.QUOTES) - count(marks.END) - 3
    return digest.choose(pool, room, count, relevance=scores) if scores and room > 0 else []


def relevance(pool: Pool, asked: Collection[Word], least: float) -> dict[int, float]:
    """How much lines bear on a question, by position: by their own words, and by their message's and its neighbours'."""
    total = len(pool.lines)
    worth: dict[str, float] = {}
    for word in asked:
        number = pool.count(word.key)
        if number <= max(total * COMMON, FEW):
            rare = log(1 + (total - number + 0.5) / (number + 0.5))
            worth[word.key] = rare * (1.3 if word.kind > Kind.PLAIN else 1.0)
    needed = least * sum(worth.values())
    bearing = {word: value for key, value in worth.items() for word in pool.spellings.get(key, ())}
    own: dict[int, float] = {}
    best: dict[int, float] = {}
    # Looked up for every line: bound methods spare a third of it.
    elsewhere, value, nothing = frozenset(bearing).isdisjoint, bearing.get, repeat(0.0)
    for index, facts in pool.facts.items():
        if elsewhere(facts):
            continue
        for place, line in zip(pool.places[index], pool.readings[index].lines, strict=True):
            if elsewhere(line.words):
                continue
            score = sum(map(value, line.words, nothing))
            if score >= needed:
                own[place] = score / (0.6 + 0.016 * line.size)
                best[index] = max(best.get(index, 0.0), own[place])
    return _spread(pool, own, best) if best else {}


def _spread(pool: Pool, own: dict[int, float], best: dict[int, float]) -> dict[int, float]:
    """Let lines share in the score of their message and of those next to it: an answer seldom repeats its question."""
    near = dict.fromkeys(best, 0.0)
    for index, score in best.items():
        rank = pool.rank[index]
        for other in pool.order[max(rank - 1, 0) : rank + 2]:
            if other != index:
                near[other] = max(near.get(other, 0.0), score)
    top = max(best.values())
    scores: dict[int, float] = {}
    for index, beside in near.items():
        message = best.get(index, 0.0)
        if 0.9 * message + 0.1 * beside <= NEAR * top:
            continue
        for place in pool.places[index]:
            line = message if index in pool.brief else own.get(place, 0.0)
            score = 0.6 * line + 0.3 * message + 0.1 * beside
            if score > NEAR * top:
                scores[place] = (score / top) ** 2
    return scores


def render(pool: Pool, positions: Sequence[int]) -> str:
    """Write the block of quotes; empty when there are none."""
    return marks.framed(marks.QUOTES, digest.render(pool, positions)) if positions else ""
