"""How much do two processors behind one Envoy do, compared with one?

`python -m benchmarks.envoy [--seconds 8] [--turns 60]` starts Envoy (`make envoy` installs it) and one processor, then two, on the loopback interface. wrk sends
one long conversation again and again; Envoy folds it through a processor and answers it itself, so that no model server takes part. It prints requests a
second and the cores that each program used. Two processors need two cores besides those of Envoy and wrk: with fewer, the second only takes from the first.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from benchmarks.speed.load import wrk
from gateway.standin import StandIn
from tests import fakes
from tests.envoy.setting import ENVOY, setting

WINDOW = 3000
TICKS = os.sysconf("SC_CLK_TCK")


class Round(NamedTuple):
    """One measurement."""

    per_second: float
    processors_s: tuple[float, ...]
    """Seconds of processor time that each program used, by second of the clock."""


class Loaded(NamedTuple):
    """Where the load goes, and the programs whose time it costs."""

    port: int
    pids: list[int]
    name: str = "Envoy"

    def cpu_s(self) -> float:
        """Return the seconds of processor time that were used so far."""
        return sum(map(used_s, self.pids))


def answering_itself(whole: dict[str, Any]) -> None:
    """Let Envoy be the model server too: a second listener that answers 200."""
    listeners, clusters = whole["static_resources"]["listeners"], whole["static_resources"]["clusters"]
    place = clusters[0]["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]["address"]
    model = orjson.loads(orjson.dumps(listeners[0]))
    model |= {"name": "model", "address": orjson.loads(orjson.dumps(place))}
    routes = model["filter_chains"][0]["filters"][0]["typed_config"]["route_config"]["virtual_hosts"][0]
    routes["routes"] = [{"match": {"prefix": "/"}, "direct_response": {"status": 200, "body": {"inline_string": "{}"}}}]
    listeners.append(model)


def used_s(pid: int) -> float:
    """Return the processor time of a program in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


async def measure(folder: Path, processors: int, turns: int, seconds: int) -> Round:
    """Run one setting and load it."""
    standin = StandIn()  # only for a free port, which Envoy's second listener takes over
    await standin.start()
    await standin.close()
    config = {"models": {"gpt-4o": {"context_window": WINDOW}}, "log": {"level": "warning"}}
    async with setting(standin, folder, config, processors=processors, edit=answering_itself) as running:
        file = folder / "body.json"
        file.write_bytes(orjson.dumps({"model": "gpt-4o", "messages": fakes.chat(turns)}))
        answer = await running.ask(file.read_bytes())
        assert answer.action == "fold", answer.headers
        pids = [each.process.pid for each in running.processors]
        before = [used_s(pid) for pid in pids]
        load = await asyncio.to_thread(wrk, Loaded(running.port, pids), file, connections=8, seconds=seconds)
        after = [used_s(pid) for pid in pids]
    return Round(load.per_second, tuple((b - a) / seconds for a, b in zip(before, after, strict=True)))


async def main(seconds: int, turns: int) -> int:
    """Measure one processor and two, and print the table."""
    if not ENVOY.exists():
        print("Envoy is not installed: run `make envoy`")
        return 1
    rounds = {}
    for processors in (1, 2):
        with tempfile.TemporaryDirectory() as folder:
            rounds[processors] = await measure(Path(folder), processors, turns, seconds)
        found = rounds[processors]
        cores = ", ".join(f"{each:.2f}" for each in found.processors_s)
        print(
            f"{processors} processor{'s' * (processors > 1)}: {found.per_second:8.1f} requests/s, cores used: {cores}"
        )
    print(
        f"two do {rounds[2].per_second / rounds[1].per_second:.2f} times as much; this machine has {os.cpu_count()} cores"
    )
    return 0


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=int, default=8)
    options.add_argument("--turns", type=int, default=60)
    chosen = options.parse_args()
    sys.exit(asyncio.run(main(chosen.seconds, chosen.turns)))
