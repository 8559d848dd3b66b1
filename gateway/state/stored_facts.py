"""Learned facts in the store: how they are read, checked, and written in the background."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from gateway.state.store.base import Store
from gateway.state.tasks import Tasks

Read = TypeVar("Read")


class StoredFacts:
    """The facts in the store, which all processes share. ``ignored`` is called with the kind of each value that cannot be our own."""

    def __init__(self, store: Store, tasks: Tasks, ignored: Callable[[str], None]) -> None:
        self._store = store
        self._tasks = tasks
        self._ignored = ignored

    async def get(self, kind: str, name: str, read: Callable[[bytes], Read | None]) -> Read | None:
        """Return a fact, decoded by ``read``; None without one that can be read."""
        return self.decoded(kind, await self._store.get(kind, name), read)

    async def get_many(self, kind: str, names: Sequence[str]) -> dict[str, bytes]:
        """Return the facts with these names that are in the store, not decoded."""
        return await self._store.get_many(kind, names)

    async def names(self, kind: str, most: int) -> list[str]:
        """Return the names of at most ``most`` facts, for operators."""
        return await self._store.names(kind, most)

    def decoded(self, kind: str, stored: bytes | None, read: Callable[[bytes], Read | None]) -> Read | None:
        """Decode a stored fact; one that cannot be our own is ignored and counted."""
        if stored is None:
            return None
        value = read(stored)
        if value is None:
            self._ignored(kind)
        return value

    def put(self, kind: str, name: str, value: bytes, ttl_s: float, scope: str = "") -> None:
        """Write a fact in the background."""
        self._tasks.start(self._store.put(kind, name, value, ttl_s=ttl_s, scope=scope), "learn", must_finish=True)
