r"""JSON that strict parsers refuse: lone surrogates and numbers that are none.

An escape like ``\ud83d`` without its other half is allowed by JSON, and no text can contain it. A client that cuts a text in the middle of an
emoji sends one; it is read as the replacement character, U+FFFD. ``NaN``, ``Infinity`` and ``-Infinity``, which Python and JavaScript libraries
write, are read as null.
"""

import re
from typing import Any, Final

import orjson

from gateway.wire import piecewise

_ESCAPE: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)", re.S
)
_HALF: Final = len(rb"\ud83d")
_REPLACED: Final = rb"\ufffd"
_NO_NUMBER: Final = re.compile(rb'"(?:[^"\\]+|\\.)*"?|-?\b(?:NaN|Infinity)\b', re.S)
"""A text, which stays, or a number that is none."""


def loads(raw: bytes) -> Any:
    """Parse such JSON. Raises orjson.JSONDecodeError when it is not JSON."""
    try:
        return piecewise.loads(raw)
    except orjson.JSONDecodeError:
        whole = mended(raw)
        if whole is raw:
            raise
        return piecewise.loads(whole)


def mended(raw: bytes) -> bytes:
    """Return the JSON as strict parsers read it; the very same bytes when there is nothing to mend."""
    whole = _ESCAPE.sub(_whole, raw) if b"\\u" in raw else raw
    if b"NaN" in raw or b"Infinity" in raw:
        whole = _NO_NUMBER.sub(lambda found: found[0] if found[0].startswith(b'"') else b"null", whole)
    return raw if whole == raw else whole


def _whole(escape: re.Match[bytes]) -> bytes:
    found = escape[0]
    return _REPLACED if len(found) == _HALF and found[1:2] == b"u" else found
