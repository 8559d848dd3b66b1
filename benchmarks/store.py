"""What a store costs a request: ``python -m benchmarks.store`` prints a table of medians and 99th percentiles.

Redis is left out where no redis-server is installed. Only requests that must be folded, or that may be cut soon, ask a store.
"""

import asyncio
import base64
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import uvloop

from gateway.context.life import identity
from gateway.state.store import Store, open_store
from gateway.state.summariser import Summariser
from gateway.state.tasks import Tasks
from tests.redis_server import BINARY, RedisServer

ROUNDS = 2000
VALUE = os.urandom(4000)
KEYS = [f"{number:032x}" for number in range(400)]


async def timed(work: Callable[[int], Awaitable[object]], rounds: int = ROUNDS) -> tuple[float, float]:
    """Median and 99th percentile of one call after another, in milliseconds."""
    spent = []
    for number in range(rounds):
        started = time.perf_counter()
        await work(number)
        spent.append((time.perf_counter() - started) * 1000)
    return statistics.median(spent), statistics.quantiles(spent, n=100)[98]


async def lag(work: Awaitable[object]) -> float:
    """The longest the event loop was held up while ``work`` ran, in milliseconds."""
    worst, running = 0.0, True

    async def watch() -> None:
        nonlocal worst
        while running:
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            worst = max(worst, (time.perf_counter() - before) * 1000 - 1)

    watching = asyncio.get_running_loop().create_task(watch())
    await work
    running = False
    await watching
    return worst


async def measure(name: str, store: Store) -> None:
    await store.forget(None)
    messages = [{"role": "user" if n % 2 == 0 else "assistant", "content": f"message {n} " * 40} for n in range(200)]
    chain = identity.chain(messages, "scope")
    for key in KEYS[::40]:
        await store.put("summary", key, VALUE, ttl_s=3600, scope="a.b")
    rows = {
        "get, there": await timed(lambda n: store.get("summary", KEYS[n % 10 * 40])),
        "get, missing": await timed(lambda n: store.get("summary", f"missing {n}")),
        "get 400 at once": await timed(lambda n: store.get_many("summary", KEYS), 500),
        "find a summary, 200 messages": await timed(lambda n: Summariser(store, Tasks()).find(chain), 500),
        "put 4 KB": await timed(lambda n: store.put("summary", f"{n:032x}", VALUE, ttl_s=3600, scope="a.b")),
        "claim and release": await timed(lambda n: claim_and_release(store, n), 500),
    }
    for row, (median, worst) in rows.items():
        print(f"{name:18} {row:30} {median:8.3f} {worst:8.3f}")
    started = time.perf_counter()
    held = await lag(asyncio.gather(*(store.get("summary", KEYS[n % 400]) for n in range(5000))))
    rate = 5000 / (time.perf_counter() - started)
    print(f"{name:18} {'5000 gets at once: loop held':30} {held:8.3f}          {rate:8.0f} gets/s")
    await store.close()


async def claim_and_release(store: Store, number: int) -> None:
    await store.claim(f"cut {number}", ttl_s=60)
    await store.release(f"cut {number}")


async def main() -> None:
    key = base64.b64encode(os.urandom(32)).decode()
    print(f"{'store':18} {'operation':30} {'p50 ms':>8} {'p99 ms':>8}")
    with tempfile.TemporaryDirectory() as directory:
        await measure("memory", open_store("memory://"))
        await measure("sqlite", open_store(f"sqlite:///{directory}/a.db"))
        await measure("sqlite, encrypted", open_store(f"sqlite:///{directory}/b.db", encryption_key=key))
        if BINARY is not None:
            server = RedisServer(Path(directory))
            server.start()
            try:
                await measure("redis", open_store(server.url))
            finally:
                server.stop()


if __name__ == "__main__":
    uvloop.run(main())
