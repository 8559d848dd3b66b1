"""A store in Redis or Valkey, for several machines. Needs the extra ``redis``.

This class raises the driver's exceptions; `gateway.state.store.guard` handles them.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Final
from uuid import uuid4

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ReadOnlyError, ResponseError

PREFIX: Final = "turnfold:1:"
"""Product and layout version: two versions of Turnfold can share a server during an upgrade."""
SCOPE_TTL_S: Final = 31 * 24 * 3600
"""Lifetime of a scope's set of keys. Longer than the lifetime of any value in it."""
CONNECTIONS: Final = 32
"""Connections of one process. Chosen: a healthy server answers in under a millisecond."""
SOCKET_TIMEOUT_S: Final = 1.0
"""Time limit of a connection; requests wait less long, see `gateway.state.store.guard`."""
PER_BATCH: Final = 500
"""Keys per command. Chosen: a command of this size blocks the server for less than a millisecond."""

RELEASE: Final = """
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
return 0
"""


ADD: Final = """
local sum = redis.pcall('incrby', KEYS[1], ARGV[1])
if type(sum) == 'table' then
  if not (string.find(sum.err, 'WRONGTYPE') or string.find(sum.err, 'not an integer')) then return sum end
  redis.call('del', KEYS[1])
  sum = redis.call('incrby', KEYS[1], ARGV[1])
end
if redis.call('pttl', KEYS[1]) < 0 then redis.call('pexpire', KEYS[1], ARGV[2]) end
return sum
"""
"""A key that is no count is not ours, and is deleted. Other errors, such as that of a full server, are raised."""


@asynccontextmanager
async def writing(redis: Redis) -> AsyncIterator[None]:
    """Write to a server. One that has become a replica refuses that and keeps its connections open, after a failover for ever. They are
    closed, because the next ones may lead to the new primary: its name and address are often those of the old one."""
    try:
        yield
    except ReadOnlyError:
        await redis.connection_pool.disconnect(inuse_connections=False)
        raise


async def ids_in(redis: Redis, index: str | bytes) -> AsyncIterator[list[bytes]]:
    """Return the members of a sorted set in batches. The caller removes each batch. A key with another type is deleted: it is not
    ours, and no index could be made in its place."""
    if await redis.type(index) != b"zset":
        await redis.unlink(index)
        return
    while ids := [one for one in await redis.zrange(index, 0, PER_BATCH - 1) if isinstance(one, bytes)]:
        yield ids


async def with_own_indexes(redis: Redis, indexes: Collection[str], write: Callable[[], Awaitable[object]]) -> None:
    """Write to sorted sets. Those that have another type are deleted first, after Redis has refused them: they are not ours, and nothing could
    be written for their callers."""
    try:
        await write()
    except ResponseError as error:
        if "WRONGTYPE" not in str(error):
            raise
        for index in indexes:
            if await redis.type(index) not in (b"zset", b"none"):
                await redis.unlink(index)
        await write()


class RedisStore:
    """Values under ``turnfold:1:`` with a time to live; each scope has a sorted set of its keys, for `forget`."""

    def __init__(self, url: str, *, clock: Callable[[], float] = time.time) -> None:
        # One silent retry on a new connection: after a server's restart the first command finds a dead socket.
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=CONNECTIONS,
            timeout=SOCKET_TIMEOUT_S,
            socket_timeout=SOCKET_TIMEOUT_S,
            socket_connect_timeout=SOCKET_TIMEOUT_S,
            retry=Retry(NoBackoff(), 1),
            retry_on_error=[RedisConnectionError],
        )
        self._redis = Redis(connection_pool=pool)
        self._clock = clock
        self._owner = uuid4().hex

    async def get(self, kind: str, key: str) -> bytes | None:
        # Of a key with another type than ours, GET raises: a few in a row and the store would be left alone. MGET has no value there.
        return (await self.get_many(kind, [key])).get(key)

    async def get_many(self, kind: str, keys: Sequence[str]) -> dict[str, bytes]:
        values = await self._redis.mget([_name(kind, key) for key in keys])
        return {key: value for key, value in zip(keys, values, strict=True) if isinstance(value, bytes)}

    async def names(self, kind: str, most: int) -> list[str]:
        start = _name(kind, "")
        found: list[str] = []
        async for name in self._redis.scan_iter(match=f"{start}*", count=PER_BATCH):
            found.append(name.decode("utf-8", "replace").removeprefix(start))
            if len(found) >= most:
                break
        return found

    async def put(self, kind: str, key: str, value: bytes, *, ttl_s: float, scope: str = "") -> None:
        name, members = _name(kind, key), f"{PREFIX}scope:{scope}"

        async def write() -> None:
            async with self._redis.pipeline(transaction=True) as batch:
                batch.set(name, value, px=max(1, int(ttl_s * 1000)))
                if scope:
                    now = self._clock()
                    batch.zadd(members, {name: now + ttl_s})
                    batch.zremrangebyscore(members, "-inf", now)
                    batch.expire(members, max(SCOPE_TTL_S, int(ttl_s) + 1))
                await batch.execute()

        async with writing(self._redis):
            await with_own_indexes(self._redis, [members], write)

    async def claim(self, key: str, *, ttl_s: float) -> bool:
        async with writing(self._redis):
            taken = await self._redis.set(_name("job", key), self._owner, nx=True, px=max(1, int(ttl_s * 1000)))
        return taken is not None

    async def release(self, key: str) -> None:
        # Only our own claim: after it expired another process may have taken the job.
        async with writing(self._redis):
            await self._redis.eval(RELEASE, 1, _name("job", key), self._owner)

    async def add(self, key: str, amount: int, *, ttl_s: float) -> int:
        async with writing(self._redis):
            return int(await self._redis.eval(ADD, 1, _name("count", key), amount, max(1, int(ttl_s * 1000))))

    async def forget(self, scope: str | None) -> int:
        async with writing(self._redis):
            if scope is None:
                return await self._forget_all()
            gone = await self._forget_scope(f"{PREFIX}scope:{scope}")
            async for members in self._redis.scan_iter(match=f"{PREFIX}scope:{scope}.*", count=PER_BATCH):
                gone += await self._forget_scope(members)
            return gone

    async def close(self) -> None:
        await self._redis.aclose()
        await self._redis.connection_pool.disconnect()

    async def _forget_scope(self, members: str | bytes) -> int:
        gone = 0
        async for names in ids_in(self._redis, members):
            gone += await self._redis.unlink(*names)
            await self._redis.zrem(members, *names)
        return gone

    async def _forget_all(self) -> int:
        gone = 0
        batch: list[bytes] = []
        async for name in self._redis.scan_iter(match=f"{PREFIX}*", count=PER_BATCH):
            batch.append(name)
            if len(batch) == PER_BATCH:
                gone += await self._unlink(batch)
                batch = []
        return gone + await self._unlink(batch)

    async def _unlink(self, names: Sequence[bytes]) -> int:
        """Delete keys; return how many of them were values (not indexes, not claims, not counts)."""
        if not names:
            return 0
        await self._redis.unlink(*names)
        others = tuple(f"{PREFIX}{kind}:".encode() for kind in ("scope", "job", "count"))
        return sum(not name.startswith(others) for name in names)


def _name(kind: str, key: str) -> str:
    return f"{PREFIX}{kind}:{key}"
