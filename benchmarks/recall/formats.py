"""Recall of the same conversations in each wire format: ``python -m benchmarks.recall.formats [--every N]``.

Each request is recast from chat completions, folded in its own format, written to bytes and read again; what it still has of what is needed later is
compared with the chat form. Formats are equals when the difference is within two points.
"""

import argparse
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table

from benchmarks.recall.__main__ import load
from benchmarks.recall.needed import Point, found, points, probes
from benchmarks.recall.ours import COUNTER, RESERVE, TOOLS, budget_of
from gateway.command.recast import recast
from gateway.context.cut.policy import Policy
from gateway.context.write.folding import fold_conversation
from gateway.wire.format import Edits, Format
from gateway.wire.formats import FORMATS

BUDGETS = (0.1, 0.25, 0.5)
Messages = Sequence[Mapping[str, Any]]


def folded(format: Format, messages: Messages, window: int) -> Messages:
    """A conversation recast, folded, written and read again."""
    request = format.parse(orjson.dumps(recast({"messages": list(messages)}, format.name)))
    assert request is not None
    draft = fold_conversation(request.messages, budget_of(window), COUNTER, Policy())
    again = format.parse(format.encode(request, Edits(messages=draft.messages)))
    assert again is not None
    return again.messages


def sets(every: int) -> Iterator[tuple[str, Sequence[Point]]]:
    """The points of each set of conversations, one in so many."""
    for name in ("chats", "tau_airline", "bfcl_long"):
        read = probes if name == "chats" else lambda conversation: points(conversation, inside_turns=False)
        found = [point for conversation in load(f"{name}.jsonl") for point in read(conversation)]
        yield name, found[::every]


def main(every: int) -> None:
    table = Table("Conversations", "Points", "Room", *FORMATS_BY_NAME, title="Recall by format, %")
    for name, chosen in sets(every):
        for budget in BUDGETS:
            totals: dict[str, float] = defaultdict(float)
            for point in chosen:
                size = sum(map(COUNTER.message, point.request))
                for format in FORMATS_BY_NAME.values():
                    totals[format.name] += found(
                        point, folded(format, point.request, int(size * budget) + RESERVE + TOOLS)
                    )
            shares = [f"{100 * totals[format] / max(len(chosen), 1):.1f}" for format in FORMATS_BY_NAME]
            table.add_row(name, str(len(chosen)), f"{budget:.0%}", *shares)
    Console(width=110).print(table)


FORMATS_BY_NAME = {format.name: format for format in FORMATS.values()}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="take one point in so many")
    main(parser.parse_args().every)
