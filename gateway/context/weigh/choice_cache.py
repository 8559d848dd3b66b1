"""The cache of what was chosen from one folded part: digests, quotes, and what a question asks."""

from collections.abc import Callable
from sys import getsizeof
from typing import Any, Final, TypeVar

MOST_CACHED_CHOICES: Final = 200
"""Choices from one folded part that are cached: mostly one for each question."""

T = TypeVar("T")


class ChoiceCache:
    """Choices by the key that has everything they depend on. All are dropped when there are `MOST_CACHED_CHOICES`."""

    def __init__(self) -> None:
        self.add_bytes: Callable[[int], None] | None = None
        """Called with the bytes by which the cache grows, negative if it shrinks; None if it is not in a memory."""
        self._choices: dict[object, Any] = {}
        self._bytes = 0

    def get_or_make(self, key: object, choose: Callable[[], T]) -> T:
        """Return the choice under a key; make it with ``choose`` if it is missing. It must not be None."""
        found: T | None = self._choices.get(key)
        if found is None:
            if len(self._choices) >= MOST_CACHED_CHOICES:
                self._choices.clear()
                self._count(-self._bytes)
            found = self._choices[key] = choose()
            self._count(_bytes_of(key) + _bytes_of(found))
        return found

    def _count(self, more: int) -> None:
        self._bytes += more
        if self.add_bytes is not None:
            self.add_bytes(more)


def _bytes_of(value: object) -> int:
    """Return about how many bytes a choice takes."""
    return getsizeof(value) + (sum(map(_bytes_of, value)) if isinstance(value, tuple) else 0)
