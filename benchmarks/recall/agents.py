"""Coding agents' sessions with their commands as tool calls, for a look at what later commands need."""

import re
from collections.abc import Mapping
from typing import Any

import orjson

_COMMAND = re.compile(r"```(?:\w*\n)?\s*(.+?)\s*```", re.S)


def as_tool_calls(conversation: Mapping[str, Any]) -> dict[str, Any]:
    """Turn a session whose commands stand in fenced text into one with tool calls and results.

    The words of a command are its arguments, so that a path, a line number or a name that a later command uses counts
    as needed.
    """
    out: list[dict[str, Any]] = []
    waiting = ""
    for message in conversation["messages"]:
        text = message["content"] or ""
        found = _COMMAND.search(text) if message["role"] == "assistant" else None
        if found:
            waiting = f"call_{len(out)}"
            arguments = orjson.dumps({"argv": found[1].split()[:40]}).decode()
            call = {"id": waiting, "type": "function", "function": {"name": "shell", "arguments": arguments}}
            out.append({"role": "assistant", "content": text[: found.start()].strip() or None, "tool_calls": [call]})
        elif message["role"] == "user" and waiting:
            out.append({"role": "tool", "tool_call_id": waiting, "content": text})
            waiting = ""
        else:
            out.append(dict(message))
    return {**conversation, "messages": out}
