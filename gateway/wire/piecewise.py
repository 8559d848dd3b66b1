"""Parse long JSON piece by piece: Python's other threads, the event loop among them, run between two pieces.

orjson and msgspec hold the interpreter's lock as long as they parse: 30 ms for a schema of some megabytes, 90 ms for a text of 20 MB
with emoji. The values are the same.
"""

import re
from contextlib import suppress
from typing import Any, Final

import msgspec
import orjson

LONGEST: Final = 2**18
"""Bytes that are parsed at once: 5 ms for many small values, less for text (measured)."""
DEEPEST: Final = 8
"""Levels that are taken apart; what is deeper is parsed at once. The properties of a tool's parameters lie at the sixth."""
LONGEST_ESCAPE: Final = len(rb"\ud83d\ude00")
"""Bytes in which a text cannot be cut: an emoji as a pair of escapes."""
LARGEST_TEXT: Final = 40 * 2**20
"""Bytes that one text may take in Python: some 20 ms to join (measured). A single emoji makes each of its letters take four; that is ten million
letters, the most that OpenAI takes in one text."""
_WIDE: Final = re.compile("[\U00010000-\U0010ffff]")
"""Letters that take four bytes, and make every other letter of their text do so (PEP 393)."""
_MIDDLE: Final = re.compile("[\u0100-\uffff]")
"""The same for two."""
_QUOTE: Final = b'"'
_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_rows: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode


def loads(raw: bytes, levels: int = DEEPEST) -> Any:
    """Return the value of a JSON text. Raises orjson.JSONDecodeError when it is not JSON, and TooLarge for a text beyond `LARGEST_TEXT`."""
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
    parts, start, end = list[str](), 1, len(raw) - 1
    letters, width = 0, 1
    while start < end:
        for stop in range(min(start + LONGEST, end), min(start + LONGEST + LONGEST_ESCAPE, end) + 1):
            try:
                parts.append(orjson.loads(_QUOTE + raw[start:stop] + _QUOTE))
            except orjson.JSONDecodeError:
                continue
            break
        else:
            return orjson.loads(raw)
        start, letters = stop, letters + len(parts[-1])
        if len(raw) * 4 > LARGEST_TEXT:
            width = max(width, _width(parts[-1]))
            if letters * width > LARGEST_TEXT:
                while parts:
                    parts.pop()  # freed one by one: all at once took 65 ms
                raise TooLarge("a text is too long", "", 0)
    return "".join(parts) if raw[end:] == _QUOTE else orjson.loads(raw)


def _width(text: str) -> int:
    """Return how many bytes each letter of a text takes."""
    if text.isascii():
        return 1
    return 4 if _WIDE.search(text) else 2 if _MIDDLE.search(text) else 1


class TooLarge(orjson.JSONDecodeError):
    """A text takes so much memory at once that all other requests would wait for it."""


def loads_text(text: str) -> Any:
    """Return the value of JSON that stands in a text. Raises as `loads` does."""
    return orjson.loads(text) if len(text) <= LONGEST else loads(text.encode("utf-8", "surrogatepass"))


def beginning(raw: bytes, characters: int, *, whole: bool) -> str:
    """Return the first characters of a JSON string, of which ``raw`` is the beginning or all. Raises orjson.JSONDecodeError for what is none."""
    for cut in range(len(raw), max(len(raw) - LONGEST_ESCAPE, 1), -1) if not whole else ():
        with suppress(orjson.JSONDecodeError):
            return str(orjson.loads(raw[:cut] + _QUOTE))[:characters]
    return str(orjson.loads(raw))[:characters]
