"""Write edits into a body of Ollama's own chat API: an unchanged message keeps its bytes, a changed one its other members."""

from collections.abc import Mapping
from typing import Any

import orjson

from gateway.wire.format import Edits
from gateway.wire.message import Message, dumps, media_parts, text_of
from gateway.wire.ollama_reading import OllamaRequest, call_rows
from gateway.wire.raw_json import array, members
from gateway.wire.splice import splice
from gateway.wire.views import changed_arguments, origin_of


def encode(request: OllamaRequest, edits: Edits) -> bytes:
    """Write edits into a body; unchanged parts keep their bytes."""
    changes: dict[str, Any] = {}
    if edits.model is not None and edits.model != request.model:
        changes["model"] = edits.model
    if edits.output is not None and any(limit > edits.output for limit in request.output_limits):
        changes["options"] = orjson.Fragment(splice(request.options, {"num_predict": edits.output}))
    messages = edits.messages or request.views
    if not request.is_unchanged(messages):
        changes["messages"] = array(_row(request, message) for message in messages)
    changes |= {name: value for name, value in edits.added.items() if name not in request.head}
    return splice(request.raw, changes) if changes else request.raw


def _row(request: OllamaRequest, message: Message) -> bytes:
    """Return the bytes of a message to send."""
    number = origin_of(message)
    if number is None:
        return dumps({"role": message.get("role"), "content": text_of(message)})
    row, before = request.body_messages[number], request.views[number]
    changes = {} if message is before else _changes(row.raw, row.value, before, message)
    return splice(row.raw, changes) if changes else row.raw


def _changes(raw: bytes, given: Mapping[str, Any], before: Message, message: Message) -> dict[str, Any]:
    """Return the members of a message that differ from its view."""
    changes: dict[str, Any] = {}
    if message.get("content") is not before.get("content"):
        text, images = text_of(message), [part["source"]["data"] for part in media_parts(message)]
        if text != (given.get("content") or ""):
            changes["content"] = text
        if len(images) < len(given.get("images") or ()):
            changes["images"] = images
    if "reasoning" in before and message.get("reasoning") != before["reasoning"]:
        changes["thinking"] = message.get("reasoning", "")
    if arguments := changed_arguments(before, message):
        changes["tool_calls"] = array(_call(call, arguments.get(n)) for n, call in enumerate(call_rows(raw)))
    return changes


def _call(raw: bytes, arguments: str | None) -> bytes:
    """Return the bytes of a call with other arguments, which are an object here."""
    if arguments is None:
        return raw
    function = splice((members(raw) or {})["function"], {"arguments": orjson.Fragment(arguments.encode())})
    return splice(raw, {"function": orjson.Fragment(function)})
