"""Instructions at the end of a chat: what those find that need the past, and what quotes those cost that do not.

    python -m benchmarks.recall.instructed

`instructions.jsonl` has both kinds: instructions, questions in stories and instructions beside pasted text, each with the remarks that it
needs, and everyday messages and general questions that need nothing of what was said. Rules were chosen on those about the six recorded chats (set ``chats``);
the others are held out.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.recall.__main__ import at_budget_of, load_if_present
from benchmarks.recall.authored import SETS, rows_of
from benchmarks.recall.needed import Point, found
from benchmarks.recall.ours import COUNTER
from gateway.context import frames
from gateway.wire.message import text_of

BUDGETS: Final = (0.02, 0.05, 0.10, 0.25, 0.50)
CHOSEN_ON: Final = "chats"
"""The set on which rules were chosen. It is not in the repository."""
EVERYDAY: Final = "everyday"
"""The form of instructions that need nothing of what was said."""
GENERAL: Final = "general"
"""The form of questions that need nothing of what was said: they are about the world."""


class Instruction(NamedTuple):
    """A message at the end of a chat."""

    held_out: bool
    form: str
    point: Point
    """The request with it. Its remarks are what it needs: none for an everyday message or a general question."""


def instructions() -> list[Instruction]:
    """Return the messages about the chats that are present."""
    chats = {talk["id"]: talk["messages"] for each in SETS for talk in each.talks}
    chats.update({talk["id"]: talk["messages"] for talk in load_if_present(f"{CHOSEN_ON}.jsonl")})
    rows = rows_of(Path(__file__).with_name("instructions.jsonl"))
    return [_instruction(row, chats[row["talk"]]) for row in rows if row["talk"] in chats]


def _instruction(row: Mapping[str, Any], messages: Sequence[dict[str, Any]]) -> Instruction:
    request = [*messages, {"role": "user", "content": row["says"]}]
    remarks = tuple(said["text"] for said in row["evidence"])
    return Instruction(row["set"] != CHOSEN_ON, row["form"], Point(request, remarks=remarks))


def quoted_tokens(messages: Iterable[Mapping[str, Any]]) -> int:
    """Return the tokens of the quotes in a folded request."""
    texts = [text_of(message) for message in messages]
    return sum([COUNTER.text(text[text.index(frames.QUOTES) :]) for text in texts if frames.QUOTES in text])


def main() -> None:
    print(f"{'':44}" + "".join(f"{budget:>8.0%}" for budget in BUDGETS))
    every = instructions()
    for held_out in (False, True):
        label = "held out" if held_out else "chosen on"
        for form in dict.fromkeys(each.form for each in every):
            points = [each.point for each in every if each.form == form and each.held_out is held_out]
            if not points:
                continue
            folds = {budget: [at_budget_of(point, budget) for point in points] for budget in BUDGETS}
            quoted = [statistics.mean(map(quoted_tokens, folds[budget])) for budget in BUDGETS]
            if form not in {EVERYDAY, GENERAL}:
                shares = [statistics.mean(map(found, points, folds[budget])) for budget in BUDGETS]
                print(
                    f"{label:10}{form:12}{len(points):4}  {'needed, found':16}" + "".join(f"{x:8.1%}" for x in shares)
                )
            print(f"{label:10}{form:12}{len(points):4}  {'tokens quoted':16}" + "".join(f"{x:8.0f}" for x in quoted))


if __name__ == "__main__":
    main()
