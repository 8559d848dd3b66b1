"""Stored values: small JSON objects that carry their version, so that a foreign, damaged or older one is told apart."""

from typing import Any

import orjson


def pack(version: int, **fields: Any) -> bytes:
    """Write a value down as it is stored."""
    return orjson.dumps({"v": version, **fields})


def unpack(stored: bytes | None, version: int, **fields: type) -> dict[str, Any] | None:
    """Read a value that has these fields, or None for one that is missing, damaged or of another version."""
    if stored is None:
        return None
    try:
        value = orjson.loads(stored)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(value, dict) or value.get("v") != version:
        return None
    return value if all(isinstance(value.get(name), kind) for name, kind in fields.items()) else None
