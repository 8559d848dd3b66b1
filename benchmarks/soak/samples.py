"""Samples of the gateway's process, one a second: memory, descriptors, connections to the upstream; a table and a plot of them."""

import time
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.speed.processes import Running

MIB = 2**20
ESTABLISHED = "01"
"""State of a connection in /proc/net/tcp."""
WIDTH, HEIGHT = 800, 240
"""Pixels of the plot."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The gateway at one moment."""

    at_s: float
    resident: int
    descriptors: int
    pooled: int
    """Connections to the upstream."""


@dataclass
class Samples:
    """All samples of a run, and what happened when."""

    gateway: Running
    upstream_port: int
    began: float = field(default_factory=time.monotonic)
    taken: list[Sample] = field(default_factory=list)
    events: list[tuple[float, str]] = field(default_factory=list)

    def take(self) -> Sample:
        """Take one sample."""
        pid = self.gateway.process.pid
        descriptors = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        sample = Sample(self.now(), self.gateway.resident(), descriptors, connections_to(self.upstream_port))
        self.taken.append(sample)
        return sample

    def now(self) -> float:
        return time.monotonic() - self.began

    def note(self, event: str) -> None:
        """Note what happens now."""
        self.events.append((self.now(), event))

    def table(self, every_s: float = 15.0) -> str:
        """Return some of the samples as rows of a table, and the events between them."""
        rows = ["|    s | MiB | descriptors | to the upstream | event |", "|-----:|----:|----:|----:|---|"]
        due, events = 0.0, list(self.events)
        for sample in self.taken:
            happened = [text for at, text in events if at <= sample.at_s]
            events = events[len(happened) :]
            if sample.at_s < due and not happened:
                continue
            due = sample.at_s + every_s
            rows.append(
                f"| {sample.at_s:4.0f} | {sample.resident / MIB:3.0f} | {sample.descriptors:4} | {sample.pooled:4} "
                f"| {'; '.join(happened)} |"
            )
        return "\n".join(rows)

    def growth(self, start_s: float, end_s: float) -> tuple[float, int] | None:
        """Return by how much memory (as a share) and descriptors grew: the last fifth of a time beside its first fifth."""
        within = [sample for sample in self.taken if start_s <= sample.at_s <= end_s]
        fifth = len(within) // 5
        if not fifth:
            return None
        first, last = within[:fifth], within[-fifth:]
        memory = sum(s.resident for s in last) / sum(s.resident for s in first) - 1
        return memory, (sum(s.descriptors for s in last) - sum(s.descriptors for s in first)) // fifth

    def plot(self) -> str:
        """Return memory and descriptors over time as SVG; each scaled to its own peak."""
        whole = max(self.taken[-1].at_s, 1.0)
        lines = []
        for colour, name, values in (
            ("#4269d0", "MiB", [sample.resident / MIB for sample in self.taken]),
            ("#ff725c", "descriptors", [float(sample.descriptors) for sample in self.taken]),
        ):
            peak = max(values) or 1.0
            points = " ".join(
                f"{sample.at_s / whole * WIDTH:.1f},{HEIGHT - value / peak * (HEIGHT - 20):.1f}"
                for sample, value in zip(self.taken, values, strict=True)
            )
            lines.append(f'<polyline fill="none" stroke="{colour}" points="{points}"><title>{name}</title></polyline>')
            lines.append(f'<text x="4" y="{14 * len(lines)}" fill="{colour}">{name}, peak {peak:.0f}</text>')
        lines += [
            f'<line x1="{at / whole * WIDTH:.1f}" x2="{at / whole * WIDTH:.1f}" y1="0" y2="{HEIGHT}" stroke="#ccc">'
            f"<title>{text}</title></line>"
            for at, text in self.events
        ]
        return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-size="11">{"".join(lines)}</svg>'


def connections_to(port: int) -> int:
    """Count the established connections to a port of the loopback interface, at their client's end."""
    rows = Path("/proc/net/tcp").read_text().splitlines()[1:]
    ends = (row.split()[2:4] for row in rows)
    return sum(state == ESTABLISHED and int(remote.rpartition(":")[2], 16) == port for remote, state in ends)
