"""The gateway of the load: as `turnfold serve` runs it, with a meter of the gaps of its event loop."""

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

import orjson

from gateway.command import serving
from gateway.serve import app

TICK_S = 0.005


class Meter:
    """Wants to run every five milliseconds, and notes by how much later it does."""

    def __init__(self, report: Path) -> None:
        self._report = report
        self._loop = asyncio.get_running_loop()
        self._due = self._loop.time() + TICK_S
        self._gaps: list[float] = []
        self._net: list[float] = []
        self._waited_s = _waited_s()
        self._loop.call_at(self._due, self._tick)
        self._loop.call_later(1.0, self._write)

    def _tick(self) -> None:
        now = self._loop.time()
        waited_s = _waited_s()
        self._gaps.append(now - self._due)
        self._net.append(max(now - self._due - (waited_s - self._waited_s), 0.0))
        self._waited_s = waited_s
        self._due = now + TICK_S
        self._loop.call_at(self._due, self._tick)

    def _write(self) -> None:
        """Once a second, so that a process that is killed has told too."""
        gaps = sorted(self._gaps)
        with suppress(IndexError):
            told = {"worst": gaps[-1], "worst_net": max(self._net), "over_50ms_net": sum(gap > 0.05 for gap in self._net), "p999": gaps[len(gaps) * 999 // 1000], "p99": gaps[len(gaps) * 99 // 100],
                    "over_50ms": sum(gap > 0.05 for gap in gaps), "ticks": len(gaps)}  # fmt: skip
            self._report.write_bytes(orjson.dumps(told))
        self._loop.call_later(1.0, self._write)


def _waited_s() -> float:
    """How long the threads of this process were ready to run while the machine ran others instead."""
    tasks = Path("/proc/self/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[1]) for task in tasks) / 1e9


def main() -> None:
    """Serve by the file given; write the meter's readings to the other."""
    config, report = map(Path, sys.argv[1:3])
    start = app.start

    async def metered(*arguments: object, **options: object) -> app.Running:
        running = await start(*arguments, **options)  # type: ignore[arg-type]
        Meter(report)
        return running

    app.start = metered
    sys.exit(serving.run(config, {}))


if __name__ == "__main__":
    main()
