"""A guard between requests and a store: time limits, a circuit breaker, and a check that values are our own."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

import structlog

from gateway.state.store.base import Store
from gateway.state.store.reason import reason_of
from gateway.state.store.sealing import CHECKED, Sealing, stored_name
from gateway.upstream.breaker import Breaker

log = structlog.get_logger(__name__)

READ_TIMEOUT_S: Final = 0.05
"""Time limit of a read, which may delay a request. A healthy store answers in under a millisecond."""
WRITE_PATIENCE: Final = 5
"""Factor for the time limit of a write, which delays no request. Chosen: a write to disk is slower than a read."""
MOST_WAITING: Final = 256
"""Concurrent calls of one kind. Chosen: a healthy store serves that many within the time limit, and more would all be
late."""
CLAIM_TIMEOUT_S: Final = 2.0
"""Time limit of a claim. Only background work claims, and a lost answer may block a job until the claim expires."""
FORGET_TIMEOUT_S: Final = 120.0
"""Time limit of a deletion, for which an operator waits. Chosen: a scan of a large store takes seconds."""
LAST_ROUNDS: Final = 8
"""Rounds of the event loop after a time limit in which a finished call still counts; see `_within`."""
MAX_VALUE_BYTES: Final = 256 * 1024
"""Bytes. A long summary has 10 KB; a larger value is not our own."""

Result = TypeVar("Result")


class GuardedStore:
    """A store that never raises and never blocks for long, in front of a store that may do both.

    Reads and writes fail separately: a read-only disk can still be read. ``failed`` is called with each failure
    (operation, reason), for metrics.
    """

    def __init__(
        self,
        store: Store,
        *,
        sealing: Sealing = CHECKED,
        failed: Callable[[str, str], None] = lambda operation, reason: None,
        clock: Callable[[], float] = time.monotonic,
        timeout_s: float = READ_TIMEOUT_S,
    ) -> None:
        self._store = store
        self._sealing = sealing
        self._failed = failed
        self._reads = Breaker(clock=clock)
        self._writes = Breaker(clock=clock)
        self._counts = Breaker(clock=clock)
        self._read_timeout_s = timeout_s
        self._write_timeout_s = WRITE_PATIENCE * timeout_s
        self._waiting: Counter[str] = Counter()
        self._abandoned: set[asyncio.Future[Any]] = set()

    @property
    def resting(self) -> tuple[str, ...]:
        """Return the kinds of calls that are not made at present because they failed."""
        breakers = (("reads", self._reads), ("writes", self._writes), ("counts", self._counts))
        return tuple(name for name, breaker in breakers if breaker.open)

    async def get(self, kind: str, key: str) -> bytes | None:
        sealed = await self._try("get", self._reads, self._read_timeout_s, lambda: self._store.get(kind, key), None)
        return None if sealed is None else self._unseal(kind, key, sealed)

    async def get_many(self, kind: str, keys: Sequence[str]) -> dict[str, bytes]:
        if not keys:
            return {}
        nothing: dict[str, bytes] = {}
        sealed = await self._try(
            "get", self._reads, self._read_timeout_s, lambda: self._store.get_many(kind, keys), nothing
        )
        values = {key: self._unseal(kind, key, value) for key, value in sealed.items()}
        return {key: value for key, value in values.items() if value is not None}

    async def names(self, kind: str, most: int) -> list[str]:
        """Return keys for an operator, with a longer time limit than requests have."""
        nothing: list[str] = []
        return await self._try("get", self._reads, CLAIM_TIMEOUT_S, lambda: self._store.names(kind, most), nothing)

    async def put(self, kind: str, key: str, value: bytes, *, ttl_s: float, scope: str = "") -> None:
        if len(value) > MAX_VALUE_BYTES:
            self._failed("put", "too_large")
            return
        sealed = self._sealing.seal(stored_name(kind, key), value)
        await self._try(
            "put",
            self._writes,
            self._write_timeout_s,
            lambda: self._store.put(kind, key, sealed, ttl_s=ttl_s, scope=scope),
            None,
        )

    async def claim(self, key: str, *, ttl_s: float) -> bool:
        """Claim a job. Without a working store the claim fails, because another process may have it."""
        return await self._try(
            "claim", self._writes, CLAIM_TIMEOUT_S, lambda: self._store.claim(key, ttl_s=ttl_s), False
        )

    async def release(self, key: str) -> None:
        await self._try("release", self._writes, CLAIM_TIMEOUT_S, lambda: self._store.release(key), None)

    async def add(self, key: str, amount: int, *, ttl_s: float) -> int | None:
        """Add to a count. A request waits for this, so the time limit is that of a read."""
        return await self._try(
            "add", self._counts, self._read_timeout_s, lambda: self._store.add(key, amount, ttl_s=ttl_s), None
        )

    async def forget(self, scope: str | None) -> int:
        """Delete values; this method raises, because an operator must know whether it worked."""
        async with asyncio.timeout(FORGET_TIMEOUT_S):
            return await self._store.forget(scope)

    async def close(self) -> None:
        try:
            async with asyncio.timeout(CLAIM_TIMEOUT_S):
                await asyncio.gather(*self._abandoned, return_exceptions=True)
                await self._store.close()
        except Exception as error:  # noqa: BLE001 - a store that will not close must not keep the process from ending
            log.warning("store_not_closed", reason=reason_of(error))

    async def _try(
        self,
        operation: str,
        breaker: Breaker,
        timeout_s: float,
        call: Callable[[], Awaitable[Result]],
        otherwise: Result,
    ) -> Result:
        """Call the store; return ``otherwise`` after a failure, or if the store is busy or left alone."""
        if self._waiting[operation] >= MOST_WAITING:
            self._failed(operation, "busy")
            return otherwise
        if not breaker.begin_call():
            return otherwise
        self._waiting[operation] += 1
        try:
            answer = await self._within(timeout_s, call())
        except Exception as error:  # noqa: BLE001 - whatever a store does, the request goes on without it
            was_open = breaker.open
            breaker.failed()
            self._failed(operation, reason_of(error))
            if breaker.open and not was_open:
                # One line per outage: otherwise every request would log one.
                log.warning("store_left_alone", operation=operation, reason=reason_of(error))
            return otherwise
        finally:
            self._waiting[operation] -= 1
        if breaker.open:
            log.info("store_recovered", operation=operation)
        breaker.succeeded()
        return answer

    async def _within(self, timeout_s: float, call: Awaitable[Result]) -> Result:
        """Wait for a result, with a time limit. Raises TimeoutError.

        A busy event loop handles its timers before it reads data that has arrived. The time limit would then end although the
        store's answer is there. So the call gets a few more rounds of the loop to finish.
        """
        answer = asyncio.ensure_future(call)  # noqa: TID251 - awaited right here, or held until it is cancelled
        try:
            await asyncio.wait((answer,), timeout=timeout_s)
            for _ in range(LAST_ROUNDS):
                if answer.done():
                    return answer.result()
                await asyncio.sleep(0)
            raise TimeoutError
        finally:
            if not answer.done():
                self._abandoned.add(answer)
                answer.add_done_callback(self._let_go)
                answer.cancel()

    def _let_go(self, answer: "asyncio.Future[Any]") -> None:
        """Read the result of an abandoned call, or asyncio complains about an unread exception."""
        self._abandoned.discard(answer)
        if not answer.cancelled():
            answer.exception()

    def _unseal(self, kind: str, key: str, sealed: bytes) -> bytes | None:
        value = self._sealing.unseal(stored_name(kind, key), sealed)
        if value is None:
            self._failed("get", "foreign_value")
        return value
