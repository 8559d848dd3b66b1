"""Parse long JSON piece by piece: Python's other threads, the event loop among them, run between two pieces.

orjson and msgspec hold the interpreter's lock as long as they parse: 30 ms for a schema of some megabytes, 90 ms for a text of 20 MB
with emoji. The values are the same.
"""

from typing import Any, Final

import msgspec
import orjson

LONGEST: Final = 2**18
"""Bytes that are parsed at once: 5 ms for many small values, less for text (measured)."""
DEEPEST: Final = 8
"""Levels that are taken apart; what is deeper is parsed at once. The properties of a tool's parameters lie at the sixth."""
LONGEST_ESCAPE: Final = len(rb"\ud83d\ude00")
"""Bytes in which a text cannot be cut: an emoji as a pair of escapes."""
_QUOTE: Final = b'"'
_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_rows: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode


def loads(raw: bytes, levels: int = DEEPEST) -> Any:
    """Return the value of a JSON text. Raises orjson.JSONDecodeError when it is not JSON."""
    if len(raw) <= LONGEST or not levels:
        return orjson.loads(raw)
    try:
        match raw[:1]:
            case b"{":
                return {name: loads(bytes(value), levels - 1) for name, value in _members(raw).items()}
            case b"[":
                return [loads(bytes(value), levels - 1) for value in _rows(raw)]
            case b'"':
                return _text(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass  # orjson decides
    return orjson.loads(raw)


def _text(raw: bytes) -> Any:
    """Return the text of a JSON string. A piece that ends inside an escape or a character is not valid, and made longer."""
    parts, start, end = [], 1, len(raw) - 1
    while start < end:
        for stop in range(min(start + LONGEST, end), min(start + LONGEST + LONGEST_ESCAPE, end) + 1):
            try:
                parts.append(orjson.loads(_QUOTE + raw[start:stop] + _QUOTE))
            except orjson.JSONDecodeError:
                continue
            break
        else:
            return orjson.loads(raw)
        start = stop
    return "".join(parts) if raw[end:] == _QUOTE else orjson.loads(raw)
