"""Interned messages: a message that was seen before is not parsed again.

A client sends its whole conversation with every request. A message is found again by its bytes. It is then the same object as
in the request before, with its ``derived`` values.
"""

from typing import Any, Final

import msgspec
import orjson

from gateway.wire import piecewise, raw_json
from gateway.wire.memory import Memory

LEAST_BYTES: Final = 4096
"""Bytes. Parsing a shorter body is as fast as splitting it into messages."""

_Listed: Final = msgspec.defstruct("_Listed", [("messages", list[msgspec.Raw])])
_listed: Final = msgspec.json.Decoder(_Listed).decode


def read(raw: bytes, memory: Memory) -> dict[str, Any] | None:
    """Read a body whose ``messages`` are objects; None for any other body, or one that is not JSON."""
    try:
        listed: Any = _listed(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    rows = [bytes(row) for row in listed.messages]
    # Most of a body is its messages. Without them, it is split at no cost.
    members = raw_json.members(raw_json.without_rows(raw, "messages", rows))
    if members is None:
        return None
    try:
        messages = memory.messages(rows)
        if messages is None:
            return None
        return {name: messages if name == "messages" else piecewise.loads(value) for name, value in members.items()}
    except orjson.JSONDecodeError:
        return None
