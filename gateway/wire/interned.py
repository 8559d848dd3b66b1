"""Messages interned: one that was seen before is not read again.

A client sends its whole conversation with every request. A message is found again by its bytes, and is then the very object it was
last time, with what has been found out about it since in its ``facts``.
"""

from typing import Any, Final

import msgspec
import orjson

from gateway.wire.memory import Memory

WORTHWHILE: Final = 4096
"""Bytes. A shorter body is read as quickly as it is taken apart."""

_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_rows: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode


def read(raw: bytes, memory: Memory) -> dict[str, Any] | None:
    """Read a body whose ``messages`` are objects; None for any other body, or one that is not JSON."""
    try:
        members = _members(raw)
        given = members.get("messages")
        if given is None:
            return None
        messages = [memory.message(bytes(row)) for row in _rows(given)]
        if None in messages:
            return None
        return {
            name: messages if name == "messages" else orjson.loads(memoryview(value)) for name, value in members.items()
        }
    except (msgspec.MsgspecError, orjson.JSONDecodeError, RecursionError):
        return None
