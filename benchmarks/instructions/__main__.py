"""How many processor instructions one request costs, beside a bare pass-through: `python -m benchmarks.instructions`.

Instructions are counted by callgrind, a tool of valgrind. Unlike times they repeat to about 1 % on any machine, however
busy it is, so they are the bar in CI: `--check` fails when a ratio is 5 % above the committed table, twice; `--write`
replaces the table. `--tree FOLDER` measures the gateway of another checkout. Instructions inside the kernel are not counted.
`--start` counts those of the main thread from the start of a process to its first answer instead.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import orjson

from benchmarks.instructions.callgrind import Counted, require_valgrind, start
from benchmarks.instructions.exchange import Exchange
from benchmarks.speed import bodies
from benchmarks.speed.processes import free_port
from benchmarks.speed.servers import FOLD_WINDOW, ROOT, TURNFOLD

KB: Final = 1024
"""Bytes."""
TABLE: Final = Path(__file__).with_name("table.json")
"""The committed ratios to the bare pass-through, by row."""
TOLERANCE: Final = 1.05
"""Ratio to the committed one above which `--check` fails. Chosen: five times what two runs differ by."""
FOLDED: Final = 373 * KB
"""Bytes of a conversation of eleven windows, as in `benchmarks.speed`."""
TURN: Final = 8_000
"""Bytes of one more turn of it."""


@dataclass(frozen=True, slots=True)
class Row:
    """One kind of request: bodies that are sent first and not counted, then those that are counted."""

    name: str
    warm: Callable[[], list[bytes]]
    counted: Callable[[], list[bytes]]
    wide: int = 1
    """Connections that send at once."""


def _same(size: int, model: str, times: int, *, stream: bool = False) -> Callable[[], list[bytes]]:
    return lambda: [bodies.conversation(size, model, stream=stream)] * times


def _after_turns(turns: int) -> bytes:
    """Return the body of a conversation after so many more turns: answers and questions are appended, nothing else changes."""
    body = orjson.loads(bodies.conversation(512 * KB - 8 * TURN, "fits", seed=700))
    for turn in range(turns):
        said = orjson.loads(bodies.conversation(TURN, "fits", seed=701 + turn))["messages"]
        body["messages"] += [{"role": "assistant", "content": "Done."}, {**said[-1], "role": "user"}]
    return orjson.dumps(body)


ROWS: Final = (
    Row("1 KB", _same(1 * KB, "fits", 96), _same(1 * KB, "fits", 96), wide=8),
    Row("100 KB", _same(100 * KB, "fits", 32), _same(100 * KB, "fits", 48), wide=8),
    Row("512 KB", _same(512 * KB, "fits", 16), _same(512 * KB, "fits", 24), wide=8),
    Row(
        "100 KB, never seen",
        lambda: [bodies.conversation(100 * KB, "fits", seed=500 + step) for step in range(16)],
        lambda: [bodies.conversation(100 * KB, "fits", seed=600 + step) for step in range(24)],
        wide=8,
    ),
    Row(
        "512 KB, never seen",
        lambda: [bodies.conversation(512 * KB, "fits", seed=500 + step) for step in range(2)],
        lambda: [bodies.conversation(512 * KB, "fits", seed=600 + step) for step in range(4)],
    ),
    Row(
        "512 KB, next turn",
        lambda: [_after_turns(turns) for turns in range(4)],
        lambda: [_after_turns(turns) for turns in range(4, 8)],
    ),
    Row("stream of 100 chunks", _same(1 * KB, "fits", 2, stream=True), _same(1 * KB, "fits", 4, stream=True)),
    Row(
        "fold, never seen",
        lambda: [bodies.conversation(FOLDED, "folded", seed=900 + step) for step in range(2)],
        lambda: [bodies.conversation(FOLDED, "folded", seed=1000 + step) for step in range(2)],
    ),
    Row(
        "fold, next turn",
        lambda: [bodies.conversation(FOLDED, "folded")] * 2,
        lambda: [bodies.conversation(FOLDED + TURN * step, "folded") for step in range(1, 5)],
    ),
    Row("fold, the same again", _same(FOLDED, "folded", 2), _same(FOLDED, "folded", 4)),
)
"""What is measured, in this order: a later row finds the memory that the earlier ones left."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions", description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="fail when a ratio is 5 %% above the committed table, twice"
    )
    parser.add_argument("--write", action="store_true", help="replace the committed table")
    parser.add_argument("--tree", type=Path, default=ROOT, help="the checkout whose gateway is measured")
    parser.add_argument("--only", default="", help="only rows whose name contains this text")
    parser.add_argument("--start", action="store_true", help="count from the start of each process to its first answer")
    parser.add_argument("--profile", type=Path, help="keep callgrind's files of the gateway in this folder")
    chosen = parser.parse_args()
    if problem := require_valgrind():
        print(problem, file=sys.stderr)
        return 2
    if chosen.start:
        run_starts(chosen.tree, chosen.profile)
        return 0
    rows = [row for row in ROWS if chosen.only in row.name]
    found = run(rows, chosen.tree, chosen.profile)
    if chosen.write:
        before = orjson.loads(TABLE.read_bytes()) if TABLE.exists() else {}
        TABLE.write_bytes(orjson.dumps({**before, **found}, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    if not chosen.check:
        return 0
    if again := grown(found):
        print(
            "These rows are above the table. On a busy machine a body comes in more pieces, so they are measured again:"
        )
        second = run([row for row in rows if row.name in again], chosen.tree, chosen.profile)
        found |= {name: min(found[name], ratio) for name, ratio in second.items()}
    return report_growth(found)


def run(rows: Sequence[Row], tree: Path, profile: Path | None) -> dict[str, float]:
    """Measure rows in processes of their own, which end with it; return the ratios by row."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="turnfold-instructions-")))
        exchange = stack.enter_context(Exchange())
        ports = free_port(), free_port()
        bare = start("bare", bare_command(exchange.upstream_port, ports[0]), ROOT, folder)
        stack.callback(bare.stop)
        kept = profile or folder
        kept.mkdir(parents=True, exist_ok=True)
        gateway = start("turnfold", gateway_command(folder, exchange.upstream_port, ports[1]), tree, kept)
        stack.callback(gateway.stop)
        exchange.wait_for(ports)
        return measured(rows, exchange, (bare, ports[0]), (gateway, ports[1]))


def run_starts(tree: Path, profile: Path | None) -> None:
    """Print what each process takes from its start to its first answer, in its main thread."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="turnfold-instructions-")))
        exchange = stack.enter_context(Exchange())
        kept = profile or folder
        kept.mkdir(parents=True, exist_ok=True)
        costs = []
        for name, command, home in (("bare", bare_command, ROOT), ("turnfold", partial(gateway_command, folder), tree)):
            port = free_port()
            process = start(name, command(exchange.upstream_port, port), home, kept, from_start=True)
            stack.callback(process.stop)
            exchange.wait_for([port])
            exchange.send(port, [bodies.conversation(1 * KB, "fits")], 1)
            costs.append(process.main_thread())
        print(f"start to first answer: bare {costs[0]:,}, turnfold {costs[1]:,}: {costs[1] / costs[0]:.2f} x bare")


def bare_command(upstream: int, port: int) -> list[str]:
    return ["-m", "benchmarks.speed.bare", f"http://127.0.0.1:{upstream}", str(port)]


def gateway_command(folder: Path, upstream: int, port: int) -> list[str]:
    config = folder / "turnfold.yaml"
    config.write_text(TURNFOLD.format(port=port, admin=free_port(), upstream=upstream, fold_window=FOLD_WINDOW))
    return ["-m", "gateway", "serve", "--config", str(config)]


def measured(
    rows: Sequence[Row], exchange: Exchange, bare: tuple[Counted, int], gateway: tuple[Counted, int]
) -> dict[str, float]:
    """Print each row as it is measured; return the ratios by row."""
    print(f"| {'instructions':<22} | {'bare':>13} | {'turnfold':>13} | x bare | committed |")
    print(f"|{'-' * 24}|{'-' * 14}:|{'-' * 14}:|{'-' * 7}:|{'-' * 10}:|")
    committed = orjson.loads(TABLE.read_bytes()) if TABLE.exists() else {}
    found: dict[str, float] = {}
    for row in rows:
        warm, counted = row.warm(), row.counted()
        costs = []
        for process, port in (bare, gateway):
            exchange.send(port, warm, row.wide)
            process.zero()
            exchange.send(port, counted, row.wide)
            costs.append(process.instructions() / len(counted))
        found[row.name] = round(costs[1] / costs[0], 3)
        shown = f"{committed[row.name]:.2f}" if row.name in committed else ""
        print(
            f"| {row.name:<22} | {costs[0]:>13,.0f} | {costs[1]:>13,.0f} | {found[row.name]:>6.2f} | {shown:>9} |",
            flush=True,
        )
    return found


def grown(found: dict[str, float]) -> list[str]:
    """Return the names of the rows that cost more than the table allows."""
    committed = orjson.loads(TABLE.read_bytes())
    return [name for name, ratio in found.items() if ratio > TOLERANCE * committed.get(name, 0.0)]


def report_growth(found: dict[str, float]) -> int:
    """Name the rows that cost more than the table allows; return the exit status."""
    committed = orjson.loads(TABLE.read_bytes())
    for name in grown(found):
        print(f"{name}: {found[name]:.2f} times the bare pass-through, {committed.get(name)} in {TABLE.name}; make it "
              f"cheaper, or say why it must cost more and run with --write", file=sys.stderr)  # fmt: skip
    return 1 if grown(found) else 0


if __name__ == "__main__":
    sys.exit(main())
