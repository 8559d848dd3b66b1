"""Recall of the same conversations in each wire format: ``python -m benchmarks.recall.formats [--every N]``.

Each request is recast from chat completions, folded in its own format, written to bytes and read again; what it still has of what is needed later is
compared with the chat form. Formats are equals when the difference is within two points.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table

from benchmarks.recall.__main__ import load
from benchmarks.recall.needed import Point, found, points, probes
from benchmarks.recall.ours import COUNTER, MARGIN, RESERVE, TOOLS
from gateway.context.cut.budget import Budget
from gateway.context.cut.policy import Policy
from gateway.context.write.compress import compress
from gateway.wire.format import Edits, Format
from gateway.wire.formats import FORMATS

BUDGETS = (0.1, 0.25, 0.5)
Messages = Sequence[Mapping[str, Any]]


def to_messages(messages: Messages) -> dict[str, Any]:
    """A conversation as a Messages body: results that follow each other join in one user message."""
    rows: list[dict[str, Any]] = []
    system = [message["content"] for message in messages if message["role"] == "system"]
    for message in messages:
        if message["role"] == "tool":
            result = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}
            if not (rows and rows[-1]["role"] == "user" and rows[-1]["content"][-1]["type"] == "tool_result"):
                rows.append({"role": "user", "content": []})
            rows[-1]["content"].append(result)
        elif message["role"] != "system":
            text = [{"type": "text", "text": message["content"]}] if message.get("content") else []
            uses = [
                {"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": _arguments(call)}
                for call in message.get("tool_calls") or ()
            ]
            rows.append({"role": message["role"], "content": [*text, *uses]})
    return {"system": "\n\n".join(system), "messages": rows} if system else {"messages": rows}


def to_responses(messages: Messages) -> dict[str, Any]:
    """A conversation as a Responses body."""
    items: list[dict[str, Any]] = []
    for message in messages:
        role = message["role"]
        if role == "tool":
            items.append(
                {"type": "function_call_output", "call_id": message["tool_call_id"], "output": message["content"]}
            )
            continue
        if message.get("content"):
            kind = "output_text" if role == "assistant" else "input_text"
            items.append({"type": "message", "role": role, "content": [{"type": kind, "text": message["content"]}]})
        items += [
            {"type": "function_call", "call_id": call["id"], **call["function"]}
            for call in message.get("tool_calls") or ()
        ]
    return {"input": items}


def _arguments(call: Mapping[str, Any]) -> Any:
    given = orjson.loads(call["function"]["arguments"] or "{}")
    return given if isinstance(given, dict) else {"value": given}


RECAST: Mapping[str, Callable[[Messages], dict[str, Any]]] = {
    "chat": lambda messages: {"messages": list(messages)},
    "messages": to_messages,
    "responses": to_responses,
}


def folded(format: Format, messages: Messages, window: int) -> Messages:
    """A conversation recast, folded, written and read again."""
    request = format.parse(orjson.dumps(RECAST[format.name](messages)))
    assert request is not None
    draft = compress(request.messages, Budget(window, RESERVE, TOOLS, int(window * MARGIN)), COUNTER, Policy())
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
