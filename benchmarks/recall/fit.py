"""Fit the weights of quotes and wishes: ``python -m benchmarks.recall.fit [NAME...]``.

Each weight is tried at half, at its value and at twice it, on the chats of one half (every other one); the best of the three is then
reported on the other half, beside the value in use. What gains less than a point there is noise.
"""

import statistics
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.recall.__main__ import at_budget, load
from benchmarks.recall.needed import found, probes, stands
from benchmarks.recall.ours import MEMORY
from gateway.context.choose import recall, weights, wishes

BUDGETS = (0.25, 0.10)
QUOTES = ("ADJACENT", "NEXT_BUT_ONE", "ALIKE", "PINNED_WORD", "OWN_WORDS", "UNNAMED", "LEAST_OF_BEST")
WISHES = (
    "ASSENT",
    "ADDRESSED",
    "TAKEN_UP",
    "REVOKES",
    "LEAST_REVOCATION",
    "ALL_OF_MESSAGE",
    "BINDING_WORD",
    "UNUSUAL",
    "WISH_SIZE",
    "LEAST_WISH",
)
FACTORS = (0.5, 1.0, 2.0)


def answered(talks: Sequence[Mapping[str, Any]]) -> float:
    """The share of what questions need, over both budgets."""
    asked = [point for talk in talks for point in probes(talk)]
    return statistics.mean(found(point, at_budget(point.request, budget)) for point in asked for budget in BUDGETS)


def kept(talks: Sequence[Mapping[str, Any]]) -> float:
    """The share of standing wishes kept, less twice those shown after they were taken back, over both budgets."""
    scores: list[float] = []
    for talk in talks:
        for budget in BUDGETS:
            out = at_budget([*talk["messages"], {"role": "user", "content": "Thanks. What should we do next?"}], budget)
            for wish in talk["rules"].values():
                there = stands(wish["rule"]["text"], out)
                gone = "revoked" in wish
                scores.append(-2.0 * (there and not stands(wish["revoked"]["text"], out)) if gone else float(there))
    return statistics.mean(scores)


def use(name: str, value: float) -> None:
    """Put a weight in force in every module that has it."""
    MEMORY.clear()  # what was chosen with the value before
    for module in (weights, recall, wishes):
        if hasattr(module, name):
            setattr(module, name, value)


def main() -> None:
    talks = load("chats.jsonl")
    halves = talks[0::2], talks[1::2]
    print(f"{'weight':16}{'in use':>8}  fitted on one half: value, gain on the other half")
    for name in sys.argv[1:] or (*QUOTES, *WISHES):
        measure = answered if name in QUOTES else kept
        value = getattr(weights, name)
        cells: list[str] = []
        for fitted, other in (halves, halves[::-1]):
            scores: dict[float, float] = {}
            for factor in FACTORS:
                use(name, value * factor)
                scores[factor] = measure(fitted)
            best = max(scores, key=lambda factor: (scores[factor], factor == 1.0))
            use(name, value * best)
            better = measure(other)
            use(name, value)
            cells.append(f"{value * best:8.2f} {better - measure(other):+7.1%}")
        print(f"{name:16}{value:8.2f}  {'  '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
