"""The unfinished request heads of one port: how many there may be, and how large they may be together."""

from collections import OrderedDict
from typing import Final, Protocol

MOST_HEADS: Final = 2000
"""Connections of one port that may wait for the rest of a head, about 15 KB each. More are a flood."""
MOST_BYTES: Final = 16 * 2**20
"""Bytes of all unfinished heads of one port."""


class Waiting(Protocol):
    """A connection that waits for a head, or for the rest of it."""

    def give_up(self) -> None:
        """End the connection, because there are too many unfinished heads."""


class UnfinishedHeads:
    """The connections of one port that wait for a head, the oldest first. If they exceed a limit, the oldest is ended.

    A head that arrives whole never waits. So a flood of slow heads costs other clients nothing.
    """

    def __init__(self) -> None:
        self._bytes_of: OrderedDict[Waiting, int] = OrderedDict()
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._bytes_of)

    def begin(self, connection: Waiting) -> None:
        """Count a connection that waits for a head."""
        self._bytes_of.setdefault(connection, 0)
        self._end_oldest()

    def add(self, connection: Waiting, size_bytes: int) -> None:
        """Count bytes of a connection's head."""
        self._bytes_of[connection] = self._bytes_of.get(connection, 0) + size_bytes
        self.size_bytes += size_bytes
        self._end_oldest()

    def end(self, connection: Waiting) -> None:
        """Stop counting a connection."""
        self.size_bytes -= self._bytes_of.pop(connection, 0)

    def _end_oldest(self) -> None:
        """End the oldest connections until the others are within the limits."""
        while len(self._bytes_of) > MOST_HEADS or self.size_bytes > MOST_BYTES:
            oldest = next(iter(self._bytes_of))
            self.end(oldest)
            oldest.give_up()
