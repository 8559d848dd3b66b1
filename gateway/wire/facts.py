"""What is known of a message: found out once, kept with the message, counted in bytes."""

from collections.abc import Callable, Mapping
from sys import getsizeof
from typing import Any, Final

MESSAGE_BYTES: Final = 1300
"""About what a message takes beside its bytes and its text: two dictionaries, its facts with their costs, its place in the table
(measured with tracemalloc on recorded agents and chats, CPython 3.11)."""


class Entry:
    """Something that is remembered. ``size`` is in bytes, all that was derived from it included."""

    __slots__ = ("grown", "size")

    def __init__(self, size: int = 0) -> None:
        self.size = size
        self.grown: Callable[[int], None] | None = None
        """Told of each growth; None where nothing is counted, for the entry is not kept or no longer."""

    def grow(self, more: int) -> None:
        """Count what was derived."""
        self.size += more
        if self.grown is not None:
            self.grown(more)


class MessageFacts(Entry):
    """All that has been found out about one message. A fact is None until it is first asked for."""

    __slots__ = ("costs", "costs_with_ids", "digest", "ends", "keys", "lines", "shrunk")

    def __init__(self, size: int = 0) -> None:
        super().__init__(size)
        self.costs: dict[str, int] = {}
        """Tokens, by the name of the counter."""
        self.costs_with_ids: dict[str, tuple[int, int]] = {}
        """Tokens without and with the ids of its calls, by the name of the counter."""
        self.digest: bytes | None = None
        """The hash of its canonical form."""
        self.lines: tuple[Any, ...] | None = None
        """Its `gateway.context.choose.line.Line`s."""
        self.ends: tuple[Any, ...] | None = None
        """The lines of its head and tail alone."""
        self.keys: frozenset[str] | None = None
        """All that it tells, as `gateway.context.choose.words.Word.key`."""
        self.shrunk: dict[object, Mapping[str, Any]] = {}
        """Shorter forms of it, by all that they follow from."""


class Interned(dict[str, Any]):
    """A message as it stands in a request, with what is known of it. The message is never changed; facts are added."""

    __slots__ = ("facts",)

    def __init__(self, message: Mapping[str, Any], size: int = 0) -> None:
        super().__init__(message)
        self.facts = MessageFacts(size)


def facts_of(message: Mapping[str, Any]) -> MessageFacts:
    """The facts of a message; of one that is not interned, facts that nobody keeps."""
    return message.facts if type(message) is Interned else MessageFacts()


def message_size(raw: bytes, message: Mapping[str, Any]) -> int:
    """About how many bytes an interned message takes, with the bytes under which it is found."""
    content = message.get("content")
    return len(raw) + (getsizeof(content) if type(content) is str else len(raw)) + MESSAGE_BYTES
