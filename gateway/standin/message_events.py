"""Write answers of the Messages API: a message as one body or as events, and an error."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from gateway.standin.answers import EVENTS, JSON, Completion, Raw
from gateway.standin.weight import text_tokens

_STOPS: Final = {"length": "max_tokens", "stop": "end_turn", "tool_calls": "tool_use"}


def error(status: int, message: str, kind: str = "invalid_request_error") -> Raw:
    """Return an error in Anthropic's shape."""
    return Raw(status, (orjson.dumps(error_body(message, kind)),))


def error_body(message: str, kind: str = "invalid_request_error") -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_standin"}


def event(data: Mapping[str, Any]) -> bytes:
    """Return one named event."""
    return b"event: %b\ndata: %b\n\n" % (str(data["type"]).encode(), orjson.dumps(data))


def refused_stream(body: Mapping[str, Any], refusal: bytes) -> Raw:
    """Return a stream that says "too long" after its first events, which have no content."""
    message: dict[str, Any] = {
        "id": "msg_standin",
        "type": "message",
        "role": "assistant",
        "model": body.get("model"),
        "content": [],
    }
    opening = {**message, "stop_reason": None, "usage": {"input_tokens": 0, "output_tokens": 1}}
    chunks = (
        event({"type": "message_start", "message": opening}),
        event({"type": "ping"}),
        b"event: error\ndata: " + refusal + b"\n\n",
    )
    return Raw(200, chunks, {"content-type": EVENTS})


def complete(reply: Completion, body: Mapping[str, Any], prompt_tokens: int) -> Raw:
    """Turn a reply to a request into bytes, as one body or as events."""
    blocks: list[dict[str, Any]] = [{"type": "text", "text": reply.text}] if reply.text else []
    for call in reply.tool_calls:
        function = call["function"]
        given = orjson.loads(function["arguments"])
        blocks.append({"type": "tool_use", "id": call["id"], "name": function["name"], "input": given})
    finish = reply.finish_reason or ("tool_calls" if reply.tool_calls else "stop")
    written = text_tokens(reply.text) + 8 * len(reply.tool_calls)
    usage = {"input_tokens": prompt_tokens, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    usage |= {"output_tokens": written, **(reply.usage or {})}
    head = {"id": "msg_standin", "type": "message", "role": "assistant", "model": body.get("model")}
    ending = {"stop_reason": _STOPS.get(finish, finish), "stop_sequence": None}
    if body.get("stream") is True:
        opening: dict[str, Any] = {
            **head,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {**usage, "output_tokens": 1},
        }
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": opening},
            {"type": "ping"},
            *_blocks(blocks, reply.pieces),
        ]
        events += [
            {"type": "message_delta", "delta": ending, "usage": {"output_tokens": usage["output_tokens"]}},
            {"type": "message_stop"},
        ]
        return Raw(200, tuple(map(event, events)), {"content-type": EVENTS, **reply.headers}, reply.pace)
    whole = {**head, "content": blocks, **ending, "usage": usage}
    return Raw(200, (orjson.dumps(whole),), {"content-type": JSON, **reply.headers}, reply.pace)


def _blocks(blocks: list[dict[str, Any]], pieces: int) -> Iterator[dict[str, Any]]:
    for index, block in enumerate(blocks):
        text = block["type"] == "text"
        empty = {**block, "text": ""} if text else {**block, "input": {}}
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        whole = block["text"] if text else orjson.dumps(block["input"]).decode()
        width = -(-len(whole) // max(1, pieces)) or 1
        for start in range(0, len(whole), width):
            part = whole[start : start + width]
            delta = {"type": "text_delta", "text": part} if text else {"type": "input_json_delta", "partial_json": part}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
