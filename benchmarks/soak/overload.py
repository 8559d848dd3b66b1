"""Overload: what the gateway serves, then four times as much; what the clients are told, and how soon it is over."""

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from random import Random

import aiohttp

from benchmarks.soak import clients
from benchmarks.soak.clients import BROKEN, JSON, Seen
from benchmarks.soak.formats import FORMATS
from benchmarks.soak.samples import Samples

BODY_WORDS = 12_000
"""Words of a new conversation: some 70 KB, over the window."""
SERVED_AT_ONCE = 8
MEASURED_S = 8.0
TIMES = 4
LONGEST_RECOVERY_S = 60.0
SHRUNK = 16
"""Connections to the upstream that may be left idle."""


@dataclass
class Overload:
    """What was found."""

    served_a_second: float = 0.0
    statuses: Counter[str] = field(default_factory=Counter)
    without_retry_after: int = 0
    health_s: list[float] = field(default_factory=list)
    recovery_s: float = 0.0
    pooled_before: int = 0
    pooled_after: int = 0
    shrunk_s: float = 0.0

    def rows(self) -> list[str]:
        health = sorted(self.health_s)
        told = ", ".join(f"{name}: {count}" for name, count in sorted(self.statuses.items()))
        return [
            f"| served, folds a second | {self.served_a_second:.0f} |",
            f"| answers at {TIMES} times that | {told} |",
            f"| 503 without retry-after | {self.without_retry_after} |",
            f"| health meanwhile, median and worst | {health[len(health) // 2] * 1000:.0f} ms, {health[-1] * 1000:.0f} ms |",
            f"| until a fold is served as before | {self.recovery_s:.1f} s |",
            f"| connections to the upstream at the end, and left after {self.shrunk_s:.0f} s | {self.pooled_before}, {self.pooled_after} |",
        ]


async def overload(session: aiohttp.ClientSession, samples: Samples, seconds: float) -> Overload:
    """Measure what is served, then send four times as much for some seconds."""
    found = Overload()
    bodies = _bodies()
    usual = await _served(session, found, bodies)
    samples.note(f"overload: {TIMES} times {found.served_a_second:.0f} folds a second")
    until, pause_s = time.monotonic() + seconds, 1 / (TIMES * found.served_a_second)
    waiting: set[asyncio.Task[None]] = set()
    seen = Seen()
    watching = asyncio.get_running_loop().create_task(clients.watch(session, seen, until))
    due = time.monotonic()
    while time.monotonic() < until:
        task = asyncio.get_running_loop().create_task(_send(session, found, bodies))
        waiting.add(task)
        task.add_done_callback(waiting.discard)
        due += pause_s
        await asyncio.sleep(max(due - time.monotonic(), 0))
    await watching
    found.health_s = seen.health_s
    samples.note("overload ends")
    ended = time.monotonic()
    for task in waiting:
        task.cancel()  # the clients leave
    await asyncio.gather(*waiting, return_exceptions=True)
    while time.monotonic() - ended < LONGEST_RECOVERY_S:
        began = time.monotonic()
        if await _send(session, Overload(), bodies) == 200 and time.monotonic() - began < 3 * usual:
            break
        await asyncio.sleep(0.2)
    found.recovery_s = time.monotonic() - ended
    found.pooled_before = samples.take().pooled
    while (pooled := samples.take().pooled) > SHRUNK and time.monotonic() - ended < 2 * LONGEST_RECOVERY_S:  # noqa: ASYNC110
        await asyncio.sleep(1)  # another process has no event to wait for
    found.pooled_after, found.shrunk_s = pooled, time.monotonic() - ended
    samples.note("at rest")
    return found


async def _served(session: aiohttp.ClientSession, found: Overload, bodies: "list[tuple[str, bytes]]") -> float:
    """Measure the rate of folds that a few clients get, each asking again at once; return the median time of one."""
    until, took = time.monotonic() + MEASURED_S, list[float]()

    async def again() -> None:
        while time.monotonic() < until:
            began = time.monotonic()
            await _send(session, Overload(), bodies)
            took.append(time.monotonic() - began)

    await asyncio.gather(*(again() for _ in range(SERVED_AT_ONCE)))
    found.served_a_second = len(took) / MEASURED_S
    return sorted(took)[len(took) // 2]


def _bodies() -> list[tuple[str, bytes]]:
    """Return conversations in all formats; the place in the middle is filled anew for each request."""
    random_ = Random(9)
    text = clients.words(BODY_WORDS, random_)
    cuts = [text[start : start + len(text) // 20] for start in range(0, len(text), len(text) // 20)]
    messages = [{"role": ("user", "assistant")[n % 2], "content": f"NUMBER {cut}"} for n, cut in enumerate(cuts)]
    messages = [*messages, {"role": ("user", "assistant")[len(messages) % 2], "content": "Yes."}]
    messages = (
        [*messages, {"role": "user", "content": "And then?"}] if messages[-1]["role"] == "assistant" else messages
    )
    return [(format.path, format.body(messages)) for format in FORMATS]


async def _send(session: aiohttp.ClientSession, found: Overload, bodies: list[tuple[str, bytes]]) -> int:
    number = found.statuses.total()
    path, raw = bodies[number % len(bodies)]
    raw = raw.replace(b"NUMBER", f"{time.monotonic_ns() % 10**12}".encode())
    try:
        async with session.post(path, data=raw, headers=JSON) as response:
            await response.read()
            found.statuses[str(response.status)] += 1
            if response.status == 503 and "retry-after" not in response.headers:
                found.without_retry_after += 1
            return response.status
    except BROKEN:
        found.statuses["broken off"] += 1
        return 0
