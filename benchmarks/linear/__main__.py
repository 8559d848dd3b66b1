"""How the cost of a request grows with its body, from 1 KB to 64 MB: `python -m benchmarks.linear`.

Four kinds of requests are sent in each size: one that fits and was never seen, its next turn (2 KB more), and the same two
for a window of 8,192 tokens. Told is the gateway's processor time in milliseconds, user and system, the least of a few tries: times,
because callgrind would take an hour for the largest. `server.memory` holds the largest. Upstream and client are this
process. `--write` replaces the committed table and the chart in docs/; docs/speed.md shows both.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Final

import orjson

from benchmarks.instructions.exchange import Exchange
from benchmarks.linear.chart import drawn, named
from benchmarks.speed import bodies
from benchmarks.speed.processes import Running, free_port, start
from benchmarks.speed.servers import FOLD_WINDOW, ROOT

TABLE: Final = Path(__file__).with_name("table.json")
"""The committed milliseconds, by kind and size."""
CHART: Final = ROOT / "docs" / "linear.svg"
SIZES: Final = tuple(2**10 * 4**step for step in range(9))
"""Bytes, to the default of `server.max_body`."""
FOLDED_FROM: Final = 2**16
"""Bytes from which a body does not fit 8,192 tokens."""
TURN: Final = 2_000
"""Bytes of one more turn."""
TURNS: Final = 2_000
"""Turns of the largest bodies: they have 8,000 messages, below `server.max_messages`."""
TRIES: Final = 8_000_000
"""Bytes that are sent for one figure, so that small requests are many. See `MOST_TRIES`."""
MOST_TRIES: Final = 50
LEAST_TRIES: Final = 3
"""Chosen: a search for garbage among all objects, which takes half a second here, comes in one of them at most."""
LARGE: Final = 2**22
"""Bytes from which conversations are made of each other, because making one takes up to half a minute."""
SETTLED_S: Final = 0.02
"""Wait for what follows an answer: its record, its log line, memory that is freed. See `IDLE_MS`."""
IDLE_MS: Final = 1.0
"""Less processor time than this in that while is what an idle gateway spends."""
KINDS: Final = ("fits, never seen", "fits, next turn", "folded, never seen", "folded, next turn")
TITLE: Final = "Processor time of a request by the size of its body, in milliseconds"
CONFIG: Final = """
server: {{host: 127.0.0.1, port: {port}, max_body: 128MiB, max_in_flight: 256MiB, memory: 8GiB}}
admin: {{host: 127.0.0.1, port: {admin}}}
store: {{url: "memory://"}}
log: {{level: error}}
upstreams:
  bench: {{provider: openai, base_url: "http://127.0.0.1:{upstream}/v1"}}
models:
  fits: {{context_window: 200000000}}
  folded: {{context_window: {window}, tokenizer: o200k}}
"""

Figures = dict[str, list[float | None]]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.linear", description=__doc__)
    parser.add_argument("--write", action="store_true", help="replace the committed table and the chart")
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="bytes of the largest body")
    chosen = parser.parse_args()
    print(table([], {}), end="")
    sizes = [size for size in SIZES if size <= chosen.largest]
    figures: Figures = {kind: [] for kind in KINDS}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="turnfold-linear-")))
        exchange = stack.enter_context(Exchange())
        gateway = serving(folder, exchange.upstream_port)
        stack.callback(gateway.stop)
        seeds = count(1)
        for size in sizes:
            for kind, cost in zip(KINDS, costs(gateway, exchange, size, seeds), strict=True):
                figures[kind].append(cost)
            print(row(size, [line[-1] for line in figures.values()]), flush=True)
    if chosen.write:
        found = {"sizes": sizes, "milliseconds": figures}
        TABLE.write_bytes(orjson.dumps(found, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
        CHART.write_text(drawn(TITLE, sizes, figures), "utf-8")
    return 0


def serving(folder: Path, upstream: int) -> Running:
    """Start a gateway that takes and remembers the largest bodies."""
    port = free_port()
    config = folder / "turnfold.yaml"
    config.write_text(CONFIG.format(port=port, admin=free_port(), upstream=upstream, window=FOLD_WINDOW))
    return start(
        "turnfold", [sys.executable, "-m", "gateway", "serve", "--config", str(config)], port, folder, "/readyz"
    )


def costs(gateway: Running, exchange: Exchange, size: int, seeds: Iterator[int]) -> Iterator[float | None]:
    """Yield the milliseconds of each kind in one size."""
    for model in ("fits", "folded"):
        if model == "folded" and size < FOLDED_FROM:
            yield from (None, None)
            continue
        first, later = [], []
        pattern = conversation(size, model, next(seeds))
        for number in range(tries(size)):
            body = with_other_digits(pattern, number) if size >= LARGE else conversation(size, model, next(seeds))
            first.append(spent(gateway, lambda body=body: exchange.send(gateway.port, [body], 1)))
            grown = next_turn(body)
            later.append(spent(gateway, lambda body=grown: exchange.send(gateway.port, [body], 1)))
        yield from (round(min(first), 2), round(min(later), 2))


def tries(size: int) -> int:
    return max(LEAST_TRIES, min(MOST_TRIES, TRIES // size))


def conversation(size: int, model: str, seed: int) -> bytes:
    return bodies.conversation(size, model, seed=seed, turn_size=max(8_000, size // TURNS))


def with_other_digits(body: bytes, number: int) -> bytes:
    """Return a body with other digits in its texts: nearly every message has some. None of the old messages is found again."""
    return body.translate(bytes.maketrans(b"123456789", bytes(49 + (digit + number) % 9 for digit in range(9))))


def next_turn(body: bytes) -> bytes:
    """Return a body with the answer to its question and the next question."""
    said = b'{"role":"assistant","content":"Done."},' + orjson.dumps(
        {"role": "user", "content": bodies.text(random.Random(len(body)), TURN)}
    )
    return body.removesuffix(b"]}") + b"," + said + b"]}"


def spent(gateway: Running, work: Callable[[], None]) -> float:
    """Return the milliseconds of processor time that a gateway spends on some work, and on what follows it."""
    before = running_ms(gateway)
    work()
    after = running_ms(gateway)
    while True:
        time.sleep(SETTLED_S)
        if (now := running_ms(gateway)) - after < IDLE_MS:
            return after - before
        after = now


def running_ms(gateway: Running) -> float:
    """Return the milliseconds for which the threads of a process have run, to the nanosecond where /proc/PID/stat tells hundredths of a second."""
    tasks = Path(f"/proc/{gateway.process.pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e6


def row(size: int, values: Sequence[float | None]) -> str:
    """Return one row of the table."""
    shown = ("" if value is None else f"{value:,.2f}" for value in values)
    return f"| {named(size)} | {' | '.join(shown)} |"


def table(sizes: Sequence[int], figures: Figures) -> str:
    """Return the table as docs/speed.md shows it."""
    head = f"| | {' | '.join(KINDS)} |\n|---|{'---:|' * len(KINDS)}\n"
    return head + "".join(f"{row(size, [figures[kind][at] for kind in KINDS])}\n" for at, size in enumerate(sizes))


if __name__ == "__main__":
    sys.exit(main())
