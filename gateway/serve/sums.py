"""The sums of all records that match some filters. They are computed one at a time, with bounded work.

Each page of records is read from the store and added in a thread. Then follows a pause as long as that took, so summing uses half a core
at most. Results are cached, longer if they took longer, so an open dashboard uses a twentieth of a core at most.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from gateway.observe.shape import RecordJson
from gateway.observe.sums import Sums
from gateway.state.records.base import Query

PAGE: Final = 1000
"""Records that are read at once, 1.5 MB. Chosen: some hundredths of a second of work."""
MOST_SUMMED: Final = 100_000
"""Records that one sum covers; the result says that older ones are left out. Chosen: some seconds of work. `turnfold report` has no bound."""
LIFETIME_FACTOR: Final = 20.0
"""A result is cached for this many times the time that it took."""
SHORTEST_LIFETIME_S: Final = 1.0
"""Seconds for which each result is cached at least."""
MOST_KEPT: Final = 16
"""Cached results, each for other filters."""

Find = Callable[[Query], Awaitable[list[RecordJson]]]
"""Returns records, newest first."""


class Summed(msgspec.Struct, frozen=True):
    """Sums as JSON, and the time until which they are valid."""

    value: dict[str, Any]
    until: float


class Summing:
    """The cached sums of one process, by their filters."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._one_at_a_time = asyncio.Lock()
        self._kept: dict[str, Summed] = {}

    async def sums(self, name: str, query: Query, pages: AsyncIterator[list[RecordJson]], sums: Sums) -> dict[str, Any]:
        """Return the sums for the filters with this name: from the cache, or computed from these pages."""
        async with self._one_at_a_time:
            kept = self._kept.pop(name, None)
            if kept is None or kept.until <= self._clock():
                kept = await self._compute(query, pages, sums)
            self._kept[name] = kept
            while len(self._kept) > MOST_KEPT:
                del self._kept[next(iter(self._kept))]
            return kept.value

    def clear(self) -> None:
        """Drop all sums: records were deleted."""
        self._kept.clear()

    async def _compute(self, query: Query, pages: AsyncIterator[list[RecordJson]], sums: Sums) -> Summed:
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
        value = await asyncio.to_thread(sums.as_json)
        now = self._clock()
        value |= {"complete": complete, "at": time.time(), "took_s": round(now - started, 3)}
        return Summed(value, now + max(LIFETIME_FACTOR * (now - started), SHORTEST_LIFETIME_S))


def _add(sums: Sums, query: Query, page: list[RecordJson]) -> None:
    for record in page:
        if query.matches(record):
            sums.add(record)


async def pages(first: Find, later: Find, query: Query) -> AsyncIterator[list[RecordJson]]:
    """Yield all records of a period in pages, newest first. ``first`` finds the first page, also in the memory of other workers;
    ``later`` finds the others, in the store."""
    wanted = replace(
        query, key="", model="", limit=PAGE
    )  # a store that has no index for these reads all of them anyway
    find = first
    while page := await find(wanted):
        yield page
        if len(page) < PAGE:
            return
        wanted, find = replace(wanted, until=page[-1]["at"]), later
