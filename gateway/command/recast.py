"""A chat-completions body recast into the other formats: for the demo and the benchmarks, which have conversations in one shape."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

Messages = Sequence[Mapping[str, Any]]


def recast(body: Mapping[str, Any], format: str) -> dict[str, Any]:
    """Return the same request in a format: ``chat``, ``messages``, ``responses`` or ``ollama``."""
    if format == "chat":
        return dict(body)
    if format == "ollama":
        return to_ollama(body)
    rest = {name: value for name, value in body.items() if name not in ("messages", "tools", "max_tokens")}
    functions = [tool["function"] for tool in body.get("tools", ())]
    limit = body.get("max_tokens")
    if format == "messages":
        tools = [
            {"name": each["name"], "description": each.get("description", ""), "input_schema": each["parameters"]}
            for each in functions
        ]
        rest |= {"max_tokens": limit or 1024, **to_messages(body["messages"])}
    else:
        tools = [{"type": "function", **each} for each in functions]
        rest |= {"max_output_tokens": limit} if limit else {}
        rest |= to_responses(body["messages"])
    return {**rest, "tools": tools} if tools else rest


def to_ollama(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request of Ollama's own API: arguments are objects, and results name their tool."""
    rest = {name: value for name, value in body.items() if name not in ("messages", "max_tokens")}
    rows: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    for message in body["messages"]:
        row = {"role": message["role"], "content": message.get("content") or ""}
        calls = message.get("tool_calls") or ()
        if calls:
            names |= {call["id"]: call["function"]["name"] for call in calls}
            functions = [{"name": call["function"]["name"], "arguments": _arguments(call)} for call in calls]
            row["tool_calls"] = [{"function": function} for function in functions]
        if message["role"] == "tool":
            row["tool_name"] = names.get(message["tool_call_id"], "")
        rows.append(row)
    limit = body.get("max_tokens")
    return {**rest, "messages": rows, **({"options": {"num_predict": limit}} if limit else {})}


def to_messages(messages: Messages) -> dict[str, Any]:
    """Return a conversation as a Messages body: results that follow each other join in one user message."""
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
    """Return a conversation as a Responses body."""
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
