"""Write edits into a body of the OpenAI Responses format. An unchanged item keeps its bytes, its id and its status."""

from collections.abc import Iterator, Sequence
from typing import Any

from gateway.wire import hosted
from gateway.wire.format import Edits
from gateway.wire.message import Message, dumps, tool_calls
from gateway.wire.raw_json import array
from gateway.wire.responses_reading import (
    SHELL_TEXTS,
    TEXT_OUTPUTS,
    ItemOrigin,
    ResponsesRequest,
    call_of,
    item_type,
    shell_chunks,
)
from gateway.wire.splice import REMOVED_RESULT, splice, without_result
from gateway.wire.views import Opaque, Piece, changed_arguments, origin_of, texts_in


def encode(request: ResponsesRequest, edits: Edits) -> bytes:
    """Write edits into a body; unchanged parts keep their bytes."""
    changes: dict[str, Any] = {}
    if edits.model is not None and edits.model != request.model:
        changes["model"] = edits.model
    if edits.output is not None and any(limit > edits.output for limit in request.output_limits):
        changes["max_output_tokens"] = edits.output
    if edits.messages is not None and not request.is_unchanged(edits.messages):
        changes |= _rewritten(request, edits.messages)
    changes |= {name: value for name, value in edits.added.items() if name not in request.head}
    return splice(request.raw, changes) if changes else request.raw


def _rewritten(request: ResponsesRequest, messages: Sequence[Message]) -> dict[str, Any]:
    """Return the changed members: the items to send and, if they changed, ``instructions``."""
    changes: dict[str, Any] = {}
    rows: list[bytes] = []
    dropped_results = _dropped_results(request, messages)
    for message in messages:
        number = origin_of(message)
        while number is not None and dropped_results and dropped_results[0] < number:
            rows.append(_result_without_text(request, dropped_results.pop(0)))
        if number is None or number >= len(request.views):
            rows.append(_new(message))
            continue
        origin, before = request.origins[number], request.views[number]
        if origin.member == "instructions":
            if message is not before:
                changes["instructions"] = "\n\n".join(part["text"] for part in texts_in(message["content"], "text"))
        elif origin.member:
            rows.append(_new(message))
        elif message is before:
            rows += [request.items[at].raw for at in origin.items]
        else:
            rows += _changed(request, origin, before, message)
    return {**changes, "input": array(rows)}


def _dropped_results(request: ResponsesRequest, messages: Sequence[Message]) -> list[int]:
    """Return the views, by number, of left-out results whose calls only the server has. The server refuses a call without a
    result, so these are sent without their texts."""
    if not request.refers_elsewhere:
        return []
    kept = set(map(origin_of, messages))
    calls = {call.get("id") for message in request.views for call in tool_calls(message)}
    return [
        number
        for number, message in enumerate(request.views)
        if message["role"] == "tool" and number not in kept and message["tool_call_id"] not in calls
    ]


def _result_without_text(request: ResponsesRequest, number: int) -> bytes:
    """Return a result as `without_result` does. A result that cannot be a text is unchanged."""
    item = request.items[request.origins[number].items[0]]
    if chunks := shell_chunks(item.value):
        shorter = [{**chunks[-1], **dict.fromkeys(SHELL_TEXTS, ""), SHELL_TEXTS[0]: REMOVED_RESULT}]
        return min(item.raw, splice(item.raw, {"output": shorter}), key=len)
    return without_result(item.raw, "output") if item.type in TEXT_OUTPUTS else item.raw


def _new(message: Message) -> bytes:
    """Return the item of a new message."""
    role = str(message.get("role"))
    kind = "output_text" if role == "assistant" else "input_text"
    return dumps({"type": "message", "role": role, "content": texts_in(message.get("content"), kind)})


def _changed(request: ResponsesRequest, origin: ItemOrigin, before: Message, message: Message) -> Iterator[bytes]:
    """Return the items of a changed view; unchanged parts keep their bytes."""
    calls = [at for at in origin.items if call_of(request.items[at].value)]
    arguments = {calls[number]: text for number, text in changed_arguments(before, message).items()}
    for at in origin.items:
        item = request.items[at]
        kind = str(item_type(item.value))
        if kind == "message":
            yield _message(item, message)
        elif kind in hosted.ITEMS:
            yield hosted.with_texts(item.raw, before, message)
        elif message.get("role") == "tool":
            yield splice(item.raw, {"output": _printed(item, message) or _content(message, "input_text")})
        elif at in arguments:
            yield splice(item.raw, {"arguments": arguments[at]})
        else:
            yield item.raw


def _printed(item: Piece, message: Message) -> list[dict[str, Any]]:
    """Return the chunks of a shell's output with their changed texts; nothing for any other item."""
    chunks = [dict(chunk) for chunk in shell_chunks(item.value)]
    for part in message["content"] if chunks else ():
        if type(part) is not Opaque:
            chunks[part["chunk"]][part["type"]] = part["text"]
    return chunks


def _message(item: Piece, message: Message) -> bytes:
    content = _content(message, "output_text" if item.value.get("role") == "assistant" else "input_text")
    return splice(item.raw, {"content": content}) if content and content != item.value.get("content") else item.raw


def _content(message: Message, kind: str) -> Any:
    """Return the content of a changed view, without the parts that belong to other items."""
    content = message.get("content")
    if not isinstance(content, list):
        return content
    return texts_in([part for part in content if type(part) is not Opaque], kind)
