"""The digest: choose the lines of the folded part with the most new facts per token."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final

from gateway.context.choose.greedy import Greedy
from gateway.context.choose.rows import render
from gateway.context.choose.weights import SURE_WISHES_SHARE_WITH_CALLS, WISHES_SHARE_OF_CHAT, WISHES_SHARE_WITH_CALLS
from gateway.context.choose.worth import LinePool
from gateway.context.count.counter import CountText

FULL_SHARE: Final = 0.97
"""Share of the room at which the choice ends. Chosen: sizes are estimates, and the rest seldom holds a line."""

TRIED: Final = 2500
"""Tokens that are counted, at most, to find out which shorter lines fit where a longer one does not. Chosen: six lines of a digest of 400; twice as many find no more, for 2 % of a next turn."""


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
        if pool.has_many_calls:
            greedy.take(pool.wishes.sure, tokens * SURE_WISHES_SHARE_WITH_CALLS)
        few = pool.has_many_calls or pool.dialogue.between_people
        greedy.take(pool.wishes.ranked, tokens * (WISHES_SHARE_WITH_CALLS if few else WISHES_SHARE_OF_CHAT))
    fill = float(tokens)
    spent = before = 0
    for _ in range(4):
        greedy.grow(fill)
        if len(greedy.chosen) == before:
            break
        before = len(greedy.chosen)
        spent = count(render(pool, sorted(greedy.chosen)))
        if spent > tokens * FULL_SHARE:
            break
        fill = greedy.used + (tokens - spent) * max(greedy.used / max(spent, 1), 0.5)
    chosen = greedy.chosen if spent <= tokens else _fitting(pool, greedy.together, tokens, spent, count)
    return sorted(chosen)


def _fitting(
    pool: LinePool, together: Sequence[tuple[int, ...]], tokens: int, spent: int, count: CountText
) -> list[int]:
    """Return as many of the lines as fit, in the order of their choice; ``spent`` tokens are those of all of them.

    A line for which there is no room gives way to shorter ones behind it, except where these are of its record or of a wish that it
    takes back.
    """
    kept, chosen = len(together), list(chain.from_iterable(together))
    while kept and spent > tokens:
        kept = min(int(kept * tokens / spent), kept - 1)
        chosen = list(chain.from_iterable(together[:kept]))
        spent = count(render(pool, sorted(chosen)))
    if not pool.has_calls:
        return chosen  # the quotes of a chat take what its digest leaves
    left_out: set[tuple[int, int]] = set()
    for lines in together[kept : kept + TRIED // max(tokens, 1)]:
        last = lines[-1]
        record = pool.message_of[last], pool.lines[last].group
        revocation = pool.wishes.revocations.get(last, last)
        if (
            record not in left_out
            and (revocation == last or revocation in chosen)
            and count(render(pool, sorted([*chosen, *lines]))) <= tokens
        ):
            chosen += lines
        else:
            left_out.add(record)
    return chosen
