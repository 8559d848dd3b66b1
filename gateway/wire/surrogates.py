"""JSON with lone surrogates: escapes like ``\ud83d`` without their other half, which JSON allows and no text can
contain.

A client that cuts a text in the middle of an emoji sends one. It is read as the replacement character, U+FFFD.
"""

import re
from typing import Any, Final

import orjson

_ESCAPE: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)", re.S
)
_HALF: Final = len(rb"\ud83d")
_REPLACED: Final = rb"\ufffd"


def loads(raw: bytes) -> Any:
    """Parse JSON with lone surrogates. Raises orjson.JSONDecodeError when it is not JSON."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        whole = _ESCAPE.sub(_whole, raw)
        if whole == raw:
            raise
        return orjson.loads(whole)


def _whole(escape: re.Match[bytes]) -> bytes:
    found = escape[0]
    return _REPLACED if len(found) == _HALF and found[1:2] == b"u" else found
