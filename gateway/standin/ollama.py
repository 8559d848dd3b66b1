"""Ollama's own chat API: what it refuses, how many tokens it counts, and its answers, which stream one object in a line.

https://github.com/ollama/ollama/blob/main/docs/api.md#generate-a-chat-completion
"""

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from gateway.standin import validity, weight
from gateway.standin.answers import JSON, Completion, Raw
from gateway.standin.validity import Violation

LINES: Final = "application/x-ndjson"
RULES: Final = {
    **validity.RULES,
    "type": "texts are strings, images are base64, arguments are objects",
}
CREATED: Final = "2026-01-01T00:00:00.000000Z"
_TEXTS: Final = ("role", "content", "thinking", "tool_name", "tool_call_id")


def streams(body: Mapping[str, Any]) -> bool:
    """Return whether a request asks for a stream: it does unless it says no."""
    return body.get("stream") is not False


def option(body: Mapping[str, Any], name: str) -> int:
    """Return a number among the options; 0 without a positive one."""
    options = body.get("options")
    number = options.get(name) if isinstance(options, dict) else None
    return number if isinstance(number, int) and number > 0 else 0


def violations(body: Any) -> list[Violation]:
    """Find every broken rule: the types that Ollama's own reader demands, then those that every strict server has. A call and its result
    are matched by their order, because older versions have no ids."""
    messages = body.get("messages") if isinstance(body, dict) else None
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        return [
            Violation("type", 0, "json: cannot unmarshal into Go struct field ChatRequest.messages of type api.Message")
        ]
    wrong = [
        Violation("type", at, f"json: cannot unmarshal into Go struct field ChatRequest.messages.{name}")
        for at, message in enumerate(messages)
        for name in _wrong_types(message)
    ]
    return wrong or validity.violations(_as_chat(messages))


def _wrong_types(message: Mapping[str, Any]) -> Iterator[str]:
    yield from (name for name in _TEXTS if not isinstance(message.get(name, ""), str | None))
    images, calls = message.get("images") or (), message.get("tool_calls") or ()
    if not isinstance(images, list | tuple) or not all(map(_is_base64, images)):
        yield "images"
    if not isinstance(calls, list | tuple) or not all(map(_is_call, calls)):
        yield "tool_calls"


def _is_base64(image: Any) -> bool:
    try:
        return isinstance(image, str) and bool(base64.b64decode(image, validate=True))
    except binascii.Error:
        return False


def _is_call(call: Any) -> bool:
    function = call.get("function") if isinstance(call, dict) else None
    return (
        call.keys() <= {"function", "id"} and isinstance(function, dict) and isinstance(function.get("arguments"), dict)
    )


def _as_chat(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return messages in the shape of chat completions; the n-th result behind an answer is that of its n-th call."""
    rows: list[dict[str, Any]] = []
    made, results = 0, 0
    for at, message in enumerate(messages):
        content: Any = message.get("content") or ""
        if message.get("images"):
            content = [{"type": "text", "text": content}] if content else []
            content += [{"type": "image_url", "image_url": {"url": "data:,"}} for _ in message["images"]]
        row: dict[str, Any] = {"role": message.get("role"), "content": content}
        if calls := message.get("tool_calls"):
            made, results = at, 0
            row["tool_calls"] = [
                {
                    "id": f"{at}.{n}",
                    "function": {
                        "name": call["function"].get("name"),
                        "arguments": orjson.dumps(call["function"]["arguments"]).decode(),
                    },
                }
                for n, call in enumerate(calls)
            ]
        if row["role"] == "tool":
            row["tool_call_id"], results = f"{made}.{results}", results + 1
        rows.append(row)
    return rows


def weigh(body: Mapping[str, Any]) -> int:
    """Count everything of a request that a model reads."""
    messages = [message for message in body.get("messages") or () if isinstance(message, dict)]
    wrong = any(any(True for _ in _wrong_types(message)) for message in messages)
    return weight.prompt_tokens({"messages": [] if wrong else _as_chat(messages), "tools": body.get("tools")})


def error(status: int, message: str) -> Raw:
    """Return an error: one text."""
    return Raw(status, (orjson.dumps({"error": message}),))


def refused_stream(_: Mapping[str, Any], refusal: bytes) -> Raw:
    """Return a stream whose first line is the refusal."""
    return Raw(200, (refusal + b"\n",), {"content-type": LINES})


def complete(reply: Completion, body: Mapping[str, Any], prompt_tokens: int) -> Raw:
    """Turn a reply to a request into bytes, as one body or as lines."""
    head = {"model": body.get("model"), "created_at": CREATED}
    usage = reply.usage or {}
    counted = {
        "prompt_eval_count": usage.get("prompt_tokens", prompt_tokens),
        "eval_count": usage.get("completion_tokens", weight.text_tokens(reply.text) + 8 * len(reply.tool_calls)),
    }
    ending = {
        "done": True,
        "done_reason": reply.finish_reason or "stop",
        "total_duration": 1,
        **{name: number for name, number in counted.items() if number},  # a count of 0 is left out
    }
    calls = [
        {
            "function": {
                "name": call["function"]["name"],
                "arguments": orjson.loads(call["function"]["arguments"]),
            }
        }
        for call in reply.tool_calls
    ]
    more = {"tool_calls": calls} if calls else {}
    if not streams(body):
        whole = {**head, "message": {"role": "assistant", "content": reply.text, **more}, **ending}
        return Raw(200, (orjson.dumps(whole),), {"content-type": JSON, **reply.headers}, reply.pace)
    width = -(-len(reply.text) // max(1, reply.pieces)) or 1
    texts = [reply.text[start : start + width] for start in range(0, len(reply.text), width)]
    said: list[dict[str, Any]] = [{"role": "assistant", "content": text} for text in texts]
    said += [{"role": "assistant", "content": "", **more}] if more else []
    lines = [{**head, "message": each, "done": False} for each in said]
    lines.append({**head, "message": {"role": "assistant", "content": ""}, **ending})
    chunks = tuple(orjson.dumps(line) + b"\n" for line in lines)
    return Raw(200, chunks, {"content-type": LINES, **reply.headers}, reply.pace)
