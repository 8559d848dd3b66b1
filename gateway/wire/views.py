"""Views: items of another format in the shape of a chat-completions message, each with its origin.

A view carries its number under `ORIGIN`. The core's edits copy that member (``{**message, ...}``), so a changed message
still identifies its original item. Parts that the core must not cut or rewrite are `Opaque`: they stay whole or are
dropped with their message.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import ceil
from operator import is_
from typing import Any, Final

import msgspec
import orjson

from gateway.wire import piecewise
from gateway.wire.derived import Interned
from gateway.wire.format import Format
from gateway.wire.memory import Memory
from gateway.wire.message import CACHE_CONTROL, Message, opening_of
from gateway.wire.raw_json import rows

ORIGIN: Final = "turnfold.view"
"""The member of a view with its number in the conversation."""

ENCRYPTED_BYTES_PER_TOKEN: Final = 5.4
"""Bytes of base64 per token of encrypted text: four letters per token, four bytes of base64 for three of text."""


IMAGE_TOKENS: Final = 1600
"""Tokens of an image in an item that is not shown as media, at most: https://platform.openai.com/docs/guides/images-vision"""
BASE64_BYTES_PER_DOCUMENT_TOKEN: Final = 32
"""Bytes of base64 per token of a document that is not read: as `gateway.context.count.media` estimates it, 50,000 bytes a page."""


class Opaque(dict[str, Any]):
    """A content part that is neither cut nor rewritten; its readable texts are counted."""

    __slots__ = ("extra_tokens", "is_in_body")

    def __init__(self, part: Mapping[str, Any], *, extra_tokens: int = 0, is_in_body: bool = True) -> None:
        super().__init__(part)
        self.extra_tokens = extra_tokens
        """Tokens besides those of its texts: encrypted text, or an image."""
        self.is_in_body = is_in_body
        """Whether all of it is in the body, so that the body's size bounds its tokens."""


class Piece(msgspec.Struct, frozen=True):
    """One item or content block: its bytes and its values."""

    raw: bytes
    value: dict[str, Any]

    @property
    def type(self) -> str:
        kind = self.value.get("type")
        return kind if isinstance(kind, str) else ""


class ViewedRequest(msgspec.Struct, frozen=True, kw_only=True, eq=False, dict=True):  # cached properties need a dict
    """A body of a format whose items are presented as views. Each format adds its items and the origins of the views."""

    format: Format
    raw: bytes
    head: Mapping[str, Any]
    """The members besides the items."""
    views: tuple[Message, ...]
    translated_head: Mapping[str, Any]
    """The members besides the items with their chat-completions names; tools and schema in chat-completions form."""
    memory: Memory
    rewritten: bool = False

    @property
    def model(self) -> str:
        model = self.head.get("model")
        return model if isinstance(model, str) else ""

    @property
    def stream(self) -> bool:
        return self.head.get("stream") is True

    @property
    def asked_window(self) -> int | None:
        return None

    @property
    def may_call_in_parallel(self) -> bool:
        return True

    @property
    def opening(self) -> str:
        return opening_of(self.views)

    @property
    def outline(self) -> tuple[Message, ...]:
        return self.views

    @property
    def messages(self) -> tuple[Message, ...]:
        return self.views

    @cached_property
    def body(self) -> Mapping[str, Any]:
        return {**self.translated_head, "messages": list(self.views)}

    def output_limits_named(self, name: str) -> tuple[int, ...]:
        """Return the output limit in a member, in tokens; nothing when it is missing or not a whole number."""
        limit = self.head.get(name)
        return (limit,) if isinstance(limit, int) and not isinstance(limit, bool) else ()

    def is_unchanged(self, messages: Sequence[Message]) -> bool:
        """Return whether these messages are all views of this body, in order and unchanged."""
        return len(messages) == len(self.views) and all(map(is_, messages, self.views))


def pieces(raw: bytes) -> list[Piece] | None:
    """Return the objects of a JSON array; None when it is not an array of objects."""
    values = rows(raw)
    if values is None:
        return None
    try:
        found = [Piece(row, piecewise.loads(row)) for row in values]
    except orjson.JSONDecodeError:
        return None
    return found if all(type(piece.value) is dict for piece in found) else None


def view(number: int, message: Mapping[str, Any]) -> Message:
    """Return a message as the view with a number."""
    return Interned({ORIGIN: number, **message})


def origin_of(message: Message) -> int | None:
    """Return the number of a message's original view; None for a new message."""
    number = message.get(ORIGIN)
    return number if isinstance(number, int) else None


_ENCRYPTED: Final = frozenset({"encrypted_content", "encrypted_index", "signature", "data"})
_DEEPEST: Final = 16
"""Levels of nested content that are read. Chosen: real content has up to three."""


def opaque(value: Mapping[str, Any], *, is_in_body: bool = True) -> Opaque:
    """Return a block as a part that is never cut: its texts are counted, encrypted content by its length."""
    readable = {name: inner for name, inner in value.items() if name not in ("text", CACHE_CONTROL)}
    if isinstance(value.get("text"), str):
        readable["said"] = value["text"]  # under the name "text" it would be cut like any text
    plain, extra = _readable(readable, 0)
    return Opaque(plain, extra_tokens=extra, is_in_body=is_in_body)


def _readable(value: Any, depth: int) -> tuple[Any, int]:
    """Return a value without its encrypted content, and the tokens of that content."""
    if depth > _DEEPEST:
        return value, 0
    if isinstance(value, list):
        found = [_readable(inner, depth + 1) for inner in value]
        return [inner for inner, _ in found], sum(extra for _, extra in found)
    if isinstance(value, str) and value.startswith("data:image/"):
        return "", IMAGE_TOKENS
    if not isinstance(value, dict):
        return value, 0
    if isinstance(value.get("media_type"), str) and isinstance(value.get("data"), str):
        return _source(value["media_type"], value["data"])
    secret = {name for name in value.keys() & _ENCRYPTED if isinstance(value[name], str)}
    extra = sum(ceil(len(value[name]) / ENCRYPTED_BYTES_PER_TOKEN) for name in secret - {"signature"})
    inside = {name: _readable(inner, depth + 1) for name, inner in value.items() if name not in secret}
    return {name: inner for name, (inner, _) in inside.items()}, extra + sum(more for _, more in inside.values())


def _source(kind: str, data: str) -> tuple[Any, int]:
    """Return the readable text of an image or a document, and the tokens of the rest."""
    if kind.startswith("text/"):
        return {"said": data}, 0
    return {}, IMAGE_TOKENS if kind.startswith("image/") else ceil(len(data) / BASE64_BYTES_PER_DOCUMENT_TOKEN)


def texts_in(content: Any, kind: str) -> list[dict[str, Any]]:
    """Return a message's content as parts; texts get the format's name for a text, parts of the format stay unchanged."""
    if isinstance(content, str):
        return [{"type": kind, "text": content}] if content else []
    parts = content if isinstance(content, Sequence) else ()
    renamed = kind != "text"
    return [
        {**part, "type": kind} if renamed and part.get("type") == "text" else part
        for part in parts
        if isinstance(part, dict)
    ]


def changed_arguments(before: Message, after: Message) -> dict[int, str]:
    """Return the new arguments of the calls whose arguments were cut, by the position of the call: ids may be missing or
    equal."""
    original = [call["function"]["arguments"] if "function" in call else None for call in before.get("tool_calls", ())]
    sent = [call["function"]["arguments"] if "function" in call else None for call in after.get("tool_calls", ())]
    pairs = enumerate(zip(original, sent, strict=True))
    return {number: new for number, (old, new) in pairs if new is not None and new != old}


class _Event(msgspec.Struct):
    type: Any = None


_event: Final = msgspec.json.Decoder(_Event).decode


def event_type(data: bytes) -> str:
    """Return the ``type`` of a stream event; empty without one."""
    try:
        kind = _event(data).type
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""
    return kind if isinstance(kind, str) else ""
