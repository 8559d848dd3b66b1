"""Billed requests: recorded bodies in chat-completions shape, each with the prompt tokens its provider billed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlparse

import orjson

from benchmarks.recorded import BILLS, present
from gateway.wire.messages import MESSAGES


@dataclass(frozen=True, slots=True)
class Row:
    """One recorded request, as a chat-completions body, and what it was billed."""

    group: str
    host: str
    model: str
    body: Mapping[str, Any]
    billed: int
    left_out: str = ""
    """Why the bill cannot be known from the request; empty when it can."""


def load() -> list[Row]:
    """Read all recorded requests."""
    lines = present(BILLS).read_bytes().splitlines()
    return [row for line in lines if (row := _row(orjson.loads(line)))]


def _row(record: Mapping[str, Any]) -> Row | None:
    url = urlparse(unquote(record["uri"]))
    body, usage = record["body"], record["usage"]
    model = record["model"] or ""
    if url.path.endswith("/converse"):
        model = url.path.split("/model/")[1].rsplit("/", 1)[0]
        body = _from_bedrock(body, model)
    elif "/invoke" in url.path:
        model = url.path.split("/model/")[1].rsplit("/", 1)[0]
        body = _from_bedrock(body, model) if "schemaVersion" in body else _from_anthropic(body, model)
    elif url.path.endswith("/messages"):
        found = MESSAGES.parse(orjson.dumps(body))
        if found is None:
            return None
        body = dict(found.body)
    body = {**body, "model": model}
    return Row(_group(url.netloc, model), url.netloc, model, body, _billed(usage), _left_out(record, body))


def _billed(usage: Mapping[str, Any]) -> int:
    """All prompt tokens, those read from or written to a cache included."""
    if "prompt_tokens" in usage:
        return int(usage["prompt_tokens"])
    if "inputTokens" in usage:
        keys = ("inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens")
    else:
        keys = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return sum(int(usage.get(key) or 0) for key in keys)


GROUPS = (
    ("claude", "claude"), ("gemini", "gemini"), ("gpt-oss", "gpt-oss"), ("mistral", "mistral"), ("magistral", "mistral"),
    ("ministral", "mistral"), ("pixtral", "mistral"), ("devstral", "mistral"), ("codestral", "mistral"),
    ("deepseek-r1-distill", "llama"), ("deepseek", "deepseek"), ("llama", "llama"), ("qwen", "qwen"), ("glm", "glm"),
    ("nova", "nova"), ("titan", "nova"), ("kimi", "kimi"), ("gpt-", "openai"), ("o1", "openai"), ("o3", "openai"), ("o4", "openai"),
)  # fmt: skip


def _group(host: str, model: str) -> str:
    return next((group for sign, group in GROUPS if sign in model.lower()), "other")


# Requests whose bill holds more than can be read in them.
SERVER_SIDE = (
    "mcp_servers", "container", "web_search_options", "plugins", "models", "preset", "moderation", "search_settings", "context_management",
)  # fmt: skip
"""Members that let the server add text: search results, other models, stored presets."""
REFERENCES = (
    b"container_upload", b'"file_id"', b"tool_reference", b"defer_loading", b"tool_addition", b"guardContent", b"guardrailConfig",
    b'"type":"compaction"', b"server_tool_use",
)  # fmt: skip


def _left_out(record: Mapping[str, Any], body: Mapping[str, Any]) -> str:
    """Why a bill cannot be known from its request; images and documents have a price, but often stand elsewhere."""
    raw, usage = record["body"], record["usage"]
    kinds = {str(tool.get("type", "function")) for tool in raw.get("tools") or []}
    searched = (usage.get("server_tool_use") or usage.get("server_tool_use_details") or {}).get("web_search_requests")
    if not kinds <= {"function", "custom", "None"} or any(key in raw for key in SERVER_SIDE) or searched:
        return "server-side tool"
    if any(sign in record["model"] for sign in ("search", "compound", ":online")):
        return "server-side tool"
    if any(sign in orjson.dumps(raw) for sign in REFERENCES):
        return "by reference"
    return "media" if any(map(_has_media, body["messages"])) else ""


def _has_media(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    return isinstance(content, list) and any(
        part.get("type") not in ("text", "thinking", "tool_use", "tool_result") for part in content
    )


def _from_anthropic(body: Mapping[str, Any], model: str) -> dict[str, Any]:
    """An Anthropic request in chat-completions shape."""
    messages: list[dict[str, Any]] = []
    system = body.get("system")
    if system:
        messages.append({"role": "system", "content": system if isinstance(system, str) else _text_parts(system)})
    if "prompt" in body:
        messages.append({"role": "user", "content": body["prompt"]})
    for message in body.get("messages", []):
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        messages += _turn(message["role"], [_anthropic_part(part) for part in parts])
    tools = [
        {
            "type": "function",
            "function": {
                "name": tool.get("name", ""),
                "description": tool.get("description"),
                "parameters": tool["input_schema"],
            },
        }
        for tool in body.get("tools") or []
        if "input_schema" in tool
    ]
    return _body(body, messages, tools, body.get("tool_choice"))


def _anthropic_part(part: Mapping[str, Any]) -> dict[str, Any]:
    kind = part["type"]
    if kind == "text":
        return {"kind": "text", "text": part["text"]}
    if kind == "tool_use":
        return {"kind": "call", "id": part["id"], "name": part["name"], "input": part["input"]}
    if kind == "tool_result":
        content = part.get("content", "")
        return {
            "kind": "result",
            "id": part["tool_use_id"],
            "content": content if isinstance(content, str) else _text_parts(content),
        }
    if kind == "thinking":
        return {"kind": "thinking", "text": part["thinking"]}
    if kind == "image" and part["source"].get("type") == "base64":
        source = part["source"]
        return {
            "kind": "media",
            "part": {"type": "image_url", "image_url": {"url": f"data:{source['media_type']};base64,{source['data']}"}},
        }
    if kind == "image":
        return {"kind": "media", "part": {"type": "image_url", "image_url": {"url": part["source"].get("url", "")}}}
    return {"kind": "media", "part": dict(part)}


def _from_bedrock(body: Mapping[str, Any], model: str) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    system = [part for part in body.get("system") or [] if "text" in part]
    if system:
        messages.append({"role": "system", "content": _text_parts(system)})
    for message in body["messages"]:
        messages += _turn(message["role"], [found for part in message["content"] if (found := _bedrock_part(part))])
    config = body.get("toolConfig") or {}
    tools = [
        {
            "type": "function",
            "function": {
                "name": spec["name"],
                "description": spec.get("description"),
                "parameters": spec["inputSchema"]["json"],
            },
        }
        for tool in config.get("tools") or []
        if (spec := tool.get("toolSpec"))
    ]
    return _body(body, messages, tools, config.get("toolChoice"))


def _bedrock_part(part: Mapping[str, Any]) -> dict[str, Any] | None:
    if "text" in part:
        return {"kind": "text", "text": part["text"]}
    if call := part.get("toolUse"):
        return {"kind": "call", "id": call["toolUseId"], "name": call["name"], "input": call["input"]}
    if result := part.get("toolResult"):
        content = [
            {"text": piece["text"] if "text" in piece else orjson.dumps(piece.get("json", piece)).decode()}
            for piece in result["content"]
        ]
        return {"kind": "result", "id": result["toolUseId"], "content": _text_parts(content)}
    if "cachePoint" in part:
        return None
    if reasoning := part.get("reasoningContent"):
        return {"kind": "thinking", "text": (reasoning.get("reasoningText") or {}).get("text", "")}
    kind = next(iter(part))
    return {
        "kind": "media",
        "part": {"type": {"image": "image_url", "document": "file", "video": "video_url"}.get(kind, kind), **part},
    }


def _turn(role: str, parts: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """One native message as chat messages: results become messages of their own."""
    content: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    message: dict[str, Any] = {"role": role}
    for part in parts:
        if part["kind"] == "text":
            content.append({"type": "text", "text": part["text"]})
        elif part["kind"] == "media":
            content.append(part["part"])
        elif part["kind"] == "thinking":
            message["reasoning_content"] = message.get("reasoning_content", "") + part["text"]
        elif part["kind"] == "call":
            function = {"name": part["name"], "arguments": orjson.dumps(part["input"]).decode()}
            calls.append({"id": part["id"], "type": "function", "function": function})
        else:
            yield {"role": "tool", "tool_call_id": part["id"], "content": part["content"]}
    if content or calls or "reasoning_content" in message:
        message["content"] = content or None
        if calls:
            message["tool_calls"] = calls
        yield message


def _text_parts(parts: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": part["text"]} if "text" in part else dict(part) for part in parts]


def _body(
    body: Mapping[str, Any], messages: list[dict[str, Any]], tools: list[dict[str, Any]], choice: Any
) -> dict[str, Any]:
    result: dict[str, Any] = {"messages": messages}
    if tools:
        result["tools"] = tools
    if isinstance(choice, dict):
        kind = choice.get("type") or next(iter(choice), "auto")
        result["tool_choice"] = {"any": "required", "auto": "auto", "none": "none"}.get(
            kind,
            {
                "type": "function",
                "function": {"name": choice.get("name") or (choice.get("tool") or {}).get("name", "")},
            },
        )
    if thinking := body.get("thinking") or (body.get("additionalModelRequestFields") or {}).get("thinking"):
        result["thinking"] = thinking
    if schema := _schema(body):
        result["response_format"] = {"type": "json_schema", "json_schema": {"name": "output", "schema": schema}}
    return result


def _schema(body: Mapping[str, Any]) -> Any:
    """The schema that the answer must follow, in Anthropic's or in Bedrock's form."""
    form = (body.get("output_config") or {}).get("format") or {}
    if "schema" in form:
        return form["schema"]
    text = (body.get("outputConfig") or {}).get("textFormat") or {}
    written = ((text.get("structure") or {}).get("jsonSchema") or {}).get("schema")
    return orjson.loads(written) if written else None
