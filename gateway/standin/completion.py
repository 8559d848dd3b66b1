"""Write OpenAI's answers: a chat completion as one body or as events, and an error."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from gateway.standin.answers import EVENTS, JSON, Completion, Raw
from gateway.standin.weight import text_tokens


def error(status: int, message: str, *, code: str | None = None, param: str | None = None) -> Raw:
    """Return an error in OpenAI's shape."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return Raw(status, (orjson.dumps({"error": {"message": message, "type": kind, "param": param, "code": code}}),))


def complete(reply: Completion, body: Mapping[str, Any], prompt_tokens: int) -> Raw:
    """Turn a reply to a request into bytes, as one body or as events."""
    written = text_tokens(reply.text) + len(reply.tool_calls) * 8
    counted = {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": written,
        "total_tokens": prompt_tokens + written,
        "prompt_tokens_details": {"cached_tokens": 0},
    }
    usage = counted if reply.usage is None else reply.usage
    head = {"id": "chatcmpl-standin", "created": int(time.time()), "model": body.get("model") or "stand-in"}
    finish = reply.finish_reason or ("tool_calls" if reply.tool_calls else "stop")
    if body.get("stream") is True:
        options = body.get("stream_options")
        asked = isinstance(options, dict) and options.get("include_usage") is True
        events = [
            {**head, "object": "chat.completion.chunk", **part}
            for part in _stream(reply, finish, usage if asked else None)
        ]
        chunks = (*(b"data: " + orjson.dumps(event) + b"\n\n" for event in events), b"data: [DONE]\n\n")
        return Raw(200, chunks, {"content-type": EVENTS, **reply.headers}, reply.pace)
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.tool_calls:
        message["tool_calls"] = list(reply.tool_calls)
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    whole = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
    return Raw(200, (orjson.dumps(whole),), {"content-type": JSON, **reply.headers}, reply.pace)


def _stream(reply: Completion, finish: str, usage: Mapping[str, Any] | None) -> Iterator[Mapping[str, Any]]:
    """Return the events of a streamed reply, without their common members."""

    def event(delta: Mapping[str, Any], reason: str | None = None) -> Mapping[str, Any]:
        return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    yield event({"role": "assistant", "content": ""})
    width = -(-len(reply.text) // max(1, reply.pieces)) or 1
    for start in range(0, len(reply.text), width):
        yield event({"content": reply.text[start : start + width]})
    for index, call in enumerate(reply.tool_calls):
        arguments = call["function"]["arguments"]
        opening = {"index": index, **call, "function": {**call["function"], "arguments": ""}}
        yield event({"tool_calls": [opening]})
        for part in (arguments[: len(arguments) // 2], arguments[len(arguments) // 2 :]):
            yield event({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
    yield event({}, finish)
    if usage is not None:
        yield {"choices": [], "usage": usage}
