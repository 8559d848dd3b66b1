"""Messages interned: one that was seen before is not read again.

A client sends its whole conversation with every request. A message is found again by its bytes, and is then the very object it was
last time, with what has been found out about it since in its ``memo``. Kept in memory only, bounded, and never the answer to
anything but the same bytes.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import orjson

WORTHWHILE: Final = 4096
"""A body shorter than this is read as quickly as it is taken apart."""
KEPT_BYTES: Final = 6_000_000
"""Bytes of messages in a generation. Two are kept: what was asked for since the last change of generation survives the next."""
LONGEST: Final = KEPT_BYTES // 8
"""A longer message, which has an image or a file in it, is not kept: it would drive out all others."""
ENTRY_BYTES: Final = 600
"""About what a message and its memo take beside its text."""

_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_rows: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode


class Interned(dict[str, Any]):
    """A message as it stands in a request, and what is known about it. Neither is ever changed, but facts are added."""

    __slots__ = ("memo",)

    def __init__(self, message: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.memo: dict[Any, Any] = {}


class _Table:
    """Messages by their bytes, in two generations."""

    def __init__(self) -> None:
        self._young: dict[bytes, Interned] = {}
        self._old: dict[bytes, Interned] = {}
        self._size = 0

    def get(self, raw: bytes) -> dict[str, Any] | None:
        """Answer the message with these bytes, reading it where it is new; None where it is no JSON object."""
        found = self._young.get(raw)
        if found is not None:
            return found
        found = self._old.get(raw)
        if found is None:
            value = orjson.loads(raw)
            if type(value) is not dict:
                return None
            if len(raw) > LONGEST:
                return value
            found = Interned(value)
        self._size += len(raw) + ENTRY_BYTES
        if self._size > KEPT_BYTES:
            self._old, self._young, self._size = self._young, {}, len(raw) + ENTRY_BYTES
        self._young[raw] = found
        return found


_TABLE: Final = _Table()


def read(raw: bytes) -> dict[str, Any] | None:
    """Read a body with ``messages`` that are objects; None for any other, or one that is not JSON."""
    try:
        members = _members(raw)
        given = members.get("messages")
        if given is None:
            return None
        messages = [_TABLE.get(bytes(row)) for row in _rows(given)]
        if None in messages:
            return None
        return {
            name: messages if name == "messages" else orjson.loads(memoryview(value)) for name, value in members.items()
        }
    except (msgspec.MsgspecError, orjson.JSONDecodeError, RecursionError):
        return None
