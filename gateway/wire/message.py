"""The core's message: a chat-completions mapping for every wire format, and functions that read it.

It has ``role``, ``content`` as a string or a list of parts, ``tool_calls``, ``tool_call_id``, ``reasoning_content`` and
so on. Other wire formats present views in this shape (`gateway.wire.format`), so counting, cutting and quoting know
only one shape.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import orjson

from gateway.wire import piecewise

MOST_WRITTEN_LEVELS: Final = 253
"""Levels of lists and objects inside the outermost one that orjson writes."""
Message = Mapping[str, Any]
"""One message of the request. It is never changed: a smaller form is a new message."""

CONTINUES: Final = "turnfold.continues"
"""A member of a message that must be sent with an earlier one: the number of messages from that one to this. The earlier message has
the call of a server's tool; this one has the tool's result, or calls that the tool itself made."""

LATE: Final = "turnfold.late"
"""A member of a result that may come any time after its call, with user messages between them: the call was made as an asynchronous one."""

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
"""Types of content parts with media, and their names for readers."""


def text_of(message: Message) -> str:
    """Return the text of a message's content, its text parts joined by newlines; empty without one."""
    content = message.get("content")
    return content if isinstance(content, str) else "\n".join(texts(content))


OPENING_CHARACTERS: Final = 10_000
"""Characters of the first user message from which a conversation gets its name. The name is made on the event loop, and
the message may be a pasted book."""


def opening_of(messages: Iterable[Message]) -> str:
    """Return the beginning of the first user message. It stays the same while a conversation grows."""
    for message in messages:
        if message.get("role") == "user":
            return opening_in(message.get("content"))
    return ""


def opening_in(content: Any) -> str:
    """Return the first `OPENING_CHARACTERS` characters of a content's text."""
    if isinstance(content, str):  # the usual case
        return content[:OPENING_CHARACTERS]
    found: list[str] = []
    missing = OPENING_CHARACTERS
    for text in texts(content):
        found.append(text[:missing])
        missing -= len(text) + 1
        if missing <= 0:
            break
    return "\n".join(found)[:OPENING_CHARACTERS]


def texts(content: Any) -> Iterator[str]:
    """Yield each text in a content value: a string, or a list of parts (tool results may nest lists of parts)."""
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


def media_kind(part: Any) -> str:
    """Return the kind of media in a content part: ``image``, ``audio``, ``video`` or ``file``; empty for any other value."""
    kind = part.get("type") if isinstance(part, Mapping) else None
    return MEDIA_TYPES.get(kind, "") if isinstance(kind, str) else ""


def media_parts(message: Message) -> Iterator[Mapping[str, Any]]:
    """Return the content parts of a message with images, audio, video or files."""
    content = message.get("content")
    if isinstance(content, list):
        yield from filter(media_kind, content)


def tool_calls(message: Message) -> list[Mapping[str, Any]]:
    """Return the well-formed tool calls of an assistant message, the legacy ``function_call`` last (it has no id)."""
    found: list[Mapping[str, Any]] = []
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        found += [call for call in calls if isinstance(call, dict)]
    legacy = message.get("function_call")
    if isinstance(legacy, dict):
        found.append({"type": "function", "function": legacy})
    return found


def call_name(call: Mapping[str, Any]) -> str:
    """Return the name in a tool call; empty without one."""
    function = call.get("function") or call.get("custom")
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) else ""


def call_arguments(call: Mapping[str, Any]) -> str:
    """Return the arguments of a tool call as JSON text."""
    function = call.get("function") or call.get("custom")
    if not isinstance(function, dict):
        return ""
    arguments = function.get("arguments", function.get("input"))
    return arguments if isinstance(arguments, str) else "" if arguments is None else dumps(arguments).decode()


def dumps(value: Any) -> bytes:
    """Return compact JSON in UTF-8, as clients send it. Raises TypeError for a text that UTF-8 cannot hold."""
    try:
        return orjson.dumps(value)
    except TypeError:  # orjson reads JSON four times deeper than it writes it
        return b"".join(_deep_pieces(value))


def _deep_pieces(value: Any) -> Iterator[bytes]:
    """Yield the JSON of a value of any depth. It is written without recursion."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, bytes):
            yield each
        elif isinstance(each, dict):
            yield b"{"
            waiting.append(b"}")
            members = [(b"," if number else b"", name, inner) for number, (name, inner) in enumerate(each.items())]
            for comma, name, inner in reversed(members):
                waiting += [inner, b"%b%b:" % (comma, orjson.dumps(name))]
        elif isinstance(each, list):
            yield b"["
            waiting.append(b"]")
            for number in range(len(each) - 1, -1, -1):
                waiting += [each[number], b"," if number else b""]
        else:
            yield orjson.dumps(each)


CACHE_CONTROL: Final = "cache_control"
"""Anthropic's cache mark, which other APIs take as well. Clients move it along with the newest message; it is not part of its meaning.
https://platform.claude.com/docs/en/build-with-claude/prompt-caching"""


def canonical(message: Message) -> bytes:
    """Return one message as bytes that are equal for messages of equal meaning (case 70).

    Keys are sorted, a list of plain text parts is joined to a string, an absent or null content is left out, and JSON
    in tool arguments is normalised. Used for identity and caching, never sent.
    """
    return orjson.dumps(_normalised(message), option=orjson.OPT_SORT_KEYS)


def canonical_pieces(message: Message) -> Iterator[bytes]:
    """Yield the bytes of `canonical` in pieces of at most some hundred kilobytes: writing a text of 30 MB at once takes 45 ms.
    Raises TypeError if the message is nested too deep."""
    return _json_pieces(_normalised(message), 0)


def _json_pieces(value: Any, depth: int) -> Iterator[bytes]:
    if isinstance(value, str) and len(value) > piecewise.PIECE_BYTES:
        yield b'"'
        for start in range(0, len(value), piecewise.PIECE_BYTES):
            yield orjson.dumps(value[start : start + piecewise.PIECE_BYTES])[1:-1]
        yield b'"'
    elif isinstance(value, (dict, list)) and depth > MOST_WRITTEN_LEVELS:
        raise TypeError("nested deeper than orjson writes")
    elif isinstance(value, dict):
        for number, name in enumerate(sorted(value)):
            yield b"%b%b:" % (b"," if number else b"{", orjson.dumps(name))
            yield from _json_pieces(value[name], depth + 1)
        yield b"}" if value else b"{}"
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield b"," if number else b"["
            yield from _json_pieces(inner, depth + 1)
        yield b"]" if value else b"[]"
    else:
        yield orjson.dumps(value)


def _normalised(message: Message) -> dict[str, Any]:
    """Return a message with values that are equal for messages of equal meaning."""
    plain = dict(message)
    content = plain.get("content")
    if content is None:
        plain.pop("content", None)
    elif isinstance(content, list) and content and all(_plain_text(part) for part in content):
        plain["content"] = "\n".join(part["text"] for part in content)
    elif isinstance(content, list):
        plain["content"] = [_without_mark(part) for part in content]
    calls = plain.get("tool_calls")
    if isinstance(calls, list) and calls:
        plain["tool_calls"] = [_canonical_call(call) for call in calls]
    return plain


def _plain_text(part: Any) -> bool:
    return (
        isinstance(part, dict) and part.keys() - {CACHE_CONTROL} == {"type", "text"} and isinstance(part["text"], str)
    )


def _without_mark(part: Any) -> Any:
    return {key: value for key, value in part.items() if key != CACHE_CONTROL} if isinstance(part, dict) else part


def _canonical_call(call: Any) -> Any:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("arguments"), str):
        return call
    try:
        arguments = piecewise.loads_text(function["arguments"])
    except orjson.JSONDecodeError:
        return call
    return {**call, "function": {**function, "arguments": arguments}}


def media_kinds(messages: Iterable[Message]) -> list[str]:
    """Return the kinds of media in the messages, in order: ``["image", "image", "audio"]``."""
    return [media_kind(part) for message in messages for part in media_parts(message)]
