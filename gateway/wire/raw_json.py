"""Take JSON apart without reading it: members and rows keep their bytes."""

from collections.abc import Iterable
from typing import Final

import msgspec
import orjson

from gateway.wire.surrogates import mended

_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_rows: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode


def members(raw: bytes) -> dict[str, bytes] | None:
    """Return the members of a JSON object with their values as bytes; None when it is not an object."""
    try:
        return {name: bytes(value) for name, value in _members(raw).items()}
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def readable(raw: bytes) -> tuple[bytes, dict[str, bytes] | None]:
    """Return the members of a JSON object, and the bytes that they are from: mended where a strict parser refuses them."""
    found = members(raw)
    if found is None and (whole := mended(raw)) is not raw:
        return whole, members(whole)
    return raw, found


def rows(raw: bytes) -> list[bytes] | None:
    """Return the values of a JSON array as bytes; None when it is not an array."""
    try:
        return [bytes(row) for row in _rows(raw)]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def array(values: Iterable[bytes]) -> orjson.Fragment:
    """Join JSON values to one array."""
    return orjson.Fragment(b"[" + b",".join(values) + b"]")
