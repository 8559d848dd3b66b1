"""What a fold costs in processor time: a conversation never seen before, the same again, and with one turn more.

`python -m benchmarks.recall --time`. Long conversations are made of recorded ones, one behind the other. A pass never seen before
has a blank more behind each text than the pass before it: other bytes, so that no message of it is remembered, and the same lines. Its
words are remembered, as they are in a gateway that has run for a while.
"""

import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from benchmarks.recall.ours import COUNTER, MEMORY, turnfold
from gateway.wire import chat as wire

SIZES = ((20_000, 8192), (170_000, 32_768), (170_000, 131_072))
"""Tokens of the conversation and of the window."""
PASSES = 5


def joined(talks: Iterable[Mapping[str, Any]], tokens: int) -> list[dict[str, Any]]:
    """Conversations one behind the other, up to about so many tokens, with ids of calls that stay unique."""
    messages: list[dict[str, Any]] = []
    size = 0
    for number, talk in enumerate(talks):
        for message in talk["messages"] if number == 0 else talk["messages"][1:]:
            one = dict(message)
            if one.get("tool_calls"):
                one["tool_calls"] = [{**call, "id": f"{call['id']}_{number}"} for call in one["tool_calls"]]
            if one.get("tool_call_id"):
                one["tool_call_id"] += f"_{number}"
            messages.append(one)
            size += COUNTER.message(one)
            if size >= tokens and one["role"] == "user":
                return messages
    return messages


def timed(messages: Sequence[Mapping[str, Any]], window: int, blanks: int) -> float:
    """Milliseconds of processor time that counting and folding take once the body is parsed."""
    padded = [{**message, "content": (message.get("content") or "") + " " * blanks} for message in messages]
    given = wire.parse(orjson.dumps({"model": "m", "messages": padded}), MEMORY).messages
    started = time.process_time()
    turnfold(given, window, None)
    return (time.process_time() - started) * 1000


def table(sets: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Medians of some passes, by set and size."""
    print("\ntime to count and fold, ms of CPU, parsing aside")
    print(f"  {'':14}{'tokens':>8}{'window':>8}{'messages':>9}{'never seen':>12}{'same again':>12}{'next turn':>11}")
    for name, talks in sets.items():
        for tokens, window in SIZES:
            messages = joined(talks, tokens)
            if not messages or sum(map(COUNTER.message, messages)) < tokens / 2:
                continue
            more = [
                {"role": "assistant", "content": "I have noted that."},
                {"role": "user", "content": "And what of the 2nd one?"},
            ]
            timed(messages, window, 0)
            passes = [
                (
                    timed(messages, window, blanks),
                    timed(messages, window, blanks),
                    timed([*messages, *more], window, blanks),
                )
                for blanks in range(1, PASSES + 1)
            ]
            new, same, following = map(statistics.median, zip(*passes, strict=True))
            print(f"  {name:14}{tokens:>8}{window:>8}{len(messages):>9}{new:>12.1f}{same:>12.1f}{following:>11.1f}")
