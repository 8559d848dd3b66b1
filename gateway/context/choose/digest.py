"""The digest: choose the lines of the folded part with the most new facts per token."""

from collections.abc import Mapping
from typing import Final

from gateway.context.choose.greedy import Greedy
from gateway.context.choose.rows import render
from gateway.context.choose.weights import UNSURE_WISHES_OF_AGENT, WISHES_OF_AGENT, WISHES_OF_CHAT
from gateway.context.choose.worth import LinePool
from gateway.context.count.counter import CountText

FULL_SHARE: Final = 0.97
"""Share of the room at which the choice ends. Chosen: sizes are estimates, and the rest seldom holds a line."""


def choose(
    pool: LinePool,
    tokens: int,
    count: CountText,
    *,
    known: frozenset[str] = frozenset(),
    relevance: Mapping[int, float] | None = None,
) -> list[int]:
    """Choose the lines with the most new facts per token; return their positions in order.

    ``known`` facts are elsewhere in the request. With ``relevance`` only its lines are considered, and their worth is
    multiplied by their relevance to a question.
    """
    greedy = Greedy(pool, known, relevance)
    if relevance is None:
        if pool.called:
            greedy.take(pool.wishes.sure, tokens * WISHES_OF_AGENT)
        greedy.take(pool.wishes.ranked, tokens * (UNSURE_WISHES_OF_AGENT if pool.called else WISHES_OF_CHAT))
    fill = float(tokens)
    chosen: list[int] = []
    spent = 0
    for _ in range(4):
        before = len(chosen)
        greedy.grow(fill)
        chosen = list(greedy.chosen)
        if len(chosen) == before:
            break
        spent = count(render(pool, sorted(chosen)))
        if spent > tokens * FULL_SHARE:
            break
        fill = greedy.used + (tokens - spent) * max(greedy.used / max(spent, 1), 0.5)
    while chosen and spent > tokens:
        del chosen[min(int(len(chosen) * tokens / spent), len(chosen) - 1) :]
        spent = count(render(pool, sorted(chosen)))
    return sorted(chosen)
