"""`python -m benchmarks.soak`: many streams and growing conversations in all formats, faults, then overload.

It starts an upstream and a gateway, each in a process of its own on the loopback interface, and prints wrong and broken answers, the
worst gap of the gateway's event loop, memory and descriptors over time, and what became of each fault.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import orjson

from benchmarks.load.clock import LEAST_S, LONG_S, Clock, Gap, Span, less_pauses
from benchmarks.soak import clients, faults, overload
from benchmarks.soak.clients import Seen
from benchmarks.soak.faults import Fault, Site
from benchmarks.soak.formats import MODEL, OLLAMA_MODEL
from benchmarks.soak.samples import MIB, Samples
from benchmarks.speed.processes import Running, free_port, start
from tests.redis_server import RedisServer

WINDOW = 8192
SETTLED_S = 60.0
"""From here on memory and descriptors must be flat."""
WORST_GAP_S = 0.05


def configuration(upstream: int, port: int, admin: int, store: str) -> str:
    return f"""
server: {{port: {port}, preload: true}}
admin: {{port: {admin}}}
store: {{url: "{store}"}}
log: {{level: error, format: json}}
upstreams:
  soak: {{provider: generic, base_url: "http://127.0.0.1:{upstream}/v1"}}
  ollama: {{provider: ollama, base_url: "http://127.0.0.1:{upstream}/v1"}}
default_upstream: soak
models:
  {MODEL}: {{context_window: {WINDOW}, tokenizer: o200k}}
  {OLLAMA_MODEL}: {{context_window: {WINDOW}, tokenizer: o200k, upstream: ollama}}
"""


async def soak(site: Site, arguments: argparse.Namespace, planned: list[Fault]) -> None:
    """Keep everything going for the time asked for; the faults come one after the other, evenly."""
    seconds = arguments.minutes * 60
    until = time.monotonic() + seconds
    async with _session(site, seconds) as session, asyncio.TaskGroup() as group:
        group.create_task(clients.watch(session, site.seen, until))
        group.create_task(_sample(site, until))
        for number in range(arguments.streams):
            group.create_task(clients.streams(session, site.seen, number, until))
        for number in range(arguments.conversations):
            group.create_task(clients.converse(session, site.seen, number, until, arguments.pause))
        for fault in planned:
            await asyncio.sleep(seconds / (len(planned) + 2))
            await fault(site)
    site.samples.note("the load ends")


def _session(site: Site, seconds: float) -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=seconds + 120)
    return aiohttp.ClientSession(f"http://127.0.0.1:{site.gateway.port}", connector=connector, timeout=timeout)


async def _sample(site: Site, until: float) -> None:
    while time.monotonic() < until:
        site.samples.take()
        await asyncio.sleep(1)


async def _overload(site: Site, seconds: float) -> list[str]:
    async with _session(site, seconds) as session:
        return (await overload.overload(session, site.samples, seconds)).rows()


def report(site: Site, gaps: dict[str, Any], pauses: list[Span], rows: list[str], minutes: float) -> str:
    seen, health = site.seen, sorted(site.seen.health_s)
    grown = site.samples.growth(min(SETTLED_S, minutes * 20), minutes * 60)
    flat = f"{grown[0] * 100:+.1f} %, {grown[1]:+d} descriptors" if grown else "too short a run"
    taken = site.samples.taken
    own = less_pauses([Gap(*gap) for gap in gaps["long"]], pauses)
    lines = [
        f"| wrong answers | {seen.wrong} |",
        f"| streams whole, broken off with all bytes before right | {seen.whole}, {seen.broken} |",
        f"| pauses of the machine, together and the longest | {_ms(sum(end - start for start, end in pauses))}, {_ms(max([end - start for start, end in pauses], default=0))} |",
        f"| worst gap of the event loop, less these and waiting for a processor | {_ms(gaps['worst'])}, {_ms(max(own, default=LEAST_S))} |",
        f"| gaps over 50 ms, less these and waiting | {gaps['over_50ms']:.0f}, {sum(gap > LONG_S for gap in own)} of {gaps['ticks']:.0f} |",
        f"| health, median and worst | {health[len(health) // 2] * 1000:.1f} ms, {health[-1] * 1000:.0f} ms |",
        f"| memory before, peak, at the end | {taken[0].resident / MIB:.0f}, {max(s.resident for s in taken) / MIB:.0f}, {taken[-1].resident / MIB:.0f} MiB |",
        f"| grown after the first minute | {flat} |",
        *(f"| {name} | {count} |" for name, count in sorted((seen.statuses + seen.actions).items())),
        *site.told,
        *rows,
    ]
    return "\n".join([site.samples.table(), "", *lines])


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


def _stop_upstream(site: Site) -> None:
    site.upstream.stop()  # the last one, where it was restarted


def _planned(arguments: argparse.Namespace) -> list[Fault]:
    chosen: list[tuple[object, Fault]] = [
        (arguments.restart_redis, faults.restart_redis),
        (arguments.lock_sqlite, faults.lock_sqlite),
        (arguments.restart_upstream, faults.restart_upstream),
        (arguments.reload, faults.reload),
        (arguments.leave, partial(faults.leavers, count=arguments.leave)),
        (arguments.slow, partial(faults.slow_readers, count=arguments.slow)),
    ]
    return [fault for wanted, fault in chosen if wanted]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--streams", type=int, default=1000, help="concurrent streams")
    parser.add_argument("--conversations", type=int, default=200, help="growing conversations")
    parser.add_argument("--pause", type=float, default=20.0, help="seconds between two turns of a conversation")
    parser.add_argument("--overload", type=float, default=20.0, help="seconds of overload at the end; 0 for none")
    parser.add_argument("--restart-redis", action="store_true", help="keep the store in Redis, and restart it")
    parser.add_argument("--lock-sqlite", action="store_true", help="keep the store in SQLite, and lock its file")
    parser.add_argument("--restart-upstream", action="store_true")
    parser.add_argument("--reload", action="store_true", help="reload the configuration by SIGHUP")
    parser.add_argument("--leave", type=int, default=0, help="clients that leave in the middle of a stream")
    parser.add_argument("--slow", type=int, default=0, help="clients that do not read")
    parser.add_argument("--plot", type=Path, help="file for a plot of memory and descriptors, as SVG")
    return parser.parse_args()


def main() -> int:
    """Run the soak; 1 where an answer was wrong."""
    arguments = _arguments()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="turnfold-soak-")))
        ports = [free_port() for _ in range(3)]
        redis = RedisServer(folder) if arguments.restart_redis else None
        if redis is not None:
            redis.start()
            stack.callback(redis.stop)
        database = folder / "facts.db"
        store = redis.url if redis else f"sqlite:///{database}" if arguments.lock_sqlite else "memory://"
        config, gaps = folder / "turnfold.yaml", folder / "gaps.json"
        config.write_text(configuration(*ports, store))
        start_upstream: Callable[[], Running] = partial(
            start, "upstream", [sys.executable, "-m", "benchmarks.soak.upstream", str(ports[0])], ports[0], folder
        )
        upstream = start_upstream()
        stack.callback(upstream.stop)  # also where the gateway does not start
        command = [sys.executable, "-m", "benchmarks.load.gateway", str(config), str(gaps)]
        gateway = start("gateway", command, ports[1], folder, "/readyz")
        stack.callback(gateway.stop)
        clock = Clock(folder)
        stack.callback(clock.stop)
        samples = Samples(gateway, ports[0])
        samples.take()
        site = Site(gateway, samples, Seen(), start_upstream, upstream, database, redis)
        stack.callback(_stop_upstream, site)
        asyncio.run(soak(site, arguments, _planned(arguments)))
        measured = orjson.loads(gaps.read_bytes())
        rows = asyncio.run(_overload(site, arguments.overload)) if arguments.overload else []
        print(report(site, measured, clock.pauses(), rows, arguments.minutes))
        if arguments.plot:
            arguments.plot.write_text(samples.plot())
    return 1 if site.seen.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
