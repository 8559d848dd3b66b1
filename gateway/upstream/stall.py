"""Time limit for upstreams that stop sending in the middle of an answer: one timer for all running answers.

aiohttp resets its own read timeout with every piece, which costs a quarter of forwarding a stream's chunk.
"""

import asyncio
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

import aiohttp

from gateway.upstream.fast_http import end_read_timeout, is_held_back

LONGEST_LOOK_S: Final = 1.0
"""Longest interval between two checks; a short time limit is checked more often."""
SHORTEST_LOOK_S: Final = 0.01
"""Shortest interval between two checks. Chosen to bound their cost."""


@dataclass(slots=True)
class Silence:
    """How long an answer has sent nothing."""

    patience_s: float
    seen: int
    since: float


class Patience:
    """Ends answers that send nothing for too long. It holds weak references: a dropped answer needs no removal."""

    def __init__(self) -> None:
        self._answers: WeakKeyDictionary[aiohttp.ClientResponse, Silence] = WeakKeyDictionary()
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, response: aiohttp.ClientResponse, patience_s: float) -> None:
        """Watch an answer from now on, instead of aiohttp's read timeout; a complete answer is not watched."""
        connection = response.connection
        if connection is None or connection.protocol is None or response.content.is_eof():
            return
        end_read_timeout(response)
        loop = asyncio.get_running_loop()
        self._answers[response] = Silence(patience_s, response.content.total_bytes, loop.time())
        if self._timer is None:
            self._timer = loop.call_later(_pause_s(patience_s), self._tick)

    def close(self) -> None:
        """Stop checking."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def look(self, now: float) -> None:
        """End the answers that have sent nothing for too long at ``now``; drop the finished ones."""
        for response, silence in list(self._answers.items()):
            content = response.content
            if content.is_eof() or response.closed:
                del self._answers[response]
            elif content.total_bytes != silence.seen or is_held_back(response):
                silence.seen, silence.since = content.total_bytes, now
            elif now - silence.since >= silence.patience_s:
                del self._answers[response]
                content.set_exception(aiohttp.SocketTimeoutError("The upstream fell silent"))
                response.close()

    def __len__(self) -> int:
        return len(self._answers)

    def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        self.look(loop.time())
        shortest = min((silence.patience_s for silence in self._answers.values()), default=None)
        self._timer = None if shortest is None else loop.call_later(_pause_s(shortest), self._tick)


def _pause_s(patience_s: float) -> float:
    return max(min(LONGEST_LOOK_S, patience_s / 4), SHORTEST_LOOK_S)
