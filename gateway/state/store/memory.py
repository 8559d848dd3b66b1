"""A store in this process's memory: for one worker, for tests, and when nothing may be written to disk."""

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final

import msgspec

DEFAULT_MAX_BYTES: Final = 64 * 1024 * 1024
"""Bytes. Chosen for a small container."""
ENTRY_OVERHEAD: Final = 300
"""Bytes of an entry besides its value: key, scope, record and table slots, measured on CPython 3.11."""


class StoredValue(msgspec.Struct, frozen=True):
    value: bytes
    expires: float
    scope: str


class MemoryStore:
    """Values in a dictionary; at ``max_bytes`` the least recently used is dropped first."""

    def __init__(self, *, max_bytes: int = DEFAULT_MAX_BYTES, clock: Callable[[], float] = time.monotonic) -> None:
        self._entries: OrderedDict[tuple[str, str], StoredValue] = OrderedDict()
        self._claims: dict[str, float] = {}
        self._counts: dict[str, tuple[int, float]] = {}
        self._bytes = 0
        self._max_bytes = max_bytes
        self._clock = clock

    async def get(self, kind: str, key: str) -> bytes | None:
        return (await self.get_many(kind, [key])).get(key)

    async def get_many(self, kind: str, keys: Sequence[str]) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        now = self._clock()
        for key in keys:
            entry = self._entries.get((kind, key))
            if entry is None:
                continue
            if entry.expires <= now:
                self._drop((kind, key))
            else:
                self._entries.move_to_end((kind, key))
                found[key] = entry.value
        return found

    async def names(self, kind: str, most: int) -> list[str]:
        now = self._clock()
        alive = (key for (sort, key), entry in self._entries.items() if sort == kind and entry.expires > now)
        return list(islice(alive, most))

    async def put(self, kind: str, key: str, value: bytes, *, ttl_s: float, scope: str = "") -> None:
        self._drop((kind, key))
        self._entries[kind, key] = StoredValue(value, self._clock() + ttl_s, scope)
        self._bytes += len(value) + ENTRY_OVERHEAD
        while self._bytes > self._max_bytes:
            self._drop(next(iter(self._entries)))

    async def claim(self, key: str, *, ttl_s: float) -> bool:
        now = self._clock()
        if self._claims.get(key, now) > now:
            return False
        self._claims = {held: until for held, until in self._claims.items() if until > now}
        self._claims[key] = now + ttl_s
        return True

    async def release(self, key: str) -> None:
        self._claims.pop(key, None)

    async def add(self, key: str, amount: int, *, ttl_s: float) -> int:
        now = self._clock()
        count, until = self._counts.get(key, (0, 0.0))
        if until <= now:
            self._counts = {other: held for other, held in self._counts.items() if held[1] > now}
            count, until = 0, now + ttl_s
        self._counts[key] = count + amount, until
        return count + amount

    async def forget(self, scope: str | None) -> int:
        going = [name for name, entry in self._entries.items() if scope is None or within(entry.scope, scope)]
        for name in going:
            self._drop(name)
        if scope is None:
            self._claims.clear()
            self._counts.clear()
        return len(going)

    async def close(self) -> None:
        self._entries.clear()
        self._claims.clear()
        self._counts.clear()
        self._bytes = 0

    def _drop(self, name: tuple[str, str]) -> None:
        entry = self._entries.pop(name, None)
        if entry is not None:
            self._bytes -= len(entry.value) + ENTRY_OVERHEAD


def within(scope: str, outer: str) -> bool:
    """Return whether a scope equals the given one, or belongs to the given key hash."""
    return scope == outer or scope.startswith(f"{outer}.")
