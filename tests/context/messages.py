"""Short ways to write the messages of a conversation."""

from typing import Any

import orjson


def message(role: str, text: str) -> dict[str, Any]:
    """Return a message that is one text."""
    return {"role": role, "content": text}


def call(name: str, tool: str, **arguments: str) -> dict[str, Any]:
    """Return an assistant message that calls one tool; ``name`` identifies the call."""
    function = {"name": tool, "arguments": orjson.dumps(arguments).decode()}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": name, "type": "function", "function": function}],
    }


def result(name: str, value: Any) -> dict[str, Any]:
    """Return what a call gave: a text as it is, any other value as JSON."""
    content = value if isinstance(value, str) else orjson.dumps(value).decode()
    return {"role": "tool", "tool_call_id": name, "content": content}
