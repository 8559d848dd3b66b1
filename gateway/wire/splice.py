"""Edit a JSON body by splicing: unchanged parts keep their bytes, down to ``1.50`` and duplicate spaces."""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import orjson

from gateway.wire import lenient_json
from gateway.wire.raw_json import all_members, copies, occurs
from gateway.wire.surrogates import PIECE_BYTES, repaired_in_place


def splice(raw: bytes, changes: Mapping[str, Any]) -> bytes:
    """Replace the values of top-level members; every other byte of the body stays.

    A missing member is added at the end; a member whose new value is ``None`` becomes ``null``. Of duplicate keys the
    last one is replaced, because parsers use it. Raises ValueError when ``raw`` is not a JSON object.
    """
    quick = _splice_model(raw, changes)
    if quick is not None:
        return quick
    spans = spans_of(raw)
    missing = [key for key in changes if key not in spans]
    pieces: list[bytes] = []
    position = 0
    for key, (start, end) in sorted(spans.items(), key=lambda item: item[1]):
        if key in changes:
            pieces += [*copies(raw, position, start), orjson.dumps(changes[key])]
            position = end
    closing = raw.rindex(b"}")
    pieces += copies(raw, position, closing)
    for number, key in enumerate(missing):
        comma = b"," if spans or number else b""
        pieces += [comma, orjson.dumps(key), b":", orjson.dumps(changes[key])]
    pieces += copies(raw, closing, len(raw))
    return b"".join(pieces)


REMOVED_RESULT: Final = "[result removed]"
"""The text of a tool result that is left out although the server expects a result."""


def without_result(raw: bytes, member: str) -> bytes:
    """Return a tool result with `REMOVED_RESULT` in the member that has its text; a shorter result is returned as it came."""
    return min(raw, splice(raw, {member: REMOVED_RESULT}), key=len)


def _splice_model(raw: bytes, changes: Mapping[str, Any]) -> bytes | None:
    """Replace the model of a body that begins with it (``{"model":"x",...``) and has this key once: it needs no scan. Return
    None for any other body."""
    if len(changes) != 1 or "model" not in changes or occurs(b'"model"', raw, 2) or occurs(b"\\u00", raw):
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
    return b"".join([raw[:value], orjson.dumps(changes["model"]), *copies(raw, end + 1, len(raw))])


_NAME: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.S)
_SPACE: Final = re.compile(rb"[ \t\r\n]*+")
LONGEST_NAME: Final = 2**16
"""Most bytes of a member's name: finding its end takes no time then. Chosen far above real names."""


def spans_of(raw: bytes) -> dict[str, tuple[int, int]]:
    """Return the start and the end of each top-level member's value; the last one of several with one name. Raises
    ValueError when the body is not a JSON object."""
    try:
        found = all_members(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        try:
            found = all_members(repaired_in_place(raw))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return _lenient_spans(raw)
    spans: dict[str, tuple[int, int]] = {}
    position = _after_space(raw, 0)
    for name, value in found:
        written = _NAME.match(
            raw, _after_space(raw, position + 1), position + LONGEST_NAME
        )  # after the brace, or a comma
        if written is None:
            raise ValueError("a member's name is too long")
        start = _after_space(raw, _after_space(raw, written.end()) + 1)
        end = start + memoryview(value).nbytes
        spans[name] = (start, end)
        position = _after_space(raw, end)
    return spans


def _after_space(raw: bytes, position: int) -> int:
    found = _SPACE.match(raw, position, position + PIECE_BYTES)
    assert found is not None
    return found.end() if found.end() < position + PIECE_BYTES else _after_space(raw, found.end())


def _lenient_spans(raw: bytes) -> dict[str, tuple[int, int]]:
    """Return the spans of a body that strict parsers refuse."""
    text = raw.decode()
    spans = {member.name: (member.start, member.end) for member in lenient_json.members_of(text)}
    return {name: (len(text[:start].encode()), len(text[:end].encode())) for name, (start, end) in spans.items()}
