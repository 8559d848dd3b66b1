"""Fill what is left of the quotes' place, once the lines that bear on the question have been found."""

from collections.abc import Collection, Iterator
from typing import Final

from gateway.context.choose import digest, recall
from gateway.context.choose.line import CALL, RECORD
from gateway.context.choose.worth import LinePool
from gateway.context.count.counter import CountText

FRAME: Final = 26
"""Tokens of a frame without rows, in the vocabulary that needs most."""
LEAST: Final = 16
"""Tokens; a smaller rest seldom holds a line."""
MESSAGE: Final = 4.0
"""Tokens of the beginning of another message's line."""


def with_facts(  # noqa: PLR0917  # a search has that many sides
    pool: LinePool, found: list[int], most: int, count: CountText, hidden: Collection[int], known: frozenset[str]
) -> list[int]:
    """Add the calls and records with the most new facts, beyond those that are ``known``."""
    left = most - _size(pool, found, count)
    if left < LEAST or not pool.called:
        return found
    chosen = set(found)
    free = {
        place: 1.0
        for place, line in enumerate(pool.lines)
        if line.sort in _STRUCTURED and place not in hidden and place not in chosen
    }
    return sorted({*found, *digest.choose(pool, left, count, known=known, relevance=free)}) if free else found


def with_wishes(  # noqa: PLR0917  # a search has that many sides
    pool: LinePool, found: list[int], most: int, count: CountText, hidden: Collection[int], noted: Collection[int]
) -> list[int]:
    """Add the standing wishes that neither the note nor the quotes have: first what may have taken back one that is shown."""
    left = float(most - _size(pool, found, count))
    shown = {*found, *noted}
    added: list[int] = []
    for place in dict.fromkeys([*_revocations(pool, shown), *pool.wishes.ranked]):
        cost = pool.lines[place].size + 1 + MESSAGE
        if place not in shown and place not in hidden and cost <= left:
            left -= cost
            added.append(place)
    # The estimate may be too low; the least sure go first.
    while added and _size(pool, sorted({*found, *added}), count) > most:
        del added[-max(len(added) // 8, 1) :]
    return sorted({*found, *added}) if added else found


def _revocations(pool: LinePool, shown: Collection[int]) -> Iterator[int]:
    """Return the sentences that may have taken back a wish that is shown."""
    for place in pool.wishes.ranked:
        if place in shown and (later := pool.wishes.revocations.get(place)):
            yield later


def with_newest(pool: LinePool, found: list[int], most: int, count: CountText, hidden: Collection[int]) -> list[int]:
    """Add lines of any kind: of the newest message first, each from its beginning on."""
    for _ in range(3):
        left = float(most - _size(pool, found, count))
        if left < LEAST:
            break
        added: list[int] = []
        for place, cost in _newest(pool, {*found, *hidden}):
            if left < cost:
                break
            left -= cost
            added.append(place)
        more = sorted([*found, *added])
        # The estimate may be too low; what was added last goes first.
        while added and (size := _size(pool, more, count)) > most:
            del added[min(int(len(added) * most / size), len(added) - 1) :]
            more = sorted([*found, *added])
        if not added:
            break
        found = more
    return found


_STRUCTURED: Final = frozenset({RECORD, CALL})


def _newest(pool: LinePool, taken: Collection[int]) -> Iterator[tuple[int, float]]:
    """Yield the positions of lines, the newest message's first, and their approximate tokens."""
    for message in reversed(pool.order):
        opening = MESSAGE
        for place in pool.places[message]:
            line = pool.lines[place]
            if place not in taken and place not in pool.gone:
                yield place, line.size + 1 + opening
                opening = 0.0


def _size(pool: LinePool, found: list[int], count: CountText) -> int:
    return count(recall.render(pool, found)) if found else FRAME
