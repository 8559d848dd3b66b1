"""Parse long JSON piece by piece: Python's other threads, the event loop among them, run between two pieces.

orjson and msgspec hold the interpreter's lock as long as they parse: 30 ms for a schema of some megabytes, 90 ms for a text of 20 MB
with emoji. The values are the same.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import msgspec
import orjson

PIECE_BYTES: Final = 2**18
"""Bytes that are parsed at once, in 5 ms for many small values, less for text (measured)."""
SPLIT_LEVELS: Final = 8
"""Levels of a value that are split. Deeper values are parsed at once. The properties of a tool's parameters are at the
sixth level."""
LONGEST_ESCAPE: Final = len(rb"\ud83d\ude00")
"""Bytes of the longest escape, an emoji as a pair of escapes. A text cannot be cut inside it."""
MOST_TEXT_BYTES: Final = 40 * 2**20
"""Bytes that one text may take in Python. Joining so many takes some 20 ms (measured). A single emoji makes each character
of its text take four bytes: then it is ten million characters, the most that OpenAI accepts in one text."""
_FOUR_BYTES: Final = re.compile("[\U00010000-\U0010ffff]")
"""Characters that take four bytes, and make every other character of their text take four (PEP 393)."""
_BEYOND_LATIN_1: Final = re.compile("[^\x00-\xff]")
"""Characters that make every character of their text take two bytes or more."""
_QUOTE: Final = b'"'
_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_rows: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode


def loads(raw: bytes, levels: int = SPLIT_LEVELS, decode: Callable[[bytes], Any] = orjson.loads) -> Any:
    """Return the value of a JSON text. Raises orjson.JSONDecodeError when it is not JSON, and TextTooLarge for a text beyond `MOST_TEXT_BYTES`.

    ``decode`` reads the pieces.
    """
    if len(raw) <= PIECE_BYTES or not levels:
        return decode(raw)
    try:
        match raw[:1]:
            case b"{":
                return {name: loads(bytes(value), levels - 1, decode) for name, value in _members(raw).items()}
            case b"[":
                return [loads(bytes(value), levels - 1, decode) for value in _rows(raw)]
            case b'"':
                return _text(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass  # the decoder decides
    return decode(raw)


def _text(raw: bytes) -> Any:
    """Return the text of a JSON string. A piece that ends inside an escape or a character is not valid; it is made longer."""
    parts, start, end = list[str](), 1, len(raw) - 1
    characters, width = 0, 1
    while start < end:
        for stop in range(min(start + PIECE_BYTES, end), min(start + PIECE_BYTES + LONGEST_ESCAPE, end) + 1):
            try:
                parts.append(orjson.loads(_QUOTE + raw[start:stop] + _QUOTE))
            except orjson.JSONDecodeError:
                continue
            break
        else:
            return orjson.loads(raw)
        start, characters = stop, characters + len(parts[-1])
        if len(raw) * 4 > MOST_TEXT_BYTES:
            width = max(width, _width(parts[-1]))
            if characters * width > MOST_TEXT_BYTES:
                while parts:
                    parts.pop()  # freed one by one: all at once took 65 ms
                raise TextTooLarge("a text is too long", "", 0)
    return "".join(parts) if raw[end:] == _QUOTE else orjson.loads(raw)


def _width(text: str) -> int:
    """Return the bytes that each character of a text takes."""
    if text.isascii():
        return 1
    return 4 if _FOUR_BYTES.search(text) else 2 if _BEYOND_LATIN_1.search(text) else 1


class TextTooLarge(orjson.JSONDecodeError):
    """A text takes so much memory at once that all other requests would wait for it."""


def loads_text(text: str) -> Any:
    """Return the value of a text with JSON. Raises like `loads`."""
    return orjson.loads(text) if len(text) <= PIECE_BYTES else loads(text.encode("utf-8", "surrogatepass"))


def beginning(raw: bytes, characters: int, *, whole: bool) -> str:
    """Return the first characters of a JSON string. ``raw`` is its beginning or, if ``whole``, all of it. Raises
    orjson.JSONDecodeError if it is no JSON string."""
    for cut in range(len(raw), max(len(raw) - LONGEST_ESCAPE, 1), -1) if not whole else ():
        with suppress(orjson.JSONDecodeError):
            return str(orjson.loads(raw[:cut] + _QUOTE))[:characters]
    return str(orjson.loads(raw))[:characters]
