"""The keeper of records: the newest in memory, all of the last days in a store, written in batches off the event loop.

A request only adds its exchange to a list. Nothing here delays or fails a request: records that cannot be written are
dropped, counted and logged (promise 6).
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal, TypeVar

import orjson

from gateway.observe.exchange import Exchange
from gateway.observe.shape import RecordJson, json_of
from gateway.state.records.base import Bounds, Query, RecordLog, StoredRecord
from gateway.state.store.sealing import CHECKED, Sealing, stored_name
from gateway.state.tasks import Tasks
from gateway.upstream.breaker import Breaker

RING_SIZE: Final = 1000
"""Exchanges kept in memory, 2 MB. Chosen: some minutes of one busy process."""
EVERY_S: Final = 0.25
"""Seconds for which exchanges are collected for one write. Chosen: a person does not notice the delay."""
MOST_WAITING: Final = 20_000
"""Exchanges that wait for a slow store, 40 MB; beyond, the oldest are dropped."""
PATIENCE_S: Final = 5.0
"""Time limit of one call of the store. No request waits for it."""
MOST_TEXTS_BYTES: Final = 16 * 2**20
"""Bytes of texts in memory."""

Result = TypeVar("Result")


class Records:
    """The records of one process, and those of all processes that share its store."""

    def __init__(
        self,
        log: RecordLog | None,
        tasks: Tasks,
        *,
        sealing: Sealing = CHECKED,
        failed: Callable[[str, Exception], None] = lambda part, error: None,
        dropped: Callable[[int], None] = lambda count: None,
    ) -> None:
        self._ring: deque[Exchange] = deque(maxlen=RING_SIZE)
        self._log = log
        self._tasks = tasks
        self._sealing = sealing
        self._failed = failed
        self._dropped = dropped
        self._waiting: deque[Exchange] = deque()
        self._writing = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._breakers = {"read": Breaker(), "write": Breaker()}
        self._texts: dict[str, bytes] = {}
        self._texts_bytes = 0

    @property
    def keeps(self) -> bool:
        """Return whether a store keeps records beyond the ring."""
        return self._log is not None and self._log.bounds.keep_s > 0

    def limit(self, bounds: Bounds) -> None:
        """Change how much is kept."""
        if self._log is not None:
            self._log.bounds = bounds

    @property
    def waiting(self) -> int:
        """Return how many records are not written yet."""
        return len(self._waiting)

    @property
    def resting(self) -> bool:
        """Return whether the store failed and is left alone for a while."""
        return any(breaker.open for breaker in self._breakers.values())

    def observe(self, exchange: Exchange) -> None:
        """Keep an exchange."""
        self._ring.append(exchange)
        if not self.keeps:
            return
        self._waiting.append(exchange)
        if len(self._waiting) > MOST_WAITING:
            self._waiting.popleft()
            self._dropped(1)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(EVERY_S, self._start_write)

    def newest(self, limit: int = 100) -> list[Exchange]:
        """Return this process's newest exchanges, newest first."""
        return list(reversed(self._ring))[:limit]

    def in_memory(self, query: Query) -> list[RecordJson]:
        """Return this process's records in memory."""
        of_the_time = (exchange for exchange in self._ring if query.since <= exchange.at < query.until)
        return query.of(map(json_of, of_the_time))

    async def find(self, query: Query) -> list[RecordJson]:
        """Return records, newest first: those in memory, and those of all processes in the store."""
        log, own = self._log, self.in_memory(query)
        stored: list[tuple[str, bytes]] = []
        if log is not None and self.keeps:
            stored = await self._try("read", lambda: log.find(query), stored)
        if not stored:
            return own
        return await asyncio.to_thread(self._join, query, stored, own)

    async def get(self, request_id: str) -> RecordJson | None:
        """Return one record: from memory, else from the store."""
        if (found := self.get_in_memory(request_id)) is not None:
            return found
        log = self._log
        value = await self._try("read", lambda: log.get(request_id), None) if log is not None else None
        return self._read(request_id, value) if value is not None else None

    def get_in_memory(self, request_id: str) -> RecordJson | None:
        """Return one record of this process, if it is still in memory."""
        return next((json_of(one) for one in self._ring if one.request_id == request_id), None)

    async def put_text(self, request_id: str, text: Any) -> None:
        """Keep the text of a request, where the operator switched that on."""
        value = orjson.dumps(text)
        self._texts[request_id] = value
        self._texts_bytes += len(value)
        while self._texts_bytes > MOST_TEXTS_BYTES:
            self._texts_bytes -= len(self._texts.pop(next(iter(self._texts))))
        log = self._log
        if log is not None and self.keeps:
            sealed = self._sealing.seal(stored_name("text", request_id), value)
            await self._try("write", lambda: log.put_text(request_id, sealed), None)

    def text_in_memory(self, request_id: str) -> Any:
        """Return the text of a request, if it is in this process's memory."""
        value = self._texts.get(request_id)
        return orjson.loads(value) if value is not None else None

    async def text(self, request_id: str) -> Any:
        """Return the text of a request: from memory, else from the store; None when it is in neither."""
        log, value = self._log, self._texts.get(request_id)
        if value is None and log is not None:
            sealed = await self._try("read", lambda: log.text(request_id), None)
            value = self._sealing.unseal(stored_name("text", request_id), sealed) if sealed is not None else None
        return orjson.loads(value) if value is not None else None

    async def forget(self, caller: str | None) -> int:
        """Delete the records of one caller (a key hash), or all. Raises what the store raises."""
        async with self._writing:  # else a running write would store records after the deletion
            self.forget_in_memory(caller)
            return await self._log.forget(caller) if self._log is not None else 0

    def forget_in_memory(self, caller: str | None) -> None:
        """Delete the records in memory."""
        for kept in (self._ring, self._waiting):
            left = [exchange for exchange in kept if caller is not None and exchange.caller != caller]
            kept.clear()
            kept.extend(left)
        self._texts.clear()
        self._texts_bytes = 0

    async def flush(self) -> None:
        """Write the waiting records, after a write that is running."""
        log = self._log
        if log is None:
            return
        async with self._writing:
            batch = list(self._waiting)
            self._waiting.clear()
            written = not batch
            try:
                if not written:
                    rows = await asyncio.to_thread(self._rows, batch)
                    written = await self._try("write", lambda: _true_after(log.append(rows)), False)
            finally:
                if not written:  # a row that reached the store nevertheless is later replaced by itself
                    self._put_back(batch)

    async def close(self) -> None:
        """Write the waiting records, and close the store. A store that is left alone is tried once more: records that wait would be lost."""
        if self._timer is not None:
            self._timer.cancel()
        if self._log is not None:
            self._breakers["write"] = Breaker()
            await self.flush()
            await self._log.close()

    def _put_back(self, batch: list[Exchange]) -> None:
        """Let exchanges wait again, before the newer ones; the oldest of too many are dropped."""
        surplus = max(len(batch) + len(self._waiting) - MOST_WAITING, 0)
        self._waiting.extendleft(reversed(batch[surplus:]))
        if surplus:
            self._dropped(surplus)

    def _start_write(self) -> None:
        self._timer = None
        self._tasks.start(self._flush_and_schedule(), "records", must_finish=True)

    async def _flush_and_schedule(self) -> None:
        await self.flush()
        if self._waiting and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(
                PATIENCE_S if self._breakers["write"].open else EVERY_S, self._start_write
            )

    def _rows(self, batch: list[Exchange]) -> list[StoredRecord]:
        """Return the rows of a batch. A record that cannot be made a row is left out: it would hold up all others."""
        rows = list[StoredRecord]()
        for exchange in batch:
            try:
                rows.append(self._row(exchange))
            except Exception as error:  # noqa: BLE001  # promise 6: a record is no reason to lose others
                self._failed("records write", error)
        return rows

    def _row(self, exchange: Exchange) -> StoredRecord:
        one = json_of(exchange)
        value = self._sealing.seal(stored_name("exchange", exchange.request_id), orjson.dumps(one))
        return StoredRecord(
            one["request_id"], exchange.at, one["key"], one["model"], one["session"], one["conversation"], one["caller"],
            value,
        )  # fmt: skip

    def _join(self, query: Query, stored: list[tuple[str, bytes]], own: list[RecordJson]) -> list[RecordJson]:
        """Return the records of the store and of this process that a query asks for, each once."""
        read = (self._read(identity, value) for identity, value in stored)
        return query.of([*(one for one in read if one is not None), *own])

    def _read(self, request_id: str, sealed: bytes) -> RecordJson | None:
        value = self._sealing.unseal(stored_name("exchange", request_id), sealed)
        return parse_record(value) if value is not None else None

    async def _try(
        self, operation: Literal["read", "write"], call: Callable[[], Awaitable[Result]], otherwise: Result
    ) -> Result:
        """Call the store; return ``otherwise`` after a failure. After several failures the store is not called for a while."""
        breaker = self._breakers[operation]
        if not breaker.begin_call():
            return otherwise
        try:
            async with asyncio.timeout(PATIENCE_S):
                found = await call()
        except Exception as error:  # noqa: BLE001  # promise 6: whatever the store's library raises
            breaker.failed()
            self._failed(f"records {operation}", error)
            return otherwise
        breaker.succeeded()
        return found


def parse_record(value: bytes) -> RecordJson | None:
    """Decode a stored record; None for a value that cannot be ours."""
    try:
        found = orjson.loads(value)
    except orjson.JSONDecodeError:
        return None
    whole = (
        isinstance(found, dict) and type(found.get("at")) in (int, float) and isinstance(found.get("request_id"), str)
    )
    return found if whole else None


async def _true_after(work: Awaitable[None]) -> bool:
    """Return True once the work is done."""
    await work
    return True
