"""Memory: what one process remembers of messages and of what follows from them, within one budget of bytes.

Nothing in it is the only copy of anything: whatever is forgotten is found out again, at the cost of time. It is made by the shell and handed
in with each request. A fold may run in a thread beside the event loop: each step here is one operation of the interpreter, and where two
threads find the same thing out, one of the results is kept.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Final, Generic, TypeVar

import orjson

from gateway.wire.facts import Entry, Interned, message_size

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

BUDGET: Final = 16 * 2**20
"""Bytes, the default of ``server.memory``: some four conversations of 85,000 tokens with all that was derived from them."""
LONGEST_SHARE: Final = 1 / 8
"""A message that takes a larger share, which has an image or a file in it, is not kept: it would drive out all others."""


class Derived(Entry):
    """A value that follows from several messages."""

    __slots__ = ("value",)

    def __init__(self, value: Any, size: int) -> None:
        super().__init__(size)
        self.value = value


class Memory:
    """Messages by their bytes, and what was derived, by its key; what was not asked for the longest is forgotten first."""

    __slots__ = ("_entries", "_parts", "budget", "size")

    def __init__(self, budget: int = BUDGET) -> None:
        self.budget = budget
        self.size = 0
        """Bytes that are taken now, by estimate."""
        self._entries: OrderedDict[Hashable, Interned | Derived] = OrderedDict()
        self._parts: dict[object, Any] = {}

    def message(self, raw: bytes) -> dict[str, Any] | None:
        """The message with these bytes, read where it is new; None where it is no JSON object."""
        found = self._entries.get(raw)
        if found is not None:
            self._touch(raw)
            return found if isinstance(found, Interned) else None
        value = orjson.loads(raw)
        if type(value) is not dict:
            return None
        size = message_size(raw, value)
        if size > self.budget * LONGEST_SHARE:
            return value
        message = Interned(value, size)
        self._add(raw, message, message.facts)
        return message

    def recall(self, key: Hashable) -> Any:
        """What was kept under a key that is not bytes; None where nothing is."""
        found = self._entries.get(key)
        if found is None:
            return None
        self._touch(key)
        return found.value if isinstance(found, Derived) else None

    def keep(self, key: Hashable, value: T, size: int) -> tuple[T, Entry]:
        """Keep a value that is not None; returned with the entry that is told when the value grows."""
        entry = Derived(value, size)
        self._add(key, entry, entry)
        return value, entry

    def once(self, key: Hashable, make: Callable[[], T], size: int) -> T:
        """Make a value that is not None, or recall the one that was made under the key."""
        found: T | None = self.recall(key)
        return self.keep(key, make(), size)[0] if found is None else found

    def part(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return a part of this memory that stays, made when it is first asked for: it bounds and counts itself, as `Recent` does."""
        found: T | None = self._parts.get(key)
        return self._parts.setdefault(key, make()) if found is None else found

    def count(self, more: int) -> None:
        """Count bytes that were taken, or given back where they are less than none, and forget until the budget is kept."""
        self.size += more
        while self.size > self.budget and self._entries:
            self._forget_oldest()

    def clear(self) -> None:
        """Forget everything."""
        self._parts.clear()
        while self._entries:
            self._forget_oldest()
        self.size = 0

    def _add(self, key: Hashable, value: Interned | Derived, entry: Entry) -> None:
        before = self._entries.pop(key, None)
        if before is not None:
            self._release(before)
        self._entries[key] = value
        entry.grown = self.count
        self.count(entry.size)

    def _touch(self, key: Hashable) -> None:
        try:
            self._entries.move_to_end(key)
        except KeyError:
            return  # forgotten meanwhile by another thread

    def _forget_oldest(self) -> None:
        try:
            _, oldest = self._entries.popitem(last=False)
        except KeyError:
            return
        self._release(oldest)

    def _release(self, value: Interned | Derived) -> None:
        # Both lead back to what is forgotten: without these it would stay until Python looks for cycles.
        if isinstance(value, Interned):
            entry: Entry = value.facts
            value.facts.shrunk = {}
        else:
            entry = value
            value.value = None
        entry.grown = None
        self.size -= entry.size


class Recent(Generic[K, V]):
    """Many small values, in two generations: what was asked for since the last change of generation survives the next.

    ``share`` is the share of the memory's budget that they may take, ``size`` the bytes of a value with its key.
    """

    __slots__ = ("_memory", "_old", "_old_bytes", "_share", "_size", "_young", "_young_bytes")

    def __init__(self, memory: Memory, size: Callable[[K, V], int], share: float) -> None:
        self._memory = memory
        self._size = size
        self._share = share
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}
        self._young_bytes = self._old_bytes = 0

    def recall(self, key: K) -> V | None:
        """Return the value of a key; None where there is none."""
        found = self._young.get(key)
        if found is None and (found := self._old.get(key)) is not None:
            self.keep(key, found)
        return found

    def keep(self, key: K, value: V) -> V:
        """Keep a value that is not None, and return it."""
        size = self._size(key, value)
        if self._young_bytes + size > self._memory.budget * self._share / 2:
            given_back = self._old_bytes
            self._old, self._old_bytes = self._young, self._young_bytes
            self._young, self._young_bytes = {}, 0
            self._memory.count(-given_back)
        self._young[key] = value
        self._young_bytes += size
        self._memory.count(size)
        return value
