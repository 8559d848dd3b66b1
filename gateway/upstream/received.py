"""The answer on one of our own connections: its head, and the bytes that have arrived but were not taken yet."""

import asyncio
from typing import Final, Protocol

from multidict import CIMultiDict

from gateway.upstream.response import BrokenOff

BUFFER: Final = 2**16
"""Bytes of an answer that are read ahead of a slow client; above it reading pauses. One read brings up to 256 KB. With 256 KB here two
of them were held for each client that does not read."""


class AnswerSource(Protocol):
    """The connection on which an answer arrives."""

    def pause(self) -> None:
        """Stop reading for a while."""

    def resume(self) -> None:
        """Read on."""

    def close(self) -> None:
        """Close, in the middle of an answer."""


class ReceivedResponse:
    """See `gateway.upstream.response.Response`."""

    __slots__ = ("_arrived", "_error", "_size", "_source", "_waiter", "headers", "held_back", "reason", "status")

    def __init__(self, source: AnswerSource, status: int, reason: str, headers: CIMultiDict[str]) -> None:
        self.status = status
        self.reason = reason
        self.headers = headers
        self.held_back = False
        """Whether reading is paused because the client is slow: the upstream is not at fault."""
        self._source: AnswerSource | None = source
        self._arrived: list[bytes] = []
        self._size = 0
        self._waiter: asyncio.Future[None] | None = None
        self._error: Exception | None = None

    @property
    def complete(self) -> bool:
        return self._source is None and self._error is None

    def take(self) -> bytes:
        arrived = self._arrived
        if not arrived:
            return b""
        found = arrived[0] if len(arrived) == 1 else b"".join(arrived)
        arrived.clear()
        self._size = 0
        if self.held_back and self._source is not None:
            self.held_back = False
            self._source.resume()
        return found

    async def next_piece(self) -> bytes:
        while not self._arrived:
            if self._error is not None:
                raise self._error
            if self._source is None:
                return b""
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return self.take()

    def close(self) -> None:
        if self._source is not None:
            self._source.close()

    def feed(self, piece: bytes) -> None:
        """Add bytes of the body."""
        self._arrived.append(piece)
        self._size += len(piece)
        if self._size > BUFFER and not self.held_back and self._source is not None:
            self.held_back = True
            self._source.pause()
        self._wake()

    def finish(self) -> None:
        """Mark the body as complete. From now on the answer has no connection."""
        self._source = None
        self._wake()

    def fail(self, error: Exception | None = None) -> None:
        """Mark the answer as broken off. Bytes that have arrived can still be taken."""
        self._source = None
        self._error = error or BrokenOff()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
