"""Recall: excerpts of the folded part that bear on the current question."""

from collections.abc import Collection, Sequence
from math import log
from typing import Final

from gateway.context import digest, note
from gateway.context.digest import Count
from gateway.context.signals import asks
from gateway.context.words import Kind, Word, words
from gateway.context.worth import Pool

ASKED: Final = 0.08
TOLD: Final = 0.25
"""Of all that a message is about, by the rarity of its words, a line must have so much to be quoted: little where the
message asks something, more where it only tells. Quotes cost part of a cached prefix at the next turn."""
NEAR: Final = 0.5
"""Of the best line's score, another line must have so much."""


def excerpts(pool: Pool, query: str, tokens: int, count: Count, skip: Collection[int]) -> list[int]:
    """Choose the lines that bear on a question, by position; none when nothing does.

    ``skip`` holds the positions of lines that the model sees anyway or must not see.
    """
    scores = {
        place: score
        for place, score in relevance(pool, words(query), ASKED if asks(query) else TOLD).items()
        if place not in skip
    }
    room = tokens - count(note.QUOTES) - count(note.END) - 3
    return digest.choose(pool, room, count, relevance=scores) if scores and room > 0 else []


def relevance(pool: Pool, asked: Collection[Word], least: float) -> dict[int, float]:
    """How much lines bear on a question, by position: by their own words, and by their message's and its neighbours'."""
    total = len(pool.entries)
    asked_for = 0.0
    met: dict[int, float] = {}
    for word in asked:
        places = pool.where.get(word.key, ())
        worth = log(1 + (total - len(places) + 0.5) / (len(places) + 0.5)) * (1.3 if word.kind > Kind.PLAIN else 1.0)
        asked_for += worth
        for place in places:
            met[place] = met.get(place, 0.0) + worth
    own: dict[int, float] = {}
    best: dict[int, float] = {}
    for place, score in met.items():
        if score >= least * asked_for:
            entry = pool.entries[place]
            own[place] = score / (0.6 + 0.016 * entry.line.size)
            best[entry.message] = max(best.get(entry.message, 0.0), own[place])
    return _spread(pool, own, best) if best else {}


def _spread(pool: Pool, own: dict[int, float], best: dict[int, float]) -> dict[int, float]:
    """Let lines share in the score of their message and of those next to it: an answer seldom repeats its question."""
    near: dict[int, float] = {}
    for place, index in enumerate(pool.order):
        score = best.get(index)
        if score is not None:
            near.setdefault(index, 0.0)
            for other in pool.order[max(place - 1, 0) : place + 2]:
                if other != index:
                    near[other] = max(near.get(other, 0.0), score)
    top = max(best.values())
    scores: dict[int, float] = {}
    for index, beside in near.items():
        message = best.get(index, 0.0)
        for place in pool.places[index]:
            line = message if index in pool.brief else own.get(place, 0.0)
            score = 0.6 * line + 0.3 * message + 0.1 * beside
            if score > NEAR * top:
                scores[place] = (score / top) ** 2
    return scores


def render(pool: Pool, positions: Sequence[int]) -> str:
    """Write the block of quotes; empty when there are none."""
    return f"{note.QUOTES}\n{digest.render(pool.entries, positions)}\n{note.END}" if positions else ""
