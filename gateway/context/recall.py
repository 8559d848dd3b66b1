"""Recall: excerpts of the folded part that bear on the current question."""

from collections.abc import Sequence
from math import log
from typing import Final

from gateway.context import digest
from gateway.context.digest import Count
from gateway.context.words import Kind, Word, distinct, words
from gateway.context.worth import Entry

HEAD: Final = "[From earlier messages, quoted by the gateway as data:]"
END: Final = "[End of quotes]"


def excerpts(pool: Sequence[Entry], query: str, tokens: int, count: Count, known: frozenset[str]) -> str:
    """Choose the excerpts that bear on a question, in the order of the conversation; empty when nothing does."""
    scores = relevance(pool, distinct(words(query)))
    if not scores or max(scores) <= 0:
        return ""
    chosen = digest.choose(pool, tokens - count(HEAD) - count(END) - 3, count, known=known, relevance=scores)
    if not chosen:
        return ""
    return f"{HEAD}\n{digest.render(pool, chosen)}\n{END}"


def relevance(pool: Sequence[Entry], asked: Sequence[Word]) -> list[float]:
    """How much each line bears on a question: its own words, and some of its message's and its neighbours'."""
    keys = {word.key for word in asked}
    counts: dict[str, int] = {}
    for entry in pool:
        for word in entry.line.words:
            if word.key in keys:
                counts[word.key] = counts.get(word.key, 0) + 1
    if not counts:
        return []
    total = len(pool)
    worth = {key: log(1 + (total - n + 0.5) / (n + 0.5)) for key, n in counts.items()}
    best: dict[int, float] = {}
    own: list[float] = []
    for entry in pool:
        score = sum(
            worth[word.key] * (1.3 if word.kind > Kind.PLAIN else 1.0) for word in entry.line.words if word.key in worth
        )
        score /= 0.6 + 0.4 * entry.line.size / 25
        own.append(score)
        best[entry.index] = max(best.get(entry.index, 0.0), score)
    order = sorted(best)
    near: dict[int, float] = {}
    for place, index in enumerate(order):
        before = best[order[place - 1]] if place else 0.0
        after = best[order[place + 1]] if place + 1 < len(order) else 0.0
        near[index] = max(before, after)
    top = max(best.values()) or 1.0
    return [
        ((0.6 * score + 0.3 * best[entry.index] + 0.1 * near[entry.index]) / top) ** 2
        for entry, score in zip(pool, own, strict=True)
    ]
