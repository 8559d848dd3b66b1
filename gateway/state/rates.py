"""Rates: the requests and tokens of each client key in the current minute.

It is a minute of the clock, so that replicas mean the same one. Counts are shared through the store; while it does not
work, each process counts for itself. Nothing here refuses: it returns numbers.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Final, Literal

from gateway.observe.exchange import Exchange
from gateway.state.store.base import Store
from gateway.state.store.memory import MemoryStore

MINUTE_S: Final = 60
"""Seconds."""
KEPT_S: Final = 120.0
"""How long the count of a minute is kept: longer than the minute, because clocks differ."""

BYTES_PER_TOKEN: Final = 4
"""Used when an upstream does not state its bill: ordinary English text."""

What = Literal["requests", "tokens"]


@dataclass(frozen=True, slots=True)
class Used:
    """A key's use of one of its limits in the current minute."""

    what: What
    limit: int
    count: int
    reset_s: int
    """Seconds until the next minute begins, 1 to 60."""

    @property
    def left(self) -> int:
        """Return the unused rest."""
        return max(self.limit - self.count, 0)


def tokens_of(exchange: Exchange) -> int:
    """Return the tokens of a request: as billed, else as counted, else by its size. Requests that are passed through
    count as billed only."""
    if exchange.prompt_tokens is not None:
        return exchange.prompt_tokens + (exchange.completion_tokens or 0)
    if not exchange.format:
        return 0
    return exchange.tokens_after or exchange.body_bytes // BYTES_PER_TOKEN


class Rates:
    """The counts of all client keys, by a name for the key."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._own = MemoryStore()
        self._clock = clock

    async def use(self, key: str, what: What, amount: int, limit: int) -> Used:
        """Add to a key's use and return it; an amount of 0 only reads."""
        now = self._clock()
        count = await self._add(f"{what}.{key}.{int(now // MINUTE_S)}", amount)
        return Used(what, limit, count, max(ceil(MINUTE_S - now % MINUTE_S), 1))

    async def _add(self, name: str, amount: int) -> int:
        own = await self._own.add(name, amount, ttl_s=KEPT_S)
        shared = await self._store.add(name, amount, ttl_s=KEPT_S)
        return own if shared is None else max(own, shared)
