r"""JSON that strict parsers refuse, and its repair: lone surrogates, ``NaN`` and ``Infinity``.

An escape like ``\ud83d`` without its other half is allowed by JSON, and no text can contain it. A client that cuts a text in the middle of an
emoji sends one; it is read as the replacement character, U+FFFD. ``NaN``, ``Infinity`` and ``-Infinity``, which Python and JavaScript libraries
write, are read as null.
"""

import re
from collections.abc import Callable
from typing import Any, Final

import orjson

from gateway.wire import piecewise

_ESCAPE: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)", re.S
)
_HALF: Final = len(rb"\ud83d")
_REPLACEMENT: Final = rb"\ufffd"
_NOT_A_NUMBER: Final = re.compile(rb"-?\b(?:NaN|Infinity)\b")
_TEXT: Final = re.compile(rb'(?:[^"\\]++|\\.)*+', re.S)
_LETTERS: Final = re.compile(rb"[-A-Za-z]*+")
_QUOTE: Final = b'"'
PIECE_BYTES: Final = 2**20
"""Bytes that are searched at once, so that other threads run in between."""


def loads(raw: bytes) -> Any:
    """Parse JSON that strict parsers may refuse. Raises orjson.JSONDecodeError when it is not JSON."""
    try:
        return piecewise.loads(raw)
    except orjson.JSONDecodeError:
        whole = repaired(raw)
        if whole is raw:
            raise
        return piecewise.loads(whole)


def repaired(raw: bytes) -> bytes:
    """Return JSON that strict parsers read; the very same bytes when nothing needs repair."""
    whole = _ESCAPE.sub(_replaced, raw) if b"\\u" in raw else raw
    if b"NaN" in raw or b"Infinity" in raw:
        whole = _outside_texts(whole, lambda found: b"null")
    return raw if whole == raw else whole


def repaired_in_place(raw: bytes) -> bytes:
    """Return JSON that strict parsers read, with every value at its place: ``NaN`` becomes a number of the same length."""
    return _outside_texts(_ESCAPE.sub(_replaced, raw), lambda found: b"1" * len(found[0]))


def _outside_texts(raw: bytes, replace: Callable[[re.Match[bytes]], bytes]) -> bytes:
    """Replace ``NaN`` and ``Infinity`` outside of texts, piece by piece."""
    pieces: list[bytes] = []
    position, inside = 0, False
    while position < len(raw):
        if inside:
            end = _end_of(_TEXT, raw, position)
            following = raw[end : end + 1]
            end += 2 if following == b"\\" else 1 if following == _QUOTE else 0  # the piece may end before an escape
            inside = following != _QUOTE
            pieces.append(raw[position:end])
        else:
            end = raw.find(_QUOTE, position, position + PIECE_BYTES)
            inside = end >= 0
            end = end + 1 if inside else _end_of(_LETTERS, raw, min(position + PIECE_BYTES, len(raw)))
            pieces.append(_NOT_A_NUMBER.sub(replace, raw[position:end]))
        position = end
    return b"".join(pieces)


def _end_of(pattern: re.Pattern[bytes], raw: bytes, position: int) -> int:
    found = pattern.match(raw, position, position + PIECE_BYTES)
    return found.end() if found is not None else position


def _replaced(escape: re.Match[bytes]) -> bytes:
    found = escape[0]
    return _REPLACEMENT if len(found) == _HALF and found[1:2] == b"u" else found
