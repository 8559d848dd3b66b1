"""Messages in binary frames of a WebSocket: many servers read them as they read text frames."""

import json  # noqa: TID251  # detects the encoding of JSON, as Python servers do
import re
from codecs import getincrementaldecoder
from typing import Final

from gateway.wire.raw_json import copies

_FIRST: Final = re.compile(r"[\ufeff\s]*+(?:\{|\Z)")
"""The first characters of a message: space, and a brace unless there is only space."""
_OBJECT: Final = re.compile(r"[\ufeff\s]*+\{\s*+(?=\")")
_VALUE: Final = re.compile(r'\s*+:\s*+["{\[\dtfnNI-]')
"""What follows the name of a member: a colon and the first character of a value."""
_LOOKED_AT: Final = 8
"""Bytes, two characters of the widest encoding: of most audio no more is decoded."""
_name: Final = json.JSONDecoder(strict=False).raw_decode


def message_in(data: bytes) -> str | None:
    """Return the text of bytes that begin with the first member of a JSON object; None for other bytes, such as audio.

    Like Python's ``json.loads`` this reads UTF-8, UTF-16 and UTF-32. Broken characters are replaced, as Go does.
    """
    encoding = json.detect_encoding(data)
    if not _FIRST.match(data[:_LOOKED_AT].decode(encoding, "replace")):
        return None
    decode = getincrementaldecoder(encoding)("replace").decode
    text = "".join(map(decode, copies(data, 0, len(data))))  # in pieces: replacing 16 MB at once takes 0.1 s
    return text if _begins_object(text) else None


def _begins_object(text: str) -> bool:
    """Return whether a text begins with the name of a member and a value. Audio can begin with a brace by chance, and even be valid UTF-16."""
    start = _OBJECT.match(text)
    if start is None:
        return False
    try:
        _, end = _name(text, start.end())
    except ValueError:
        return False
    return _VALUE.match(text, end) is not None
