"""The core's message: a chat-completions mapping, whatever format it came in, and the functions that read one.

``role``, ``content`` as a string or a list of parts, ``tool_calls``, ``tool_call_id``, ``reasoning_content`` and so on. Other wire formats present
views in this shape (`gateway.wire.format`), so that counting, cutting and quoting know one shape only.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import orjson

Message = Mapping[str, Any]
"""One message as it stands in the request. Never mutated: whoever improves one builds a new one."""

PINNED_ROLES: Final = frozenset({"system", "developer"})
RESULT_ROLES: Final = frozenset({"tool", "function"})

MEDIA_TYPES: Final = {
    "image_url": "image",
    "input_image": "image",
    "image": "image",
    "input_audio": "audio",
    "audio_url": "audio",
    "video_url": "video",
    "input_video": "video",
    "file": "file",
    "input_file": "file",
    "document": "file",
    "document_url": "file",
}
"""Content-part types that carry media, and what a reader would call them."""


def text_of(message: Message) -> str:
    """The text of a message's content, its text parts joined by newlines; empty when there is none."""
    return "\n".join(texts(message.get("content")))


def texts(content: Any) -> Iterator[str]:
    """Each text in a content value: a string, or a list of parts (tool results may nest lists of parts)."""
    if isinstance(content, str):
        if content:
            yield content
    elif isinstance(content, list):
        for part in content:
            if isinstance(part, str):
                yield part
            elif isinstance(part, dict):
                value = part.get("text", part.get("refusal"))
                if isinstance(value, str):
                    yield value
                elif isinstance(part.get("content"), (str, list)):
                    yield from texts(part["content"])


def media_parts(message: Message) -> Iterator[Mapping[str, Any]]:
    """The content parts of a message that carry images, audio, video or files."""
    content = message.get("content")
    if isinstance(content, list):
        for part in content:
            if isinstance(part, dict) and isinstance(kind := part.get("type"), str) and kind in MEDIA_TYPES:
                yield part


def tool_calls(message: Message) -> list[Mapping[str, Any]]:
    """The well-formed tool calls of an assistant message, the legacy ``function_call`` last (it has no id)."""
    found: list[Mapping[str, Any]] = []
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        found += [call for call in calls if isinstance(call, dict)]
    legacy = message.get("function_call")
    if isinstance(legacy, dict):
        found.append({"type": "function", "function": legacy})
    return found


def call_name(call: Mapping[str, Any]) -> str:
    """What a tool call calls; empty when it does not say."""
    function = call.get("function") or call.get("custom")
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) else ""


def call_arguments(call: Mapping[str, Any]) -> str:
    """The arguments of a tool call as the JSON text they travel as."""
    function = call.get("function") or call.get("custom")
    if not isinstance(function, dict):
        return ""
    arguments = function.get("arguments", function.get("input"))
    return arguments if isinstance(arguments, str) else "" if arguments is None else dumps(arguments).decode()


def dumps(value: Any) -> bytes:
    """JSON as it travels: compact, UTF-8."""
    return orjson.dumps(value)


_MARK: Final = "cache_control"
"""Clients that mark what the provider should cache move the mark along with the newest message: it is not part of what was said."""


def canonical(message: Message) -> bytes:
    """One message in a form in which equal meaning has equal bytes (case 70).

    Keys are sorted, a list of plain text parts is joined to a string, an absent or null content is left out, and JSON in tool arguments is
    normalised. Used for identity and caching, never sent.
    """
    plain = dict(message)
    content = plain.get("content")
    if content is None:
        plain.pop("content", None)
    elif isinstance(content, list) and content and all(_plain_text(part) for part in content):
        plain["content"] = "\n".join(part["text"] for part in content)
    elif isinstance(content, list):
        plain["content"] = [_unmarked(part) for part in content]
    calls = plain.get("tool_calls")
    if isinstance(calls, list) and calls:
        plain["tool_calls"] = [_canonical_call(call) for call in calls]
    return orjson.dumps(plain, option=orjson.OPT_SORT_KEYS)


def _plain_text(part: Any) -> bool:
    return isinstance(part, dict) and part.keys() - {_MARK} == {"type", "text"} and isinstance(part["text"], str)


def _unmarked(part: Any) -> Any:
    return {key: value for key, value in part.items() if key != _MARK} if isinstance(part, dict) else part


def _canonical_call(call: Any) -> Any:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("arguments"), str):
        return call
    try:
        arguments = orjson.loads(function["arguments"])
    except orjson.JSONDecodeError:
        return call
    return {**call, "function": {**function, "arguments": arguments}}


def media_kinds(messages: Iterable[Message]) -> list[str]:
    """What media the messages carry, in order: ``["image", "image", "audio"]``."""
    return [MEDIA_TYPES[part["type"]] for message in messages for part in media_parts(message)]
