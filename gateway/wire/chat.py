"""The OpenAI chat-completions JSON that clients speak: a request body as bytes and as values, and how a message is read.

This file knows the wire format and nothing about windows, folding or upstreams. Bodies are edited by splicing: what
nobody asked to change keeps its bytes, down to ``1.50`` and duplicate spaces.
"""

import json  # noqa: TID251  # its scanner reports where a value ends, which orjson does not; used for splicing only
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

import orjson

from gateway.wire import interned
from gateway.wire.interned import Interned

T = TypeVar("T")

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


ELSEWHERE: Final = (
    "previous_response_id",
    "prompt_cache_id",
    "cached_content",
    "conversation",
    "prompt",
    "web_search_options",
    "plugins",
    "preset",
)
"""Fields by which text enters the prompt that does not stand in the body."""


class ChatRequest:
    """A chat-completions body: the bytes as they came and what they say.

    ``messages`` is empty when the body has none; ``model`` is empty when it is missing or not a string. Of a skimmed body
    (`gateway.wire.skim`) only ``head`` and ``outline`` are known at first: members beside the messages, and the messages
    whose content is more than one text. ``body`` and ``messages`` are parsed when somebody asks for them.
    """

    __slots__ = ("_skimmed", "_whole", "head", "model", "outline", "raw")

    def __init__(
        self,
        raw: bytes,
        body: Mapping[str, Any],
        model: str,
        messages: tuple[Message, ...],
        *,
        skimmed: bool = False,
    ) -> None:
        self.raw = raw
        self.head = body
        self.model = model
        self.outline = messages
        self._skimmed = skimmed
        self._whole: ChatRequest | None = None

    @property
    def body(self) -> Mapping[str, Any]:
        return self._read().head

    @property
    def messages(self) -> tuple[Message, ...]:
        return self._read().outline

    @property
    def stream(self) -> bool:
        return self.head.get("stream") is True

    def _read(self) -> "ChatRequest":
        if not self._skimmed:
            return self
        if self._whole is None:
            self._whole = parse(self.raw) or ChatRequest(self.raw, self.head, self.model, ())
        return self._whole


def parse(raw: bytes) -> ChatRequest | None:
    """Read a body, or answer None when it is not one we could decide about.

    None means: not JSON, not an object, or ``messages`` that is not a list of objects with a role. Such a body is
    forwarded as it came; the upstream's own error is the better answer (cases 1, 118).
    """
    body = interned.read(raw) if len(raw) > interned.WORTHWHILE else None
    if body is None:
        try:
            body = orjson.loads(raw)
        except orjson.JSONDecodeError:
            return None
    if not isinstance(body, dict):
        return None
    messages = body.get("messages")
    if not isinstance(messages, list) or not all(
        isinstance(message, dict) and isinstance(message.get("role"), str) for message in messages
    ):
        return None
    model = body.get("model")
    return ChatRequest(raw, body, model if isinstance(model, str) else "", tuple(messages))


def splice(raw: bytes, changes: Mapping[str, Any]) -> bytes:
    """Replace the values of top-level members, leaving every other byte of the body as it came.

    A member that is missing is added at the end; a member whose new value is ``None`` keeps its place as ``null``. When
    a key stands twice, the last one is replaced, for that is the one parsers believe. Raises ValueError when ``raw``
    is not a JSON object.
    """
    quick = _splice_first(raw, changes)
    if quick is not None:
        return quick
    text = raw.decode()
    spans = _member_spans(text)
    missing = [key for key in changes if key not in spans]
    pieces: list[str] = []
    position = 0
    for key, (start, end) in sorted(spans.items(), key=lambda item: item[1]):
        if key in changes:
            pieces += [text[position:start], orjson.dumps(changes[key]).decode()]
            position = end
    closing = text.rindex("}")
    pieces.append(text[position:closing])
    for number, key in enumerate(missing):
        comma = "," if spans or number else ""
        pieces.append(f"{comma}{orjson.dumps(key).decode()}:{orjson.dumps(changes[key]).decode()}")
    pieces.append(text[closing:])
    return "".join(pieces).encode()


def _splice_first(raw: bytes, changes: Mapping[str, Any]) -> bytes | None:
    """The common alias: ``{"model":"x",...`` with that key once in the body needs no scan."""
    if len(changes) != 1 or "model" not in changes or raw.count(b'"model"') != 1 or b"\\u00" in raw:
        return None
    head = raw[:256]
    opening = head.find(b"{")
    start = head.find(b'"model"')
    if opening < 0 or head[:opening].strip() or head[opening + 1 : start].strip():
        return None
    colon = start + 7
    value = head.find(b'"', colon)
    end = head.find(b'"', value + 1)
    if value < 0 or end < 0 or head[colon:value].strip() != b":" or b"\\" in head[value:end]:
        return None
    return raw[:value] + orjson.dumps(changes["model"]) + raw[end + 1 :]


_SCAN: Final = json.JSONDecoder(strict=False)
_SPACE: Final = " \t\r\n"


def _member_spans(text: str) -> dict[str, tuple[int, int]]:
    """Where the value of each top-level member starts and ends, in characters."""
    position = _skip_space(text, 0)
    if text[position : position + 1] != "{":
        raise ValueError("the body is not a JSON object")
    spans: dict[str, tuple[int, int]] = {}
    position = _skip_space(text, position + 1)
    while text[position : position + 1] == '"':
        key, position = _SCAN.raw_decode(text, position)
        position = _skip_space(text, position)
        if text[position : position + 1] != ":":
            raise ValueError("the body is not a JSON object")
        start = _skip_space(text, position + 1)
        _, end = _SCAN.raw_decode(text, start)
        spans[key] = (start, end)
        position = _skip_space(text, end)
        if text[position : position + 1] != ",":
            break
        position = _skip_space(text, position + 1)
    return spans


def _skip_space(text: str, position: int) -> int:
    while text[position : position + 1] and text[position] in _SPACE:
        position += 1
    return position


def memo_of(message: Message) -> dict[Any, Any]:
    """Where to write down what follows from a message alone; a fresh place for one that is not interned."""
    return message.memo if type(message) is Interned else {}


def once(message: Message, key: object, find: Callable[[Message], T]) -> T:
    """Find out what follows from a message alone, or remember it of one that is interned. What is found is never None."""
    memo = memo_of(message)
    found: T | None = memo.get(key)
    if found is None:
        found = memo[key] = find(message)
    return found


def is_interned(message: Message) -> bool:
    """Whether the message is kept with its memo, so that nothing about it need be kept elsewhere."""
    return type(message) is Interned


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
