"""Values that JSON and stores can hold: clients and upstreams may send numbers and texts that these cannot."""

from collections.abc import Mapping
from typing import Any, Final

LARGEST: Final = 10**12
"""The largest number that a record has; larger ones are recorded as this one. JSON is written with 64 bits, and sums over all records must
fit into these, too. Chosen: more tokens or bytes than a request can have."""


def storable(value: Any) -> Any:
    """Return a value with its numbers within `LARGEST`, and with `?` for characters that UTF-8 cannot encode."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if type(value) is int:
        return min(max(value, -LARGEST), LARGEST)
    if isinstance(value, Mapping):
        return {name: storable(each) for name, each in value.items()}
    return [storable(each) for each in value] if isinstance(value, list | tuple) else value
