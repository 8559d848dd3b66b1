"""Records in Redis or Valkey, for several machines. Needs the extra ``redis``.

A sorted set by time holds the ids of all records; conversations, sessions and callers have sets of their own. Each
record is a value that expires.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from redis.asyncio import BlockingConnectionPool, Redis

from gateway.state.records.base import Bounds, Query, StoredRecord
from gateway.state.store.redis import PER_BATCH, PREFIX, SOCKET_TIMEOUT_S, ids_in, with_own_indexes, writing

ALL: Final = f"{PREFIX}exchanges"
CONNECTIONS: Final = 4
"""Connections of one process: one writes, and operators ask."""
MOST_LOOKED_AT: Final = 20_000
"""Records that one question reads at most when it filters by key or model, 30 MB."""
MOST_TRIMMED: Final = 10_000
"""Surplus records that are deleted after one write. Chosen: it takes a tenth of a second."""
ABOUT_BYTES: Final = 1500
"""Bytes of one record with its index. Chosen: a record is about 1 KB of JSON, and stands in up to four sets."""


class RedisLog:
    """Records under ``turnfold:1:exchange:``."""

    def __init__(self, url: str, bounds: Bounds, *, clock: Callable[[], float] = time.time) -> None:
        pool = BlockingConnectionPool.from_url(
            url, max_connections=CONNECTIONS, timeout=SOCKET_TIMEOUT_S, socket_timeout=SOCKET_TIMEOUT_S,
            socket_connect_timeout=SOCKET_TIMEOUT_S,
        )  # fmt: skip
        self._redis = Redis(connection_pool=pool)
        self.bounds = bounds
        self._clock = clock

    async def append(self, rows: Sequence[StoredRecord]) -> None:
        keep_ms = max(int(self.bounds.keep_s * 1000), 1)
        oldest = self._clock() - self.bounds.keep_s
        indexes = {ALL, *[index for row in rows for index in _indexes(row)]}

        async def write() -> None:
            async with self._redis.pipeline(transaction=False) as batch:
                for row in rows:
                    batch.set(_name("exchange", row.id), row.value, px=keep_ms)
                    for index in (ALL, *_indexes(row)):
                        batch.zadd(index, {row.id: row.at})
                        batch.pexpire(index, keep_ms)
                        if index != ALL:
                            batch.zremrangebyscore(index, "-inf", oldest)
                batch.zremrangebyscore(ALL, "-inf", oldest)
                await batch.execute()

        async with writing(self._redis):
            await with_own_indexes(self._redis, indexes, write)
        await self._trim()

    async def find(self, query: Query) -> list[tuple[str, bytes]]:
        index = ALL
        for kind, wanted in (("conversation", query.conversation), ("session", query.session)):
            if wanted:
                index = _name(f"exchanges-{kind}", wanted)
        found: list[tuple[str, bytes]] = []
        filtered = bool(query.key or query.model or (query.session and query.conversation))
        most = MOST_LOOKED_AT if filtered else query.limit
        for start in range(0, most, PER_BATCH):
            names = await self._redis.zrevrangebyscore(
                index, f"({query.until}", query.since, start=start, num=min(PER_BATCH, most - start)
            )
            if not names:
                break
            ids = _texts(names)
            values = await self._redis.mget([_name("exchange", one) for one in ids])
            found += [(one, value) for one, value in zip(ids, values, strict=True) if isinstance(value, bytes)]
        return found

    async def get(self, request_id: str) -> bytes | None:
        return await self._value(_name("exchange", request_id))

    async def put_text(self, request_id: str, value: bytes) -> None:
        async with writing(self._redis):
            await self._redis.set(_name("exchange-text", request_id), value, px=max(int(self.bounds.keep_s * 1000), 1))

    async def text(self, request_id: str) -> bytes | None:
        return await self._value(_name("exchange-text", request_id))

    async def forget(self, caller: str | None) -> int:
        gone = 0
        index = ALL if caller is None else _name("exchanges-caller", caller)
        async with writing(self._redis):
            async for ids in ids_in(self._redis, index):
                gone += await self._delete(ids)
                await self._redis.zrem(index, *ids)
        return gone

    async def close(self) -> None:
        await self._redis.aclose()
        await self._redis.connection_pool.disconnect()

    async def _value(self, name: str) -> bytes | None:
        """Return a value. Of a key with another type than ours, GET raises; MGET has no value there."""
        (value,) = await self._redis.mget([name])
        return value if isinstance(value, bytes) else None

    async def _trim(self) -> None:
        """Delete the oldest records beyond the bounds, not all at once: after the bounds were lowered there may be many."""
        most = min(self.bounds.most, max(self.bounds.max_bytes // ABOUT_BYTES, 1))
        beyond = min(await self._redis.zcard(ALL) - most, MOST_TRIMMED)
        while beyond > 0 and (ids := await self._redis.zrange(ALL, 0, min(beyond, PER_BATCH) - 1)):
            await self._delete(ids)
            beyond -= len(ids)

    async def _delete(self, ids: Sequence[Any]) -> int:
        """Delete records. The ids are bytes as Redis has them: those of another hand may be no text."""
        ids = [one for one in ids if isinstance(one, bytes)]
        gone = int(await self._redis.unlink(*(_name("exchange", "").encode() + one for one in ids)))
        await self._redis.unlink(*(_name("exchange-text", "").encode() + one for one in ids))
        await self._redis.zrem(ALL, *ids)
        return gone


def _texts(members: Sequence[Any]) -> list[str]:
    """Return the members of a set as text. What another hand wrote may be no text: no record of ours has a name that is like it."""
    return [member.decode("utf-8", "replace") for member in members if isinstance(member, bytes)]


def _indexes(row: StoredRecord) -> list[str]:
    pairs = (("conversation", row.conversation), ("session", row.session), ("caller", row.caller))
    return [_name(f"exchanges-{kind}", value) for kind, value in pairs if value]


def _name(kind: str, key: str) -> str:
    return f"{PREFIX}{kind}:{key}"
