"""Stored values: small JSON objects that carry their version, so that a foreign, damaged or older one is told apart."""

from collections.abc import Callable, Mapping
from typing import Any

import orjson

Check = Callable[[Any], bool]
"""Whether the value of a field is one that we could have written."""


def pack(version: int, **fields: Any) -> bytes:
    """Write a value down as it is stored."""
    return orjson.dumps({"v": version, **fields})


def unpack(stored: bytes | None, version: int, **fields: type | Check) -> dict[str, Any] | None:
    """Read a value that has these fields, or None for one that is missing, damaged, of another version or out of range.

    A field is given by its type or by a check. A bool is no int: ``true`` is nobody's number of tokens.
    """
    if stored is None:
        return None
    try:
        value = orjson.loads(stored)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(value, dict) or value.get("v") != version:
        return None
    return value if all(_holds(value.get(name), check) for name, check in fields.items()) else None


def whole(least: int, most: int) -> Check:
    """A whole number within a range."""
    return lambda value: type(value) is int and least <= value <= most


def number(least: float, most: float) -> Check:
    """A number within a range, whole or not."""
    return lambda value: type(value) in (int, float) and least <= value <= most


def text(longest: int) -> Check:
    """A text of at most so many characters."""
    return lambda value: isinstance(value, str) and len(value) <= longest


def flag(value: Any) -> bool:
    """True or false."""
    return isinstance(value, bool)


def each(check: Check, most: int) -> Check:
    """A list of at most so many values of one kind."""
    return lambda value: isinstance(value, list) and len(value) <= most and all(map(check, value))


def fields(**checks: Check) -> Check:
    """An object that has these fields."""
    return lambda value: isinstance(value, Mapping) and all(check(value.get(name)) for name, check in checks.items())


def _holds(value: Any, check: type | Check) -> bool:
    if isinstance(check, type):
        return isinstance(value, check) and (check is bool or not isinstance(value, bool))
    return check(value)
