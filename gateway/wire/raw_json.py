"""Split JSON without reading its values: members and rows keep their bytes."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
import orjson

from gateway.wire.surrogates import PIECE_BYTES, repaired

_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_rows: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode


class _Key:
    """The name of a member. No two are equal, so that a dict keeps members of the same name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


_all_members: Final = msgspec.json.Decoder(dict[_Key, msgspec.Raw], dec_hook=lambda _, name: _Key(name)).decode


def all_members(raw: bytes) -> list[tuple[str, msgspec.Raw]]:
    """Return the members of a JSON object in order, also several of one name. Raises MsgspecError, UnicodeDecodeError or RecursionError."""
    return [(key.name, value) for key, value in _all_members(raw).items()]


def occurs(text: bytes, raw: bytes, times: int = 1) -> bool:
    """Return whether bytes contain a short text so many times."""
    start = 0
    while times and start < len(raw):
        found = raw.find(text, start, start + PIECE_BYTES + len(text) - 1)
        start, times = (found + 1, times - 1) if found >= 0 else (start + PIECE_BYTES, times)
    return not times


def occurs_in_any_case(text: bytes, raw: bytes, times: int = 1) -> bool:
    """Return whether bytes contain a short text so many times; ``text`` is in lower case."""
    start, step = 0, PIECE_BYTES
    while times and start < len(raw):
        times -= min(times, raw[start : start + step + len(text) - 1].lower().count(text))
        start += step
    return not times


def copies(raw: bytes, start: int, end: int) -> list[bytes]:
    """Return the bytes between two positions in pieces. Joining pieces lets other threads run (`Objects/stringlib/join.h`),
    copying a long one does not."""
    return [raw[at : min(at + PIECE_BYTES, end)] for at in range(start, end, PIECE_BYTES)]


def members(raw: bytes) -> dict[str, bytes] | None:
    """Return the members of a JSON object with their values as bytes; None when it is not an object."""
    try:
        return {name: bytes(value) for name, value in _members(raw).items()}
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def readable(raw: bytes) -> tuple[bytes, dict[str, bytes] | None]:
    """Return the members of a JSON object, and the bytes that they are from: repaired if a strict parser refuses them."""
    found = members(raw)
    if found is None and (whole := repaired(raw)) is not raw:
        return whole, members(whole)
    return raw, found


def rows(raw: bytes) -> list[bytes] | None:
    """Return the values of a JSON array as bytes; None when it is not an array."""
    try:
        return [bytes(row) for row in _rows(raw)]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


_SEPARATORS: Final = frozenset((b",", b" ", b"\t", b"\r", b"\n"))
"""The characters between the values of an array."""


def without_rows(raw: bytes, name: str, known: Sequence[bytes]) -> bytes:
    """Return a body with an empty array ``name``. ``known`` are the bytes of the array's objects. Return the body unchanged if
    they cannot be found with certainty.

    Finding known objects takes a tenth of the time of reading them.
    """
    start = _array(raw, b'"%b"' % name.encode())
    if not start:
        return raw
    end = _after_space(raw, start)
    for value in known:
        if not raw.startswith(value, end):
            return raw
        end = _after_space(raw, end + len(value))
    short = b"".join([*copies(raw, 0, start), *copies(raw, end, len(raw))])
    # Of two members with one name, parsers use the last one; and an inner object may have a member of this name, too.
    return short if (members(short) or {}).get(name) == b"[]" else raw


def _array(raw: bytes, key: bytes) -> int:
    """Return the position after the opening bracket of the first array under a key; 0 without one."""
    at = raw.find(key)
    while at >= 0:
        colon = _after_space(raw, at + len(key))
        start = _after_space(raw, colon + 1)
        if raw[colon : colon + 1] == b":" and raw[start : start + 1] == b"[":
            return start + 1
        at = raw.find(key, at + 1)
    return 0


def _after_space(raw: bytes, position: int) -> int:
    while raw[position : position + 1] in _SEPARATORS:
        position += 1
    return position


def array(values: Iterable[bytes]) -> orjson.Fragment:
    """Join JSON values to one array."""
    return orjson.Fragment(b"[" + b",".join(values) + b"]")
