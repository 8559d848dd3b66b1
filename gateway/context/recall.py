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
    scores = {place: score for place, score in relevance(pool, words(query), ASKED if asks(query) else TOLD).items() if place not in skip}
    room = tokens - count(note.QUOTES) - count(note.END) - 3
    return digest.choose(pool, room, count, relevance=scores) if scores and room > 0 else []


def relevance(pool: Pool, asked: Collection[Word], least: float) -> dict[int, float]:
    """How much lines bear on a question, by position: by their own words, and by their message's and its neighbours'."""
    keys = frozenset(word.key for word in asked)
    hits = [
        (place, keys & entry.line.keys)
        for place, entry in enumerate(pool.entries)
        if not keys.isdisjoint(entry.line.keys)
    ]
    counts: dict[str, int] = {}
    for _, found in hits:
        for key in found:
            counts[key] = counts.get(key, 0) + 1
    total = len(pool.entries)
    worth = {
        word.key: log(1 + (total - counts[word.key] + 0.5) / (counts[word.key] + 0.5))
        * (1.3 if word.kind > Kind.PLAIN else 1.0)
        for word in asked
        if word.key in counts
    }
    asked_for = sum(worth.get(word.key, log(1 + 2 * total)) for word in asked)
    own: dict[int, float] = {}
    best: dict[int, float] = {}
    for place, found in hits:
        entry = pool.entries[place]
        met = sum(worth[key] for key in found)
        if met < least * asked_for:
            continue
        score = met / (0.6 + 0.016 * entry.line.size)
        own[place] = score
        best[entry.index] = max(best.get(entry.index, 0.0), score)
    return _spread(pool, own, best) if best else {}


def _spread(pool: Pool, own: dict[int, float], best: dict[int, float]) -> dict[int, float]:
    """Let lines share in the score of their message and of the messages next to it: an answer seldom repeats its question."""
    order = list(dict.fromkeys(entry.index for entry in pool.entries))
    near: dict[int, float] = {}
    for place, index in enumerate(order):
        before = best.get(order[place - 1], 0.0) if place else 0.0
        after = best.get(order[place + 1], 0.0) if place + 1 < len(order) else 0.0
        near[index] = max(before, after)
    top = max(best.values())
    scores: dict[int, float] = {}
    for place, entry in enumerate(pool.entries):
        score = best.get(entry.index, 0.0) if entry.index in pool.brief else own.get(place, 0.0)
        score = 0.6 * score + 0.3 * best.get(entry.index, 0.0) + 0.1 * near[entry.index]
        if score > NEAR * top:
            scores[place] = (score / top) ** 2
    return scores


def render(pool: Pool, positions: Sequence[int]) -> str:
    """Write the block of quotes; empty when there are none."""
    return f"{note.QUOTES}\n{digest.render(pool.entries, positions)}\n{note.END}" if positions else ""
