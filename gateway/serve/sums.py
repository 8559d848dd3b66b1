"""The sums of all records that match some filters, made with bounded work, one at a time.

Each page of records is read from the store and added in a thread, with a pause as long as the work took: summing takes half a core at
most. Sums that took long stand longer, so that a page that is left open costs a twentieth of a core at most.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from gateway.observe.shape import Shown
from gateway.observe.sums import Sums
from gateway.state.records.base import Query

PAGE: Final = 1000
"""Records that are read at once, 1.5 MB. Chosen: some hundredths of a second of work."""
MOST_SUMMED: Final = 100_000
"""Records of one sum; of older ones it tells that they are left out. Chosen: some seconds of work; `turnfold report` has no bound."""
STANDS: Final = 20.0
"""So many times longer than a sum took to make, it stands."""
SHORTEST_S: Final = 1.0
"""Seconds that each sum stands at least."""
MOST_KEPT: Final = 16
"""Sums that are kept, each for other filters."""

Find = Callable[[Query], Awaitable[list[Shown]]]
"""Returns records, newest first."""


class Summed(msgspec.Struct, frozen=True):
    """Sums as JSON, and how long they stand."""

    shown: dict[str, Any]
    until: float


class Summing:
    """The sums of one process, by the filters that they were asked with."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._one_at_a_time = asyncio.Lock()
        self._kept: dict[str, Summed] = {}

    async def sums(self, name: str, query: Query, pages: AsyncIterator[list[Shown]], sums: Sums) -> dict[str, Any]:
        """Return the sums for filters with this name: those that stand, or new ones of these pages."""
        async with self._one_at_a_time:
            kept = self._kept.pop(name, None)
            if kept is None or kept.until <= self._clock():
                kept = await self._made(query, pages, sums)
            self._kept[name] = kept
            while len(self._kept) > MOST_KEPT:
                del self._kept[next(iter(self._kept))]
            return kept.shown

    def clear(self) -> None:
        """Drop all sums: records were deleted."""
        self._kept.clear()

    async def _made(self, query: Query, pages: AsyncIterator[list[Shown]], sums: Sums) -> Summed:
        started, complete = self._clock(), True
        added = 0
        async for page in pages:
            before = self._clock()
            await asyncio.to_thread(_add, sums, query, page)
            added += len(page)
            if added >= MOST_SUMMED:
                complete = False
                break
            await asyncio.sleep(self._clock() - before)
        shown = await asyncio.to_thread(sums.shown)
        now = self._clock()
        shown |= {"complete": complete, "at": time.time(), "took_s": round(now - started, 3)}
        return Summed(shown, now + max(STANDS * (now - started), SHORTEST_S))


def _add(sums: Sums, query: Query, page: list[Shown]) -> None:
    for one in page:
        if query.matches(one):
            sums.add(one)


async def pages(first: Find, later: Find, query: Query) -> AsyncIterator[list[Shown]]:
    """Yield all records of a period, newest first: the newest page with what is in the memories of all processes."""
    wanted = replace(
        query, key="", model="", limit=PAGE
    )  # a store that has no index for these reads all of them anyway
    find = first
    while page := await find(wanted):
        yield page
        if len(page) < PAGE:
            return
        wanted, find = replace(wanted, until=page[-1]["at"]), later
