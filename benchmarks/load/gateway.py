"""The gateway of the load: as `turnfold serve` runs it, with a meter of the gaps of its event loop."""

import asyncio
import sys
from collections import Counter
from pathlib import Path

import orjson

from benchmarks.load.clock import LEAST_S, LONG_S, Gap
from gateway.command import serving
from gateway.serve import app

TICK_S = 0.005
MOST = 10_000
"""Long gaps that are told one by one."""


class Meter:
    """Wants to run every five milliseconds, and notes by how much later it does: how often, by the millisecond, so that it
    takes the same memory however long it runs."""

    def __init__(self, report: Path) -> None:
        self._report = report
        self._loop = asyncio.get_running_loop()
        self._due = self._loop.time() + TICK_S
        self._ticks: Counter[int] = Counter()
        self._worst = 0.0
        self._long: list[Gap] = []
        self._waited = _waited_s()
        self._loop.call_at(self._due, self._tick)
        self._loop.call_later(1.0, self._write)

    def _tick(self) -> None:
        now = self._loop.time()
        waited = _waited_s()
        gap = now - self._due
        # A thread that has ended takes its own sum with it.
        net = max(gap - sum(seconds - self._waited.get(task, 0.0) for task, seconds in waited.items()), 0.0)
        self._ticks[int(gap * 1000)] += 1
        self._worst = max(self._worst, gap)
        if net > LEAST_S and len(self._long) < MOST:
            self._long.append(Gap(self._due, now, net))
        self._waited = waited
        self._due = now + TICK_S
        self._loop.call_at(self._due, self._tick)

    def _below(self, share: float) -> float:
        """Return the gap that this share of all gaps do not exceed, in seconds."""
        left = self._ticks.total() * share
        for milliseconds, count in sorted(self._ticks.items()):
            left -= count
            if left <= 0:
                return (milliseconds + 1) / 1000
        return 0.0

    def _write(self) -> None:
        """Once a second, so that a process that is killed has told too; in a thread, for a disk may take seconds."""
        over = sum(count for milliseconds, count in self._ticks.items() if milliseconds >= LONG_S * 1000)
        told = {"worst": self._worst, "long": [[*gap] for gap in self._long], "p999": self._below(0.999),
                "p99": self._below(0.99), "over_50ms": over, "ticks": self._ticks.total()}  # fmt: skip
        self._loop.run_in_executor(None, self._report.write_bytes, orjson.dumps(told))
        self._loop.call_later(1.0, self._write)


def _waited_s() -> dict[str, float]:
    """How long each thread of this process was ready to run while the machine ran others instead."""
    tasks = Path("/proc/self/task").iterdir()
    return {task.name: int((task / "schedstat").read_text().split()[1]) / 1e9 for task in tasks}


def measure_once_ready(running: app.Running, report: Path) -> None:
    """Start the meter when `/readyz` says ready: before that a vocabulary may load, which holds the loop."""
    if running.gateway.readiness == "ready":
        Meter(report)
    else:
        asyncio.get_running_loop().call_later(0.05, measure_once_ready, running, report)


def main() -> None:
    """Serve by the file given; write the meter's readings to the other."""
    config, report = map(Path, sys.argv[1:3])
    start = app.start

    async def metered(*arguments: object, **options: object) -> app.Running:
        running = await start(*arguments, **options)  # type: ignore[arg-type]
        asyncio.get_running_loop().call_soon(measure_once_ready, running, report)
        return running

    app.start = metered
    sys.exit(serving.run(config, {}))


if __name__ == "__main__":
    main()
