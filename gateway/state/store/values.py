"""Stored values: small JSON objects with a version, so that foreign, damaged or older ones are recognised."""

from collections.abc import Callable, Mapping
from typing import Any

import orjson

Check = Callable[[Any], bool]
"""Returns whether a field's value could have been written by this program."""


def pack(version: int, **fields: Any) -> bytes:
    """Encode a value for the store."""
    return orjson.dumps({"v": version, **fields})


def unpack(stored: bytes | None, version: int, **fields: type | Check) -> dict[str, Any] | None:
    """Decode a value with these fields; None when it is missing, damaged, out of range or of another version.

    A field is described by its type or by a check. A bool is not an int: ``true`` is not a token count.
    """
    if stored is None:
        return None
    try:
        value = orjson.loads(stored)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(value, dict) or value.get("v") != version:
        return None
    return value if all(name in value and _holds(value[name], check) for name, check in fields.items()) else None


def whole(least: int, most: int) -> Check:
    """Return a check for an integer within a range."""
    return lambda value: type(value) is int and least <= value <= most


def number(least: float, most: float) -> Check:
    """Return a check for a number within a range."""
    return lambda value: type(value) in (int, float) and least <= value <= most


def text(longest: int) -> Check:
    """Return a check for a text with a maximum length in characters."""
    return lambda value: isinstance(value, str) and len(value) <= longest


def flag(value: Any) -> bool:
    """Check for true or false."""
    return isinstance(value, bool)


def each(check: Check, most: int) -> Check:
    """Return a check for a list of one kind of item with a maximum length."""
    return lambda value: isinstance(value, list) and len(value) <= most and all(map(check, value))


def fields(**checks: Check) -> Check:
    """Return a check for an object with these fields."""
    return lambda value: (
        isinstance(value, Mapping) and all(name in value and check(value[name]) for name, check in checks.items())
    )


def _holds(value: Any, check: type | Check) -> bool:
    if isinstance(check, type):
        return isinstance(value, check) and (check is bool or not isinstance(value, bool))
    return check(value)
