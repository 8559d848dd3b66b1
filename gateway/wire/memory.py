"""The memory: one process's cache of messages and of values derived from them, within one budget of bytes.

A forgotten value is computed again, so nothing is lost. The shell makes the memory and passes it in with each request. A
fold may run in a thread beside the event loop: each step here is one operation of the interpreter, and if two threads
compute the same value, one of the results is stored.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import count
from typing import Any, Final, Generic, TypeVar
from weakref import ref

from gateway.wire import piecewise
from gateway.wire.derived import Interned, Remembered, message_size

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

BUDGET: Final = 10 * 2**20
"""Bytes, the default of ``server.memory``: about four conversations of 85,000 tokens with their derived values."""
LONGEST_SHARE: Final = 1 / 8
"""Share of the budget. A larger message, which contains an image or a file, is not stored: it would push out all others."""


class StoredValue(Remembered):
    """A value that is stored under a key: it is derived from several messages."""

    __slots__ = ("value",)

    def __init__(self, value: Any, size: int) -> None:
        super().__init__(size)
        self.value = value


class Memory:
    """Messages by their bytes, and derived values by their keys. The least recently used is forgotten first."""

    __slots__ = ("_entries", "_numbers", "_parts", "budget", "size")

    def __init__(self, budget: int = BUDGET) -> None:
        self.budget = budget
        self.size = 0
        """Estimated bytes in use."""
        self._entries: OrderedDict[Hashable, Interned | StoredValue] = OrderedDict()
        self._parts: dict[object, Any] = {}
        self._numbers = count(1)

    def messages(self, rows: Iterable[bytes]) -> list[dict[str, Any]] | None:
        """Return the messages with these bytes, parsed if they are new; None if one is not a JSON object."""
        found: list[dict[str, Any]] = []
        before: Interned | None = None
        for raw in rows:
            # What came after a message the last time mostly comes again. Comparing its bytes costs a tenth of hashing them.
            guess = before.following() if before is not None and before.following is not None else None
            if guess is not None and guess.raw == raw and guess.derived.on_growth is not None:
                self._touch(guess.raw)
                before = guess
                found.append(guess)
                continue
            message = self.message(raw)
            if message is None:
                return None
            found.append(message)
            following = message if type(message) is Interned else None
            if before is not None and following is not None:
                before.following = ref(following)
            before = following
        return found

    def message(self, raw: bytes) -> dict[str, Any] | None:
        """Return the message with these bytes, parsed if it is new; None when it is not a JSON object."""
        found = self._entries.get(raw)
        if found is not None:
            self._touch(raw)
            return found if isinstance(found, Interned) else None
        value = piecewise.loads(raw)
        if type(value) is not dict:
            return None
        size = message_size(raw, value)
        if size > self.budget * LONGEST_SHARE:
            return value
        message = Interned(value, size, raw, next(self._numbers))
        self._add(raw, message, message.derived)
        return message

    def get(self, key: Hashable) -> Any:
        """Return the value under a key that is not bytes; None without one."""
        found = self._entries.get(key)
        if found is None:
            return None
        self._touch(key)
        return found.value if isinstance(found, StoredValue) else None

    def put(self, key: Hashable, value: T, size: int) -> tuple[T, Remembered]:
        """Store a value that is not None, and return it with its entry, whose ``grow`` counts later growth."""
        entry = StoredValue(value, size)
        self._add(key, entry, entry)
        return value, entry

    def get_or_make(self, key: Hashable, make: Callable[[], T], size: int) -> T:
        """Return the value under a key; make and store it if it is missing. It must not be None."""
        found: T | None = self.get(key)
        return self.put(key, make(), size)[0] if found is None else found

    def part(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return a permanent part of this memory, made at first use. It bounds and counts itself, as `Recent` does."""
        found: T | None = self._parts.get(key)
        return self._parts.setdefault(key, make()) if found is None else found

    def count(self, more: int) -> None:
        """Count more bytes (fewer if negative), and forget entries until the rest is within the budget."""
        self.size += more
        while self.size > self.budget and self._entries:
            self._forget_oldest()

    def clear(self) -> None:
        """Forget all entries."""
        self._parts.clear()
        while self._entries:
            self._forget_oldest()
        self.size = 0

    def _add(self, key: Hashable, value: Interned | StoredValue, entry: Remembered) -> None:
        before = self._entries.pop(key, None)
        if before is not None:
            self._release(before)
        self._entries[key] = value
        entry.on_growth = self.count
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

    def _release(self, value: Interned | StoredValue) -> None:
        # These values refer back to the entry: without this, it would live until Python collects cycles.
        if isinstance(value, Interned):
            entry: Remembered = value.derived
            value.derived.shrunk = {}
            value.derived.view = None
        else:
            entry = value
            value.value = None
        entry.on_growth = None
        self.size -= entry.size


class Recent(Generic[K, V]):
    """A cache of many small values in two generations. A value used since the last change of generation survives the next one.

    ``share`` is the share of the memory's budget for these values; ``size`` returns the bytes of a value with its key.
    """

    __slots__ = ("_memory", "_old", "_old_bytes", "_share", "_size", "_young", "_young_bytes")

    def __init__(self, memory: Memory, size: Callable[[K, V], int], share: float) -> None:
        self._memory = memory
        self._size = size
        self._share = share
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}
        self._young_bytes = self._old_bytes = 0

    @property
    def young(self) -> Mapping[K, V]:
        """The values used or stored since the last change of generation, to be looked up before `get`, which costs more."""
        return self._young

    def get(self, key: K) -> V | None:
        """Return the value of a key; None without one."""
        found = self._young.get(key)
        if found is None and (found := self._old.get(key)) is not None:
            self.put(key, found)
        return found

    def put(self, key: K, value: V) -> V:
        """Store a value that is not None in place of the key's earlier one, and return it."""
        size = self._size(key, value)
        if key in self._young and (replaced := self._young.pop(key, None)) is not None:
            given_back = self._size(key, replaced)
            self._young_bytes -= given_back
            self._memory.count(-given_back)
        if self._young_bytes + size > self._memory.budget * self._share / 2:
            self._memory.count(-self._old_bytes)
            self._old, self._old_bytes = self._young, self._young_bytes
            self._young, self._young_bytes = {}, 0
        self._young[key] = value
        self._young_bytes += size
        self._memory.count(size)
        return value
