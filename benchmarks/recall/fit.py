"""Fit the weights of quotes and wishes: ``python -m benchmarks.recall.fit [NAME...]``.

Each weight is tried at half its value, at its value and at twice its value, on one half of the chats (every other chat). The best of the
three is then measured on the other half, and compared with the value in use. A gain below one percentage point is noise. Weights of
wishes are also tried on customer service: the value is chosen on some sentences and conversations, and measured on others.
"""

import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from benchmarks.recall.__main__ import at_budget, load
from benchmarks.recall.needed import found, going_on, probes, stands, whole
from benchmarks.recall.ours import MEMORY
from benchmarks.recall.planted import TO_FIT_ON, with_instruction
from gateway.context import weights
from gateway.context.choose import digest, recall, relevance
from gateway.context.read import wishes

BUDGETS = (0.25, 0.10)
"""Shares of a conversation that a folded request may have."""
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
    "CHANGE_FOR_REVOCATION",
    "CHANGE_FOR_PHRASE",
    "CHANGE_FOR_STRENGTH",
    "SHARED_NEARBY",
    "EVEN_CHANGE_POINTS",
    "DOUBT",
    "WHOLE_MESSAGE",
    "WISH_BINDING",
    "RARE_WORDS",
    "TOOL_WORDS",
    "WISH_SIZE_POWER",
    "LEAST_WISH_POINTS",
)
FACTORS = (0.5, 1.0, 2.0)
"""Multiples of a weight that are tried."""
Conversations = TypeVar("Conversations")
Planted = Sequence[tuple[list[dict[str, Any]], str]]
"""Requests, each with the sentence that was planted in it."""


def needed_facts_kept(talks: Sequence[Mapping[str, Any]]) -> float:
    """Return the mean share of the facts that questions need and that folded requests still have, over both budgets."""
    asked = [point for talk in talks for point in probes(talk)]
    return statistics.mean(found(point, at_budget(point.request, budget)) for point in asked for budget in BUDGETS)


def wishes_kept(talks: Sequence[Mapping[str, Any]]) -> float:
    """Return the mean score of standing wishes, over both budgets: 1 for a wish that is kept, -2 for a revoked wish that is shown without
    its revocation, else 0."""
    scores: list[float] = []
    for talk in talks:
        for budget in BUDGETS:
            out = at_budget(going_on(talk), budget)
            for wish in talk["rules"].values():
                is_shown = stands(wish["rule"]["text"], out)
                if "revoked" in wish:
                    misleads = is_shown and not stands(wish["revoked"]["text"], out)
                    scores.append(-2.0 * misleads)
                else:
                    scores.append(float(is_shown))
    return statistics.mean(scores)


def instructions_kept(planted: Planted) -> float:
    """Return the share of sentences planted in customer service that are kept word for word, over both budgets."""
    return statistics.mean(
        sentence in "\n".join(map(whole, at_budget(request, budget)))
        for request, sentence in planted
        for budget in BUDGETS
    )


def set_weight(name: str, value: float) -> None:
    """Set a weight in every module that has imported it."""
    MEMORY.clear()  # it holds choices made with the old value
    for module in (weights, recall, relevance, wishes, digest):
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
        measure = needed_facts_kept if name in QUOTES else wishes_kept
        value = getattr(weights, name)
        cells: list[str] = []
        for fitted, other in (halves, halves[::-1]):
            cells.append(try_weight(name, measure, fitted, other))
        if name in WISHES:
            cells.append(try_weight(name, instructions_kept, service, tested))
        print(f"{name:16}{value:8.2f}  {'  '.join(cells)}", flush=True)


def try_weight(
    name: str, measure: Callable[[Conversations], float], fitted: Conversations, other: Conversations
) -> str:
    """Return the best value of a weight on the fitted half, and its gain on the other half over the value in use, as text."""
    value = getattr(weights, name)
    scores: dict[float, float] = {}
    for factor in FACTORS:
        set_weight(name, value * factor)
        scores[factor] = measure(fitted)
    best = max(scores, key=lambda factor: (scores[factor], factor == 1.0))
    set_weight(name, value * best)
    better = measure(other)
    set_weight(name, value)
    return f"{value * best:8.2f} {better - measure(other):+7.1%}"


if __name__ == "__main__":
    main()
