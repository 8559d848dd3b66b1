"""How much more two workers serve than one: `python -m benchmarks.workers` (as root, with wrk and nginx installed).

Clients and the upstream need processors too, and a small machine has none to spare. So each worker gets a fixed share of one
processor (control groups), small enough that clients and upstream do not wait, as if it had a processor of that speed for
itself. A gateway of one worker and one of two take turns. Beside the ratio stand the worst of the rounds, the processor time
of a request, and how much of it the busier of two workers spent.
"""

import argparse
import queue
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.speed import bodies
from benchmarks.speed.load import wrk
from benchmarks.speed.processes import Running, cpu_s
from benchmarks.speed.servers import Place
from benchmarks.workers.quota import limited, unavailable

SHARE: Final = 0.1
"""Of one processor, for each worker. Chosen: two workers, their clients and the upstream together take less than half of one processor."""
KB: Final = 1024
FOLDED: Final = 70 * KB
"""Bytes of a conversation that is folded to 8,192 tokens."""
FOLDS: Final = 24
"""Conversations in a round."""
SECONDS: Final = 4
"""Length of a round of small requests."""
READY_S: Final = 60.0

Load = Callable[[Running], tuple[int, float]]
"""Sends requests to a gateway; returns how many were answered, and in how many seconds."""


@dataclass(frozen=True, slots=True)
class Round:
    """What a gateway served in one round."""

    per_second: float
    cpu_ms: float
    """Processor time of all workers, per request."""
    busiest: float
    """The share of the busiest worker in it."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workers", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="how often one and two workers take turns")
    arguments = parser.parse_args()
    if problem := unavailable():
        print(problem, file=sys.stderr)
        return 2
    with ExitStack() as stack:
        place = Place(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="turnfold-workers-"))))
        upstream = place.upstream()
        stack.callback(upstream.stop)
        body = place.folder / "small.json"
        body.write_bytes(bodies.conversation(KB, "fits"))
        gateways = [stack.enter_context(serving(place, upstream, number)) for number in (1, 2)]
        print(f"{SHARE:.0%} of a processor for each worker, medians of {arguments.rounds} rounds\n")
        print(f"| {'':<36} | one worker | two workers | ratio | worst | CPU/request, one and two | busier worker |")
        print(f"|{'-' * 38}|{'-' * 11}:|{'-' * 12}:|{'-' * 6}:|{'-' * 6}:|{'-' * 25}:|{'-' * 14}:|")
        for name, load in loads(body):
            compare(name, load, gateways, arguments.rounds)
    return 0


def loads(body: Path) -> Iterator[tuple[str, Load]]:
    """Return the rows of the table."""
    for connections in (64, 8, 2):
        yield f"1 KB, {connections} connections, requests/s", small(body, connections)
    seeds = count(1)
    for connections in (8, 2):
        yield f"70 KB folded, {connections} connections, folds/s", folds(connections, seeds)


@contextmanager
def serving(place: Place, upstream: Running, number: int) -> Iterator[tuple[Running, list[int]]]:
    """Start a gateway of so many workers, ready, each with its share; yield it and the process ids of its workers."""
    with ExitStack() as stack:
        gateway = place.turnfold(upstream, workers=number)
        pids = gateway.pids()[1:] if number > 1 else gateway.pids()
        for pid in pids:
            stack.enter_context(limited(pid, SHARE))
        stack.callback(gateway.stop)
        wait_until_idle(pids)
        yield gateway, pids


def wait_until_idle(pids: list[int]) -> None:
    """Wait until the processes have loaded everything: they take no more processor time."""
    deadline = time.monotonic() + READY_S
    before = -1.0
    while time.monotonic() < deadline:
        now = sum(map(cpu_s, pids))
        if now == before:
            return
        before = now
        time.sleep(1)
    raise RuntimeError("the workers do not come to rest")


def compare(name: str, load: Load, gateways: list[tuple[Running, list[int]]], rounds: int) -> None:
    """Print one row."""
    found: list[list[Round]] = [[], []]
    for _ in range(rounds):
        for rows, (gateway, pids) in zip(found, gateways, strict=True):
            rows.append(one_round(load, gateway, pids))
    two = found[1]
    rates = [median(each.per_second for each in rows) for rows in found]
    costs = [median(each.cpu_ms for each in rows) for rows in found]
    worst = min(each.per_second for each in two) / rates[0]
    print(
        f"| {name:<36} | {rates[0]:>10,.1f} | {rates[1]:>11,.1f} | {rates[1] / rates[0]:>5.2f} | {worst:>5.2f} "
        f"| {costs[0]:>12.2f}, {costs[1]:>7.2f} ms | {median(each.busiest for each in two):>13.0%} |",
        flush=True,
    )


def one_round(load: Load, gateway: Running, pids: list[int]) -> Round:
    before = [cpu_s(pid) for pid in pids]
    requests, seconds = load(gateway)
    spent = [cpu_s(pid) - past for pid, past in zip(pids, before, strict=True)]
    return Round(requests / seconds, 1000 * sum(spent) / requests, max(spent) / sum(spent))


def small(body: Path, connections: int) -> Load:
    """Return the load of so many connections that send 1 KB over and over."""

    def load(gateway: Running) -> tuple[int, float]:
        done = wrk(gateway, body, connections=connections, seconds=SECONDS)
        return done.requests, done.requests / done.per_second

    return load


def folds(connections: int, seeds: Iterator[int]) -> Load:
    """Return the load of so many connections, each of which sends a conversation never seen before when its last answer is there."""

    def load(gateway: Running) -> tuple[int, float]:
        waiting: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        for _ in range(FOLDS):
            waiting.put(bodies.conversation(FOLDED, "folded", seed=next(seeds)))
        clients = [threading.Thread(target=send_all, args=(gateway, waiting)) for _ in range(connections)]
        began = time.perf_counter()
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        return FOLDS, time.perf_counter() - began

    return load


def send_all(gateway: Running, waiting: "queue.SimpleQueue[bytes]") -> None:
    """Send what waits on one connection, one after the other."""
    connection = HTTPConnection("127.0.0.1", gateway.port, timeout=60)
    headers = {"Content-Type": "application/json", "Authorization": "Bearer sk-bench"}
    while True:
        try:
            body = waiting.get_nowait()
        except queue.Empty:
            connection.close()
            return
        connection.request("POST", "/v1/chat/completions", body, headers)
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{gateway.name}: answered {answer.status}")


if __name__ == "__main__":
    sys.exit(main())
