"""Everything at once for a minute: slow streams, growing conversations and huge bodies. What suffers?

`python -m benchmarks.load [--seconds 60] [--streams 300] [--conversations 100] [--bodies 8]` starts an upstream and a gateway, each in a process
of its own on the loopback interface, and prints wrong bytes, the worst gap of the gateway's event loop, how long a health check
took, and the gateway's memory before, at the peak and after.
"""

import argparse
import asyncio
import hashlib
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import orjson

from benchmarks.load.clock import LEAST_S, LONG_S, Clock, Gap, Span, less_pauses
from benchmarks.load.upstream import CHUNKS, pieces
from benchmarks.speed.bodies import WORDS
from benchmarks.speed.processes import PAGE, Running, free_port, start

WINDOW = 8192
MIB = 2**20
BODY_BYTES = 5_000_000
TURN_WORDS = 350
PAUSE_S = 8.0
"""Between two turns of a conversation: a person reads the answer."""


@dataclass
class Seen:
    """What the clients saw."""

    wrong: int = 0
    """Bytes of answers, or of questions as they arrived, that are not what they must be."""
    statuses: Counter[str] = field(default_factory=Counter)
    actions: Counter[str] = field(default_factory=Counter)
    health_s: list[float] = field(default_factory=list)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    peak: int = 0


def resident(gateway: Running) -> int:
    """The gateway's memory in bytes; it has no child processes."""
    return int(Path(f"/proc/{gateway.process.pid}/statm").read_text().split()[1]) * PAGE


def words(count: int, random_: random.Random) -> str:
    return " ".join(random_.choices(WORDS, k=count)) + f" {random_.getrandbits(64):x}."


async def stream(session: aiohttp.ClientSession, seen: Seen, number: int, seconds: float) -> None:
    """One answer that takes the whole time, every byte compared."""
    seed = f"stream-{number}"
    body = {"model": "loaded", "stream": True, "user": seed, "pause_s": seconds / (CHUNKS + 1),
            "messages": [{"role": "user", "content": f"Tell me about {seed}."}]}  # fmt: skip
    async with session.post("/v1/chat/completions", json=body) as response:
        seen.statuses[f"stream {response.status}"] += 1
        got = await response.read()
    expected = b"".join(pieces(seed))
    if got != expected:
        seen.wrong += max(len(got), len(expected))


async def ask(session: aiohttp.ClientSession, seen: Seen, kind: str, messages: list[dict[str, str]]) -> str:
    """Ask once. What fits must arrive byte for byte, of what is folded the question."""
    raw = orjson.dumps({"model": "loaded", "max_tokens": 200, "messages": messages})
    began = time.perf_counter()
    async with session.post("/v1/chat/completions", data=raw, headers={"content-type": "application/json"}) as response:
        answer = await response.read()
        action = response.headers.get("x-turnfold-action", "")
    seen.seconds.setdefault(kind, []).append(time.perf_counter() - began)
    seen.statuses[f"{kind} {response.status}"] += 1
    seen.actions[f"{kind} {action}"] += 1
    if response.status != 200:
        return ""
    said = orjson.loads(orjson.loads(answer)["choices"][0]["message"]["content"])
    right = (
        said["sha256"] == hashlib.sha256(raw).hexdigest() if action == "none" else arrived(said["last"], messages[-1])
    )
    seen.wrong += 0 if right else len(raw)
    return "Noted: " + said["sha256"]


def arrived(last: dict[str, str], question: dict[str, str]) -> bool:
    """Whether a folded request ends with the question, whole; quotes from earlier messages may stand beside it."""
    return last["role"] == question["role"] and question["content"] in last["content"]


async def converse(session: aiohttp.ClientSession, seen: Seen, number: int, until: float) -> None:
    """A conversation that starts below the window and grows far over it."""
    random_ = random.Random(number)
    messages = [{"role": "system", "content": "You are a clerk."}]
    await asyncio.sleep(PAUSE_S * random_.random())
    while time.monotonic() < until:
        messages.append({"role": "user", "content": words(TURN_WORDS * (8 if len(messages) == 1 else 1), random_)})
        reply = await ask(session, seen, "conversation", messages)
        messages.append({"role": "assistant", "content": reply or "..."})
        await asyncio.sleep(PAUSE_S)


async def insist(session: aiohttp.ClientSession, seen: Seen, number: int, until: float) -> None:
    """Huge conversations, one after the other, none seen before."""
    random_ = random.Random(1000 + number)
    while time.monotonic() < until:
        messages = [{"role": "system", "content": "You are a clerk."}]
        size = 0
        while size < BODY_BYTES:
            text = words(2000, random_)
            messages.append({"role": ("user", "assistant")[len(messages) % 2 - 1], "content": text})
            size += len(text)
            await asyncio.sleep(0)
        messages.append({"role": "user", "content": words(30, random_)})
        if not await ask(session, seen, "body", messages):
            await asyncio.sleep(1)


async def watch(session: aiohttp.ClientSession, seen: Seen, gateway: Running, until: float) -> None:
    """Ask for the gateway's health, ten times a second."""
    while time.monotonic() < until:
        began = time.perf_counter()
        async with session.get("/healthz") as response:
            seen.statuses[f"health {response.status}"] += 1
            await response.read()
        seen.health_s.append(time.perf_counter() - began)
        seen.peak = max(seen.peak, resident(gateway))
        await asyncio.sleep(0.1)


async def load(gateway: Running, arguments: argparse.Namespace) -> Seen:
    seen = Seen()
    until = time.monotonic() + arguments.seconds
    unlimited = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=arguments.seconds + 120)
    async with (
        aiohttp.ClientSession(f"http://127.0.0.1:{gateway.port}", connector=unlimited, timeout=timeout) as session,
        asyncio.TaskGroup() as group,
    ):
        group.create_task(watch(session, seen, gateway, until))
        for number in range(arguments.streams):
            group.create_task(stream(session, seen, number, arguments.seconds))
        for number in range(arguments.conversations):
            group.create_task(converse(session, seen, number, until))
        for number in range(arguments.bodies):
            group.create_task(insist(session, seen, number, until))
    return seen


def configuration(upstream: int, port: int, admin: int) -> str:
    return f"""
server: {{port: {port}, preload: true}}
admin: {{port: {admin}}}
store: {{url: "memory://"}}
log: {{level: error, format: json}}
upstreams: {{load: {{provider: generic, base_url: "http://127.0.0.1:{upstream}/v1"}}}}
models: {{loaded: {{context_window: {WINDOW}, tokenizer: o200k}}}}
"""


def told(seen: Seen, gaps: dict[str, Any], pauses: list[Span], before: int, after: int) -> str:
    health = sorted(seen.health_s)
    own = less_pauses([Gap(*gap) for gap in gaps["long"]], pauses)
    rows = [
        ("wrong bytes", f"{seen.wrong}"),
        ("worst gap of the event loop", f"{gaps['worst'] * 1000:.0f} ms"),
        ("the same less waiting and machine's pauses", f"{max(own, default=LEAST_S) * 1000:.0f} ms"),
        ("gap, 99.9 % and 99 % of the time below", f"{gaps['p999'] * 1000:.0f} ms, {gaps['p99'] * 1000:.1f} ms"),
        ("gaps over 50 ms", f"{gaps['over_50ms']:.0f} ({sum(gap > LONG_S for gap in own)}) of {gaps['ticks']:.0f}"),
        ("health check, median and worst", f"{health[len(health) // 2] * 1000:.1f} ms, {health[-1] * 1000:.0f} ms"),
        ("memory before, peak, after", f"{before / MIB:.0f}, {seen.peak / MIB:.0f}, {after / MIB:.0f} MiB"),
        *((f"answers: {name}", str(count)) for name, count in sorted(seen.statuses.items())),
        *((f"action: {name}", str(count)) for name, count in sorted(seen.actions.items())),
        *((f"seconds, median and worst: {kind}", f"{sorted(took)[len(took) // 2]:.2f}, {max(took):.2f}")
          for kind, took in sorted(seen.seconds.items())),
    ]  # fmt: skip
    return "\n".join(f"| {name:45} | {value:>20} |" for name, value in rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--streams", type=int, default=300)
    parser.add_argument("--conversations", type=int, default=100)
    parser.add_argument("--bodies", type=int, default=8)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ports = [free_port() for _ in range(3)]
        config, report = folder / "turnfold.yaml", folder / "gaps.json"
        config.write_text(configuration(*ports))
        upstream = start(
            "upstream", [sys.executable, "-m", "benchmarks.load.upstream", str(ports[0])], ports[0], folder
        )
        try:
            command = [sys.executable, "-m", "benchmarks.load.gateway", str(config), str(report)]
            gateway = start("gateway", command, ports[1], folder, "/readyz")
            clock = Clock(folder)
            try:
                before = resident(gateway)
                seen = asyncio.run(load(gateway, arguments))
                time.sleep(2)
                print(told(seen, orjson.loads(report.read_bytes()), clock.pauses(), before, resident(gateway)))
            finally:
                clock.stop()
                gateway.stop()
        finally:
            upstream.stop()
    return 1 if seen.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
