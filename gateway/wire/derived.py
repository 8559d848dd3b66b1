"""The values derived from a message: computed once, stored with the message, counted in bytes."""

from collections.abc import Callable, Iterable, Mapping
from sys import getsizeof
from typing import Any, Final, Generic, TypeVar
from weakref import ref

L = TypeVar("L")
"""The type of a line. Lines are stored here, but the class is in `gateway.context`, which this package does not import."""

MESSAGE_BYTES: Final = 1390
"""Bytes that a message takes besides its own bytes and its text: two dictionaries, its derived values, a reference, its entry in the table
(measured with tracemalloc on recorded agents and chats, CPython 3.11)."""


class Remembered:
    """An entry of a memory. ``size`` is its bytes, with everything that was derived from it."""

    __slots__ = ("on_growth", "size")

    def __init__(self, size: int = 0) -> None:
        self.size = size
        self.on_growth: Callable[[int], None] | None = None
        """Called with the bytes of each growth; None if the entry is not in a memory."""

    def grow(self, more: int) -> None:
        """Add the bytes of a derived value."""
        self.size += more
        if self.on_growth is not None:
            self.on_growth(more)


class Derived(Remembered, Generic[L]):
    """The values derived from one message. A value is None until it is first needed."""

    __slots__ = ("called", "costs", "costs_with_ids", "ends", "hash", "keys", "lines", "shrunk", "view")

    def __init__(self, size: int = 0) -> None:
        super().__init__(size)
        self.costs: dict[str, int] = {}
        """Tokens, by the name of the counter."""
        self.costs_with_ids: dict[str, tuple[int, int]] = {}
        """Tokens without and with the ids of its calls, by the name of the counter."""
        self.hash: bytes | None = None
        """The hash of its canonical form."""
        self.lines: tuple[L, ...] | None = None
        """Its lines, of `gateway.context.read.line.Line`."""
        self.ends: tuple[L, ...] | None = None
        """The lines of its head and tail alone."""
        self.keys: frozenset[str] | None = None
        """Its words, as `gateway.context.read.words.Word.key`."""
        self.called: Any = None
        """The calls in its text, as `gateway.context.read.text_calls.Called`."""
        self.view: Interned | None = None
        """The message as a call or a result: see `gateway.context.read.as_calls`."""
        self.shrunk: dict[object, Mapping[str, Any]] = {}
        """Its shortened forms, by everything on which they depend."""


class Interned(dict[str, Any]):
    """A message of a request with the values derived from it. The message is never changed; derived values are added."""

    __slots__ = ("__weakref__", "derived", "following", "number", "raw")

    def __init__(self, message: Mapping[str, Any], size: int = 0, raw: bytes = b"", number: int = 0) -> None:
        super().__init__(message)
        self.derived: Derived[Any] = Derived(size)
        self.raw = raw
        """Its bytes as they came; empty where the message is a view of something else."""
        self.number = number
        """Unique in its memory, and never used again; 0 where no memory gave one."""
        self.following: ref[Interned] | None = None
        """The message that came after it the last time. A weak reference: a message that is forgotten is freed."""


def derived_of(message: Mapping[str, Any]) -> Derived[Any]:
    """Return the derived values of a message; new ones, which are not stored, if it is not interned."""
    return message.derived if type(message) is Interned else Derived()


def held_bytes(values: Iterable[Any]) -> int:
    """Return the bytes that JSON values take in Python, with everything inside them: many small values take thirty times
    their text."""
    size, level = 0, list(values)
    while level:
        size += sum(map(getsizeof, level))
        inside: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                inside += value
                inside += value.values()
            elif isinstance(value, list):
                inside += value
        level = inside
    return size


def message_size(raw: bytes, message: Mapping[str, Any]) -> int:
    """Estimate the bytes that an interned message takes, including the bytes that are its key."""
    return len(raw) + held_bytes(message.values()) + MESSAGE_BYTES
