"""A memory of the newest values, of bounded size."""

from collections import OrderedDict
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


def keep_newest(kept: OrderedDict[Key, Value], key: Key, value: Value, most: int) -> None:
    """Set a value, which is now the newest; the oldest are dropped while there are more than ``most``."""
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > most:
        kept.popitem(last=False)
