"""Print the tables of docs/counting.md. ``python -m benchmarks.counting [--worst N]`` names the requests that are furthest off, too."""

import argparse

from rich.console import Console
from rich.table import Table

from benchmarks.counting import billed, cost, rows
from benchmarks.recorded import BILLS

console = Console(width=130)


def accuracy(worst: int) -> None:
    """Counts against what providers billed, before anything was learned."""
    if not BILLS.exists():
        console.print(f"No recorded bills at {BILLS}: set TURNFOLD_DATA.")
        return
    found = rows.load()
    kept = [row for row in found if not row.left_out]
    media = [row for row in found if row.left_out == "media"]
    table = Table(
        "Models", "Requests", "Mean error", "Median", "Within 5 %", "Bias", "All tokens", title="Counted against billed"
    )
    for line in billed.table(kept):
        shares = (line.mean, line.median, line.within, line.bias, line.whole)
        table.add_row(line.group, str(line.requests), *(f"{share:.1%}" for share in shares))
    console.print(table)
    console.print(
        f"{len(found)} requests; left out, for their bill cannot be read in them: {len(found) - len(kept)}, {len(media)} of these with media.\n"
    )
    if worst:
        for row in sorted(kept, key=lambda row: -abs(billed.error(row)))[:worst]:
            console.print(
                f"{billed.error(row):+8.0%}  billed {row.billed}, counted {billed.count(row).total}  {row.host}  {row.model}"
            )


def costs() -> None:
    """Time by size, cold and remembered."""
    sizes = [1_000, 10_000, 100_000]
    table = Table(
        "Messages, tokens",
        "Proof",
        *(f"{name}, {way}" for name in ("OpenAI",) for way in ("cold", "remembered")),
        title="One request, by size (ms)",
    )
    for size in sizes:
        raw = cost.conversation(size)
        spent = cost.counting(raw, "o200k")
        table.add_row(f"{spent.tokens:,}", f"{cost.proof(raw):.4f}", f"{spent.cold:.2f}", f"{spent.remembered:.3f}")
    console.print(table)
    raw = cost.conversation(100_000)
    table = Table(
        "Vocabulary",
        "Tokens",
        "Cold, ms",
        "Remembered, ms",
        "Load, s",
        "Memory, MB",
        title="100,000 tokens, by vocabulary",
    )
    for family, name in cost.NAMES.items():
        spent = cost.counting(raw, family)
        seconds, more, _ = cost.load(family)
        table.add_row(
            name, f"{spent.tokens:,}", f"{spent.cold:.1f}", f"{spent.remembered:.2f}", f"{seconds:.2f}", f"{more:.0f}"
        )
    console.print(table)


def hostile() -> None:
    """A megabyte of the worst kinds: the whole, and the longest call during which nothing else runs."""
    table = Table("A megabyte of", *cost.NAMES.values(), title="Hostile texts: whole / longest call (ms)")
    for kind, text in cost.megabytes():
        spent = [cost.longest_call(text, cost.vocabulary(family)) for family in cost.NAMES]
        table.add_row(kind, *(f"{whole:.0f} / {longest:.0f}" for whole, longest in spent))
    console.print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worst", type=int, default=0, help="name so many of the requests that are furthest off")
    arguments = parser.parse_args()
    accuracy(arguments.worst)
    costs()
    hostile()
