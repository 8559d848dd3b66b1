"""End exchanges with upstreams that stop sending, before or within an answer: one timer for all requests.

A timer for each piece of a stream would cost a quarter of forwarding it.
"""

import asyncio
from collections.abc import Set
from typing import Final

import msgspec

from gateway.upstream.http1 import UpstreamConnection

LONGEST_CHECK_S: Final = 1.0
"""Longest interval between two checks; a short time limit is checked more often."""
SHORTEST_CHECK_S: Final = 0.01
"""Shortest interval between two checks. Chosen to bound their cost."""


class Silence(msgspec.Struct):
    """Since when nothing has happened on a connection."""

    progress: int
    """The connection's `progress` then."""
    since: float


class Patience:
    """Ends exchanges in which nothing happens for too long. ``busy`` are the connections with a running exchange."""

    def __init__(self, busy: Set[UpstreamConnection]) -> None:
        self._busy = busy
        self._silences: dict[UpstreamConnection, Silence] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._shortest_s = 0.0
        """The time limit for which the timer was started."""

    def watch(self, patience_s: float) -> None:
        """Start to check, or check more often for a shorter time limit. Called with the time limit of each request."""
        if self._timer is not None and patience_s >= self._shortest_s:
            return
        self.close()
        self._shortest_s = patience_s
        self._timer = asyncio.get_running_loop().call_later(_pause_s(patience_s), self._tick)

    def close(self) -> None:
        """Stop checking."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def check(self, now: float) -> None:
        """End the exchanges in which nothing has happened for too long at the time ``now``."""
        known, self._silences = self._silences, {}
        for connection in list(self._busy):
            silence = known.get(connection)
            if silence is None or silence.progress != connection.progress or connection.waits_for_us:
                self._silences[connection] = Silence(connection.progress, now)
            elif connection.patience_s is not None and now - silence.since >= connection.patience_s:
                connection.end(TimeoutError("the upstream fell silent"))
            else:
                self._silences[connection] = silence

    def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        self.check(loop.time())
        shortest = min((each.patience_s for each in self._busy if each.patience_s is not None), default=None)
        self._timer = None
        if shortest is not None:
            self.watch(shortest)


def _pause_s(patience_s: float) -> float:
    return max(min(LONGEST_CHECK_S, patience_s / 4), SHORTEST_CHECK_S)
