"""Fit the weights of quotes and wishes: ``python -m benchmarks.recall.fit [NAME...]``.

Each weight is tried at half, at its value and at twice it, on the chats of one half (every other one); the best of the three is then
reported on the other half, beside the value in use. What gains less than a point there is noise. Weights of wishes are tried on customer
service too: fitted on sentences and conversations of their own, reported on others.
"""

import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from benchmarks.recall.__main__ import at_budget, load
from benchmarks.recall.needed import found, going_on, probes, stands, whole
from benchmarks.recall.ours import MEMORY
from benchmarks.recall.planted import TO_FIT_ON, with_instruction
from gateway.context.choose import digest, recall, weights, wishes

BUDGETS = (0.25, 0.10)
QUOTES = (
    "NEIGHBOUR_SHARE",
    "FAMILY_WORD",
    "FIELD_WORD",
    "PINNED_WORD",
    "SPEAKER_FACTOR",
    "USER_FACTOR",
    "LEAST_SCORE_SHARE",
)
WISHES = (
    "ASSENT_IN_REPLY",
    "NAME_IN_REPLY",
    "WORD_IN_REPLY",
    "LEAST_REVOKED_RARITY",
    "LEAST_REVOCATION_STRENGTH",
    "WHOLE_MESSAGE",
    "WISH_BINDING",
    "RARE_WORDS",
    "TOOL_WORDS",
    "WISH_SIZE_POWER",
    "LEAST_WISH_POINTS",
)
FACTORS = (0.5, 1.0, 2.0)
T = TypeVar("T")
Planted = Sequence[tuple[list[dict[str, Any]], str]]
"""Requests, each with the sentence planted in it."""


def answered(talks: Sequence[Mapping[str, Any]]) -> float:
    """The share of what questions need, over both budgets."""
    asked = [point for talk in talks for point in probes(talk)]
    return statistics.mean(found(point, at_budget(point.request, budget)) for point in asked for budget in BUDGETS)


def kept(talks: Sequence[Mapping[str, Any]]) -> float:
    """The share of standing wishes kept, less twice those shown after they were taken back, over both budgets."""
    scores: list[float] = []
    for talk in talks:
        for budget in BUDGETS:
            out = at_budget(going_on(talk), budget)
            for wish in talk["rules"].values():
                there = stands(wish["rule"]["text"], out)
                gone = "revoked" in wish
                scores.append(-2.0 * (there and not stands(wish["revoked"]["text"], out)) if gone else float(there))
    return statistics.mean(scores)


def served(planted: Planted) -> float:
    """The share of sentences planted in customer service that are kept word for word, over both budgets."""
    return statistics.mean(
        sentence in "\n".join(map(whole, at_budget(request, budget)))
        for request, sentence in planted
        for budget in BUDGETS
    )


def use(name: str, value: float) -> None:
    """Put a weight in force in every module that has it."""
    MEMORY.clear()  # what was chosen with the value before
    for module in (weights, recall, wishes, digest):
        if hasattr(module, name):
            setattr(module, name, value)


def main() -> None:
    talks = load("chats.jsonl")
    halves = talks[0::2], talks[1::2]
    recorded = load("tau_airline.jsonl")
    service = [one for half in (0, 1) for one in with_instruction(recorded[50:], 1, half=half, among=TO_FIT_ON)]
    tested = [one for half in (0, 1) for one in with_instruction(recorded[:50], 1, half=half)]
    print(f"{'weight':16}{'in use':>8}  fitted on one half: value, gain on the other half; on service alike")
    for name in sys.argv[1:] or (*QUOTES, *WISHES):
        measure = answered if name in QUOTES else kept
        value = getattr(weights, name)
        cells: list[str] = []
        for fitted, other in (halves, halves[::-1]):
            cells.append(tried(name, measure, fitted, other))
        if name in WISHES:
            cells.append(tried(name, served, service, tested))
        print(f"{name:16}{value:8.2f}  {'  '.join(cells)}", flush=True)


def tried(name: str, measure: Callable[[T], float], fitted: T, other: T) -> str:
    """Return the best value of a weight on one half, and its gain on the other over the value in use."""
    value = getattr(weights, name)
    scores: dict[float, float] = {}
    for factor in FACTORS:
        use(name, value * factor)
        scores[factor] = measure(fitted)
    best = max(scores, key=lambda factor: (scores[factor], factor == 1.0))
    use(name, value * best)
    better = measure(other)
    use(name, value)
    return f"{value * best:8.2f} {better - measure(other):+7.1%}"


if __name__ == "__main__":
    main()
