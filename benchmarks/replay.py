"""Replay recorded conversations through a running gateway into a strict upstream, at windows they do not fit.

    python -m benchmarks.replay [--sets tau_airline,...] [--shares 0.5,0.25,0.1] [--every N] [--tokenizer NAME]

Every user message and every point inside a tool loop is one request: the conversation as its client would have sent it
then. Each gets a window of its own: what is pinned, the tools, the last user message and the reserve, plus a share of
the rest. The gateway runs as the command, in a process of its own. Printed is what came back: how many requests were
answered 200, how many promises were broken, how often the upstream refused.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from benchmarks.recorded import CONVERSATIONS, present
from gateway.standin import Completion, StandIn
from gateway.standin.validity import PINNED
from gateway.standin.weight import prompt_tokens
from tests.e2e.stories import broken
from tests.running import Gateway, as_command, configured

SETS = ("tau_airline", "bfcl_long", "swe_agent")
SHARES = (0.5, 0.25, 0.1)
RESERVE = 512
AT_ONCE = 4

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "think",
            "description": "Use the tool to think about something. It will not obtain new information or change anything.",
            "parameters": {
                "type": "object",
                "properties": {"thought": {"type": "string", "description": "A thought to think about."}},
                "required": ["thought"],
            },
        },
    }
]
"""The recordings carry no tool definitions; one stands in, so that tools are counted."""


@dataclass(frozen=True, slots=True)
class Point:
    """One request of a conversation's life, and the window it must live in."""

    name: str
    body: Mapping[str, Any]
    window: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one request."""

    name: str
    status: int
    action: str
    refusals: int
    broken: tuple[str, ...]
    before: int
    after: int
    window: int
    ms: float


def conversations(name: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The conversations of one recorded set."""
    with present(CONVERSATIONS / f"{name}.jsonl").open("rb") as lines:
        for line in lines:
            read = orjson.loads(line)
            yield read["id"], read["messages"]


def points(name: str, messages: Sequence[dict[str, Any]], share: float) -> Iterator[Point]:
    """Each request of the conversation: at each user message and, in a tool loop, once all results are there."""
    for end in range(1, len(messages) + 1):
        last, following = messages[end - 1], messages[end]["role"] if end < len(messages) else None
        if last["role"] == "user" or (last["role"] == "tool" and following != "tool"):
            sent = list(messages[:end])
            window = window_for(sent, share)
            body = {"model": f"w{window}", "messages": sent, "tools": TOOLS, "max_tokens": RESERVE}
            yield Point(f"{name}:{end}", body, window)


def window_for(messages: Sequence[dict[str, Any]], share: float) -> int:
    """The window that holds what must stay, and a share of the rest."""
    users = [at for at, message in enumerate(messages) if message["role"] == "user"]
    kept = [
        message
        for at, message in enumerate(messages)
        if message["role"] in PINNED or at == (users[-1] if users else -1)
    ]
    must = prompt_tokens({"messages": kept, "tools": TOOLS}) + RESERVE
    rest = prompt_tokens({"messages": messages, "tools": TOOLS}) + RESERVE - must
    return must + round(rest * share)


async def play(gateway: Gateway, standin: StandIn, point: Point) -> Outcome:
    """Send one request and compare what was sent on with what the client sent."""
    started = time.perf_counter()
    answer = await gateway.chat(point.body, {"x-replay": point.name})
    spent = (time.perf_counter() - started) * 1000
    attempts = [seen for seen in standin.chats if seen.headers.get("x-replay") == point.name]
    faults: Iterable[str] = ("no call reached the upstream",)
    if attempts:
        faults = broken(point.body["messages"], attempts[-1].messages)
    standin.requests[:] = [seen for seen in standin.requests if seen.headers.get("x-replay") != point.name]
    return Outcome(
        point.name,
        answer.status,
        answer.headers.get("x-turnfold-action", "?"),
        sum(seen.status != 200 for seen in attempts),
        tuple(faults),
        prompt_tokens(point.body),
        attempts[-1].prompt_tokens if attempts else 0,
        point.window,
        spent,
    )


async def replay(gateway: Gateway, standin: StandIn, stories: Iterable[Sequence[Point]]) -> list[Outcome]:
    """Play conversations, several at once, each in its own order."""
    waiting = list(stories)[::-1]
    outcomes: list[Outcome] = []

    async def player() -> None:
        while waiting:
            for point in waiting.pop():
                outcomes.append(await play(gateway, standin, point))

    await asyncio.gather(*(player() for _ in range(AT_ONCE)))
    return outcomes


def config(stories: Iterable[Sequence[Point]], base_url: str, tokenizer: str) -> str:
    """Configure a model for every window."""
    windows = sorted({point.window for story in stories for point in story})
    models = {f"w{window}": {"context_window": window, "tokenizer": tokenizer} for window in windows}
    return configured(base_url, {"models": models, "log": {"level": "error"}})


def upstream() -> StandIn:
    """The strict server; a model's window stands in its name."""
    return StandIn(window=lambda model: int(model.removeprefix("w")), reply=Completion("ok"))


def row(label: str, outcomes: Sequence[Outcome]) -> str:
    """One line of the table."""
    actions = Counter(outcome.action for outcome in outcomes)
    acted = " ".join(f"{action} {count}" for action, count in sorted(actions.items()))
    times = sorted(outcome.ms for outcome in outcomes)
    used = statistics.median(outcome.after / (outcome.window - RESERVE) for outcome in outcomes)
    return (
        f"{label:<22}{len(outcomes):>9}{sum(outcome.status == 200 for outcome in outcomes):>8}"
        f"{sum(bool(outcome.broken) and outcome.status == 200 for outcome in outcomes):>8}"
        f"{sum(outcome.refusals == 1 for outcome in outcomes):>9}{sum(outcome.refusals > 1 for outcome in outcomes):>6}"
        f"{used:>8.0%}{times[len(times) // 2]:>8.1f}{times[len(times) * 99 // 100]:>8.1f}  {acted}"
    )


HEAD = f"{'set, share of the rest':<22}{'requests':>9}{'200':>8}{'broken':>8}{'refused':>9}{'again':>6}{'used':>8}{'ms':>8}{'p99':>8}  actions"


async def run(
    sets: Sequence[str], shares: Sequence[float], every: int, tokenizer: str
) -> dict[tuple[str, float], list[Outcome]]:
    """Replay every set at every share through one gateway."""
    plan: dict[tuple[str, float], list[list[Point]]] = defaultdict(list)
    for name in sets:
        for number, (identity, messages) in enumerate(conversations(name)):
            if number % every == 0:
                for share in shares:
                    plan[name, share].append(list(points(f"{identity}:{share}", messages, share)))
    everything = [story for stories in plan.values() for story in stories]
    async with upstream() as standin:
        with tempfile.TemporaryDirectory() as folder:
            async with as_command(config(everything, standin.base_url, tokenizer), Path(folder)) as (gateway, _):
                return {key: await replay(gateway, standin, stories) for key, stories in plan.items()}


def report(found: Mapping[tuple[str, float], Sequence[Outcome]], examples: int) -> None:
    """Print the table, and some of what went wrong."""
    print(HEAD)
    for (name, share), outcomes in found.items():
        print(row(f"{name} {share:.0%}", outcomes))
    everything = [outcome for outcomes in found.values() for outcome in outcomes]
    print(row("all", everything))
    kinds = Counter(fault.partition(":")[0] for each in everything if each.status == 200 for fault in each.broken)
    print(f"\npromises broken, by kind: {dict(kinds) or 'none'}")
    for title, wrong in (
        ("not answered 200", [each for each in everything if each.status != 200]),
        ("broken", [each for each in everything if each.broken and each.status == 200]),
        ("refused more than once", [each for each in everything if each.refusals > 1]),
    ):
        print(f"\n{title}: {len(wrong)}")
        for each in wrong[:examples]:
            print(
                f"  {each.name} status {each.status} {each.action} refusals {each.refusals} {each.before} -> {each.after} of {each.window} {'; '.join(each.broken)[:200]}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--shares", default=",".join(map(str, SHARES)))
    parser.add_argument("--every", type=int, default=1, help="only every Nth conversation")
    parser.add_argument(
        "--tokenizer",
        default="o200k",
        help="the models' tokenizer in the configuration; the upstream's is o200k_base",
    )
    parser.add_argument("--examples", type=int, default=5)
    given = parser.parse_args()
    shares = [float(share) for share in given.shares.split(",")]
    report(asyncio.run(run(given.sets.split(","), shares, given.every, given.tokenizer)), given.examples)


if __name__ == "__main__":
    main()
