"""Edit a JSON body by splicing: unchanged parts keep their bytes, down to ``1.50`` and duplicate spaces."""

import json  # noqa: TID251  # its scanner reports where a value ends, which orjson does not
from collections.abc import Mapping
from typing import Any, Final

import orjson


def splice(raw: bytes, changes: Mapping[str, Any]) -> bytes:
    """Replace the values of top-level members; every other byte of the body stays.

    A missing member is added at the end; a member whose new value is ``None`` becomes ``null``. Of duplicate keys the
    last one is replaced, because parsers use it. Raises ValueError when ``raw`` is not a JSON object.
    """
    quick = _splice_first(raw, changes)
    if quick is not None:
        return quick
    text = raw.decode()
    spans = _member_spans(text)
    missing = [key for key in changes if key not in spans]
    pieces: list[str] = []
    position = 0
    for key, (start, end) in sorted(spans.items(), key=lambda item: item[1]):
        if key in changes:
            pieces += [text[position:start], orjson.dumps(changes[key]).decode()]
            position = end
    closing = text.rindex("}")
    pieces.append(text[position:closing])
    for number, key in enumerate(missing):
        comma = "," if spans or number else ""
        pieces.append(f"{comma}{orjson.dumps(key).decode()}:{orjson.dumps(changes[key]).decode()}")
    pieces.append(text[closing:])
    return "".join(pieces).encode()


def _splice_first(raw: bytes, changes: Mapping[str, Any]) -> bytes | None:
    """Handle the common alias: ``{"model":"x",...`` with that key once in the body needs no scan."""
    if len(changes) != 1 or "model" not in changes or raw.count(b'"model"') != 1 or b"\\u00" in raw:
        return None
    head = raw[:256]
    opening = head.find(b"{")
    start = head.find(b'"model"')
    if opening < 0 or head[:opening].strip() or head[opening + 1 : start].strip():
        return None
    colon = start + 7
    value = head.find(b'"', colon)
    end = head.find(b'"', value + 1)
    if value < 0 or end < 0 or head[colon:value].strip() != b":" or b"\\" in head[value:end]:
        return None
    return raw[:value] + orjson.dumps(changes["model"]) + raw[end + 1 :]


_SCAN: Final = json.JSONDecoder(strict=False)
_SPACE: Final = " \t\r\n"


def _member_spans(text: str) -> dict[str, tuple[int, int]]:
    """Yield the span of each top-level member's value, in characters."""
    position = _skip_space(text, 0)
    if text[position : position + 1] != "{":
        raise ValueError("the body is not a JSON object")
    spans: dict[str, tuple[int, int]] = {}
    position = _skip_space(text, position + 1)
    while text[position : position + 1] == '"':
        key, position = _SCAN.raw_decode(text, position)
        position = _skip_space(text, position)
        if text[position : position + 1] != ":":
            raise ValueError("the body is not a JSON object")
        start = _skip_space(text, position + 1)
        _, end = _SCAN.raw_decode(text, start)
        spans[key] = (start, end)
        position = _skip_space(text, end)
        if text[position : position + 1] != ",":
            break
        position = _skip_space(text, position + 1)
    return spans


def _skip_space(text: str, position: int) -> int:
    while text[position : position + 1] and text[position] in _SPACE:
        position += 1
    return position
