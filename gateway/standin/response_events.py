"""Write answers of the Responses API: a response as one body or as events, and a failure inside a stream."""

import time
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

import orjson

from gateway.standin.answers import EVENTS, JSON, Completion, Raw
from gateway.standin.weight import text_tokens


def event(data: Mapping[str, Any]) -> bytes:
    """Return one named event."""
    return b"event: %b\ndata: %b\n\n" % (str(data["type"]).encode(), orjson.dumps(data))


def _head(body: Mapping[str, Any], status: str) -> dict[str, Any]:
    return {
        "id": "resp_standin",
        "object": "response",
        "created_at": int(time.time()),
        "model": body.get("model"),
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": body.get("tools") or [],
        "metadata": {},
        "usage": None,
    }


def opening(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the events before any content."""
    response = _head(body, "in_progress")
    return [
        {"type": kind, "sequence_number": n, "response": response}
        for n, kind in enumerate(("response.created", "response.in_progress"))
    ]


def refused_stream(body: Mapping[str, Any], refusal: bytes) -> Raw:
    """Return a stream that says "too long" after its first events, which have no content."""
    inner = orjson.loads(refusal)["error"]
    failed = {**_head(body, "failed"), "error": {"code": inner.get("code"), "message": inner["message"]}}
    events = [*opening(body), {"type": "response.failed", "sequence_number": 2, "response": failed}]
    return Raw(200, tuple(map(event, events)), {"content-type": EVENTS})


def complete(reply: Completion, body: Mapping[str, Any], prompt_tokens: int) -> Raw:
    """Turn a reply to a request into bytes, as one body or as events."""
    written = text_tokens(reply.text) + 8 * len(reply.tool_calls)
    usage = {
        "input_tokens": prompt_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": prompt_tokens + written,
        **(reply.usage or {}),
    }
    cut = reply.finish_reason == "length"
    status = "incomplete" if cut else "completed"
    whole = {**_head(body, status), "output": list(_items(reply, _key(body))), "usage": usage}
    if cut:
        whole["incomplete_details"] = {"reason": "max_output_tokens"}
    if body.get("stream") is True:
        events = [*opening(body), *_stream(reply, _key(body)), {"type": f"response.{status}", "response": whole}]
        numbered = [{**each, "sequence_number": n} for n, each in enumerate(events)]
        return Raw(200, tuple(map(event, numbered)), {"content-type": EVENTS, **reply.headers}, reply.pace)
    return Raw(200, (orjson.dumps(whole),), {"content-type": JSON, **reply.headers}, reply.pace)


def _key(body: Mapping[str, Any]) -> str:
    """Return a key that distinguishes the items of one answer from those of another."""
    return blake2b(orjson.dumps(body.get("input")), digest_size=6).hexdigest()


def _items(reply: Completion, key: str) -> Iterator[dict[str, Any]]:
    if reply.text:
        part = {"type": "output_text", "text": reply.text, "annotations": []}
        yield {"type": "message", "id": f"msg_{key}", "role": "assistant", "status": "completed", "content": [part]}
    for n, call in enumerate(reply.tool_calls):
        yield {
            "type": "function_call",
            "id": f"fc_{key}_{n}",
            "call_id": call["id"],
            "name": call["function"]["name"],
            "arguments": call["function"]["arguments"],
            "status": "completed",
        }


def _stream(reply: Completion, key: str) -> Iterator[dict[str, Any]]:
    for index, item in enumerate(_items(reply, key)):
        place = {"item_id": item["id"], "output_index": index}
        if item["type"] == "message":
            part, whole, name = item["content"][0], reply.text, "output_text"
            start = {**item, "status": "in_progress", "content": []}
            yield {"type": "response.output_item.added", "output_index": index, "item": start}
            place["content_index"] = 0
            yield {"type": "response.content_part.added", **place, "part": {**part, "text": ""}}
            ending = {"text": whole}
        else:
            whole, name = item["arguments"], "function_call_arguments"
            yield {"type": "response.output_item.added", "output_index": index, "item": {**item, "arguments": ""}}
            ending = {"arguments": whole}
        width = -(-len(whole) // max(1, reply.pieces)) or 1
        for at in range(0, len(whole), width):
            yield {"type": f"response.{name}.delta", **place, "delta": whole[at : at + width]}
        yield {"type": f"response.{name}.done", **place, **ending}
        if item["type"] == "message":
            yield {"type": "response.content_part.done", **place, "part": item["content"][0]}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
