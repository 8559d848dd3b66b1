"""A clock in a process of its own, beside a process whose gaps are measured.

Where a machine is one of several on a host, it stands still now and then, for seconds, and its kernel need not know. A gap of an event
loop during which this clock stood still too is no fault of that loop.
"""

import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

TICK_S = 0.005
LEAST_S = 0.02
"""A shorter pause or gap is not noted."""
LONG_S = 0.05
"""Gaps over this are counted."""


class Span(NamedTuple):
    """A time in which something stood still, by `time.monotonic`."""

    start: float
    end: float


class Gap(NamedTuple):
    """A gap of an event loop."""

    start: float
    end: float
    net: float
    """Its seconds, less those in which it waited for a processor."""


class Clock:
    """A running clock."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "pauses"
        with self._file.open("wb") as output:
            self.process = subprocess.Popen([sys.executable, "-m", "benchmarks.load.clock"], stdout=output)

    def pauses(self) -> list[Span]:
        """Return the pauses so far."""
        rows = [row.split() for row in self._file.read_text().splitlines()]
        return [Span(float(start), float(end)) for start, end in rows]

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


def less_pauses(gaps: Iterable[Gap], pauses: Iterable[Span]) -> list[float]:
    """Return the seconds of each gap less those in which the machine stood still."""
    found = list(pauses)
    return [max(gap.net - sum(_shared(gap, pause) for pause in found), 0.0) for gap in gaps]


def _shared(gap: Gap, pause: Span) -> float:
    return max(min(gap.end, pause.end) - max(gap.start, pause.start), 0.0)


def waited_s() -> float:
    """How long this process's main thread was ready to run while the machine ran others instead."""
    return int(Path("/proc/self/schedstat").read_text().split()[1]) / 1e9


def main() -> None:
    """Print each pause of the machine: start and end."""
    while True:
        start, waited = time.monotonic(), waited_s()
        time.sleep(TICK_S)
        end = time.monotonic()
        late = end - start - TICK_S - (waited_s() - waited)
        if late > LEAST_S:
            print(end - late, end, flush=True)


if __name__ == "__main__":
    main()
