"""Read a body of Ollama's own chat API, with the views of its messages.

Each message has one view. A call's arguments are an object on the wire and JSON text in the view. Older versions have no ids of calls, so
the views have made-up ones, by the order of calls and results. They never reach the wire.
"""

import re
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import orjson

from gateway.wire import exact_json, piecewise
from gateway.wire.format import Format
from gateway.wire.memory import Memory
from gateway.wire.message import Message, dumps
from gateway.wire.raw_json import members, readable, rows
from gateway.wire.views import Piece, ViewedRequest, pieces, view


class OllamaRequest(ViewedRequest, frozen=True, kw_only=True, eq=False):
    """A body of Ollama's chat API: its bytes, its messages, and their views."""

    body_messages: tuple[Piece, ...]
    options: bytes
    """The bytes of ``options``; empty without them."""

    @property
    def stream(self) -> bool:
        """Whether the client wants a stream: Ollama streams unless it is told not to."""
        return self.head.get("stream") is not False

    @property
    def message_count(self) -> int:
        return len(self.body_messages)

    @property
    def output_limits(self) -> tuple[int, ...]:
        """The output limit; nothing for -1 and -2, which mean none."""
        limit = self._option("num_predict")
        return (limit,) if limit is not None else ()

    @property
    def asked_window(self) -> int | None:
        """The window with which Ollama loads the model for this request."""
        return self._option("num_ctx")

    @property
    def refers_elsewhere(self) -> bool:
        return False

    @property
    def continues(self) -> bool:
        return False

    def _option(self, name: str) -> int | None:
        """Return a positive number among the options. Ollama takes ``4096.0``, too."""
        options = self.head.get("options")
        number = options.get(name) if isinstance(options, dict) else None
        if not isinstance(number, (int, float)) or isinstance(number, bool) or number < 1:
            return None
        return int(number)


def read(raw: bytes, memory: Memory, made_by: Format) -> OllamaRequest | None:
    """Read a body; return None if it is no body of this format.

    A body that Ollama refuses is none: its content is no text, or its arguments are no object. A body without messages is none either: Ollama
    loads the model and writes no text.
    """
    raw, found = readable(raw)
    listed = pieces(found["messages"]) if found and "messages" in found else None
    if not found or not listed or not all(map(_is_message, listed)):
        return None
    try:
        head = {name: piecewise.loads(value) for name, value in found.items() if name != "messages"}
    except orjson.JSONDecodeError:
        return None
    return OllamaRequest(
        format=made_by,
        raw=raw,
        head=head,
        views=_views(listed),
        translated_head=head,
        memory=memory,
        body_messages=tuple(listed),
        options=found.get("options", b""),
    )


_TEXTS: Final = ("content", "thinking", "tool_name", "tool_call_id")
"""Members of a message that are texts, or null, or missing."""


def _is_message(row: Piece) -> bool:
    """Return whether Ollama reads this as a message."""
    value = row.value
    images, calls = value.get("images"), value.get("tool_calls")
    return (
        isinstance(value.get("role"), str)
        and all(isinstance(value.get(name), str | None) for name in _TEXTS)
        and (images is None or (isinstance(images, list) and all(isinstance(image, str) for image in images)))
        and (calls is None or (isinstance(calls, list) and all(map(_is_call, calls))))
    )


def _is_call(call: Any) -> bool:
    function = call.get("function") if isinstance(call, dict) else None
    return (
        isinstance(function, dict)
        and isinstance(function.get("name"), str)
        and isinstance(function.get("arguments"), dict | None)
        and isinstance(call.get("id"), str | None)
    )


class _Waiting:
    """The calls of the last answer that made any, as far as they have no result yet. A result is found at once, however many there are."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._in_order: deque[str] = deque()
        self._by_name: dict[str, deque[str]] = {}

    def made(self, calls: Sequence[Mapping[str, Any]]) -> None:
        """Take the calls of an answer."""
        self._in_order = deque(call["id"] for call in calls)
        self._ids = set(self._in_order)
        self._by_name = {}
        for call in calls:
            self._by_name.setdefault(call["function"]["name"], deque()).append(call["id"])

    def take(self, result: Mapping[str, Any], otherwise: str) -> str:
        """Return the id of the call whose result this is: by its id, else the first one of its name, else the first; ``otherwise`` without
        one."""
        call_id = result.get("tool_call_id")
        if call_id not in self._ids:
            named = self._by_name.get(result.get("tool_name") or "", deque())
            call_id = self._first(named) or self._first(self._in_order)
        self._ids.discard(call_id or "")
        return call_id or otherwise

    def _first(self, ids: deque[str]) -> str:
        """Return the first of these calls that has no result; empty without one."""
        while ids:
            if (call_id := ids.popleft()) in self._ids:
                return call_id
        return ""


def _views(listed: Sequence[Piece]) -> tuple[Message, ...]:
    """Return the view of each message."""
    waiting = _Waiting()
    found: list[Message] = []
    for number, row in enumerate(listed):
        value, shown = row.value, {"role": row.value["role"]}
        content = _content(value)
        if content is not None:
            shown["content"] = content
        if value.get("thinking"):
            shown["reasoning"] = value["thinking"]
        if value.get("tool_calls"):
            shown["tool_calls"] = _calls(number, row)
            waiting.made(shown["tool_calls"])
        if value["role"] == "tool":
            shown["tool_call_id"] = waiting.take(value, value.get("tool_call_id") or f"result_{number}")
        found.append(view(number, shown))
    return tuple(found)


def _content(value: Mapping[str, Any]) -> Any:
    """Return the content of a view: one text, or a text and images."""
    text = value.get("content")
    if not value.get("images"):
        return text
    parts: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    return parts + [{"type": "image", "source": {"type": "base64", "data": image}} for image in value["images"]]


_LONG_NUMBER: Final = re.compile(rb"[0-9.]{17}")
"""Digits that may be a number of more precision than a float has."""


def _calls(number: int, row: Piece) -> list[dict[str, Any]]:
    """Return the calls of a message as chat completions have them. A call without an id gets one by its place, which stays the same while
    the conversation grows."""
    given = row.value["tool_calls"]
    raws = call_rows(row.raw) if _LONG_NUMBER.search(row.raw) else []
    return [
        {
            "id": call.get("id") or f"call_{number}_{n}",
            "type": "function",
            "function": {
                "name": call["function"]["name"],
                "arguments": _arguments(call["function"].get("arguments") or {}, raws[n] if raws else b""),
            },
        }
        for n, call in enumerate(given)
    ]


def _arguments(value: Mapping[str, Any], raw: bytes) -> str:
    """Return arguments as JSON text; with all digits of their numbers if the bytes of the call are given."""
    function = members((members(raw) or {}).get("function", b"")) if raw else None
    if function and "arguments" in function:
        with suppress(orjson.JSONDecodeError, UnicodeDecodeError, TypeError):
            return exact_json.dumps(exact_json.loads(function["arguments"].decode()))
    return dumps(value).decode()


def call_rows(raw: bytes) -> list[bytes]:
    """Return the bytes of each call of a message, given as its bytes."""
    return rows((members(raw) or {}).get("tool_calls", b"")) or []
