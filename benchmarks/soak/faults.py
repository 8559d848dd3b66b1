"""What goes wrong in the middle of a soak: the store, the upstream, the configuration, the clients."""

import asyncio
import os
import signal
import sqlite3
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.soak import clients
from benchmarks.soak.clients import Seen
from benchmarks.soak.samples import MIB, Samples
from benchmarks.speed.processes import Running
from tests.redis_server import RedisServer

DOWN_S = 5.0
"""How long the store or the upstream is gone."""
SLOW_BYTES = 5_000_000
"""Bytes of the stream that a slow reader does not read."""
SLOW_S = 10.0


@dataclass
class Site:
    """The processes of a soak, for what happens to them."""

    gateway: Running
    samples: Samples
    seen: Seen
    start_upstream: Callable[[], Running]
    upstream: Running
    database: Path
    redis: RedisServer | None = None
    told: list[str] = field(default_factory=list)
    """Rows for the report."""


async def restart_redis(site: Site) -> None:
    """Kill Redis and start it again."""
    assert site.redis is not None
    site.samples.note("Redis is gone")
    site.redis.stop()
    await asyncio.sleep(DOWN_S)
    await asyncio.to_thread(site.redis.start)
    site.samples.note("Redis is back")


async def lock_sqlite(site: Site) -> None:
    """Lock the store's file as another program may."""
    connection = sqlite3.connect(site.database, timeout=5, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    site.samples.note("SQLite is locked")
    await asyncio.sleep(DOWN_S)
    connection.rollback()
    connection.close()
    site.samples.note("SQLite is free")


async def restart_upstream(site: Site) -> None:
    """Kill the upstream in the middle of its streams and start it again."""
    site.upstream.process.kill()
    site.upstream.process.wait()
    site.samples.note("the upstream is gone")
    await asyncio.sleep(DOWN_S)
    site.upstream = await asyncio.to_thread(site.start_upstream)
    site.samples.note("the upstream is back")


async def reload(site: Site) -> None:
    """Have the configuration read again, five times."""
    for _ in range(5):
        os.kill(site.gateway.process.pid, signal.SIGHUP)
        await asyncio.sleep(1)
    site.samples.note("5 reloads by SIGHUP")


async def leavers(site: Site, count: int) -> None:
    """Let clients leave in the middle of their streams."""
    before = site.samples.take()
    gone = await asyncio.gather(
        *(clients.leave(site.gateway.port, number) for number in range(count)), return_exceptions=True
    )
    site.samples.note(f"{count - sum(isinstance(each, Exception) for each in gone)} clients left mid-stream")
    await asyncio.sleep(3)
    after = site.samples.take()
    site.told.append(
        f"| {count} clients leave mid-stream; descriptors before, 3 s later | {before.descriptors}, {after.descriptors} |"
    )


async def slow_readers(site: Site, count: int) -> None:
    """Let clients not read what they asked for; the rest of it must wait at the upstream."""
    before = site.samples.take().resident
    site.samples.note(f"{count} clients do not read")
    reading = asyncio.gather(
        *(clients.read_slowly(site.gateway.port, number, SLOW_BYTES, SLOW_S) for number in range(count)),
        return_exceptions=True,
    )
    peak = before
    while not reading.done():
        await asyncio.sleep(0.5)
        peak = max(peak, site.samples.take().resident)
    found = await reading
    wrong = sum(each is not True for each in found)
    site.seen.wrong += wrong
    site.told.append(
        f"| {count} slow readers of {SLOW_BYTES // 10**6} MB each; wrong, memory more | {wrong}, {(peak - before) / MIB:.0f} MiB |"
    )


Fault = Callable[[Site], Awaitable[None]]
