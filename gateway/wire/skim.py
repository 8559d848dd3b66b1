"""Read as little of a chat-completions body as possible: texts are only measured, and of a conversation that has grown only what is new.

A client sends its whole conversation with every request, and appends to it. So a body usually begins as the one before it, up to the end of
its last message; comparing shows that at a hundredth of the cost of reading.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from itertools import repeat
from operator import attrgetter, is_not, itemgetter
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec
import orjson

from gateway.wire import piecewise, surrogates
from gateway.wire.facts import held_bytes
from gateway.wire.memory import LONGEST_SHARE, Memory, Recent
from gateway.wire.message import OPENING, Message, opening_in
from gateway.wire.piecewise import LONGEST_ESCAPE

OUTPUT_FIELDS: Final = ("max_completion_tokens", "max_tokens", "max_output_tokens")

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
"""Members that add text to the prompt from outside the body."""
HEAD: Final = ("model", "stream", *OUTPUT_FIELDS, "tools", "prompt_cache_key", "session_id", *ELSEWHERE)
"""The members that are read besides the messages."""
BEGINNING: Final = 2**14
"""Bytes by which the body before is found. Chosen: shorter bodies are parsed."""
BODIES_SHARE: Final = 1 / 2
"""Share of the memory's budget for whole bodies: the rest is left for what folds need."""
_NAME: Final = (b'"messages"', rb"\u006", rb"\u007")
"""What stands in a body that names its messages: the name, or an escape of one of its letters, which no library writes."""
_OPENED: Final = b'{"messages":['
"""What is put in front of messages that are read without those before."""
_ONE_MORE: Final = b',{"role":""}]}'
"""What is appended to learn whether the list that goes on there is that of the messages."""
_ABSENT: Final = msgspec.Raw(b"null")


class _Message(msgspec.Struct, gc=False):
    """The members of a message that a skim reads."""

    role: str
    content: msgspec.Raw = _ABSENT
    audio: msgspec.Raw = _ABSENT
    tool_calls: msgspec.Raw = _ABSENT


class Skimmed(msgspec.Struct, frozen=True):
    """What was read of a body."""

    head: Mapping[str, Any]
    outline: tuple[Message, ...]
    """The messages whose content is more than one text, without their texts."""
    message_count: int
    opening: str | None
    """How the first user message begins; None without one, or where it cannot be read."""
    may_call_tools: bool


class Seen(NamedTuple):
    """A body and what was read of it."""

    raw: bytes
    found: Skimmed
    checked: int = 0
    """Bytes up to the end of some message, which is known to be one of the list; 0 when none is."""
    before: int = 0
    """Messages up to there."""
    front: Mapping[str, Any] = MappingProxyType({})
    """What was read in front of the messages; known where a message is."""
    outline_bytes: int = 0
    """Bytes that the outline takes."""
    size: int = 0
    """Bytes that the body takes with what was read of it: many small values take thirty times their text."""


def skimmed(raw: bytes, memory: Memory) -> Skimmed | None:
    """Return what a skim reads of a body; None when it cannot be decided about."""
    bodies = memory.part(skimmed, partial(_bodies, memory))
    last = bodies.recall(raw[:BEGINNING])
    if last is not None and last.raw == raw:
        return last.found
    seen = _grown(raw, last) if last is not None else None
    if seen is None:
        found = _read(raw)
        if found is None:
            return None
        seen = Seen(raw, found)
    if len(raw) <= memory.budget * LONGEST_SHARE:
        seen = _weighed(seen, last if seen.checked else None)
        if seen.size <= memory.budget * LONGEST_SHARE:
            bodies.keep(raw[:BEGINNING], seen)
    return seen.found


def _weighed(seen: Seen, last: Seen | None) -> Seen:
    """Return what was seen with its size. ``last`` is what it was read on from."""
    known, before = (last.outline_bytes, len(last.found.outline)) if last is not None else (0, 0)
    outline_bytes = known + held_bytes(seen.found.outline[before:])
    size = len(seen.raw) + outline_bytes + held_bytes(seen.found.head.values())
    return seen._replace(outline_bytes=outline_bytes, size=size)


def _bodies(memory: Memory) -> Recent[bytes, Seen]:
    return Recent(memory, lambda beginning, seen: len(beginning) + seen.size, BODIES_SHARE)


_content: Final = attrgetter("content")
_audio: Final = attrgetter("audio")
_tool_calls: Final = attrgetter("tool_calls")
_first_byte: Final = itemgetter(0)
_view: Final[Callable[[msgspec.Raw], "memoryview[int]"]] = memoryview
_QUOTE: Final = ord('"')
_TEXT_OR_NULL: Final = frozenset(b'"n')
_Body: Final = msgspec.defstruct(
    "_Body", [("messages", list[_Message]), *((name, Any, msgspec.UNSET) for name in HEAD)]
)
_body: Final = msgspec.json.Decoder(_Body).decode
value_of: Final = msgspec.json.Decoder().decode
"""Return the value of some JSON. Raises MsgspecError, or UnicodeDecodeError for bytes that are no text."""


def _read(raw: bytes, *, opening: bool = True) -> Skimmed | None:
    """Read a body, without its ``opening`` where that is known already or not wanted."""
    try:
        body: Any = _body(raw)
        outline = tuple(map(_outline, _rich(body.messages)))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    messages: list[_Message] = body.messages
    first = next((message.content for message in messages if message.role == "user"), None) if opening else None
    return Skimmed(
        {name: value for name in HEAD if (value := getattr(body, name)) is not msgspec.UNSET},
        outline,
        len(messages),
        _opening(first) if first is not None else None,
        _any_has(_tool_calls, messages),
    )


def _opening(content: msgspec.Raw) -> str | None:
    """Return how a text begins. A client may have cut it in the middle of an emoji."""
    view = memoryview(content)
    try:
        if view[0] != _QUOTE:
            return opening_in(surrogates.loads(bytes(view)))
        short = bytes(view[: LONGEST_ESCAPE * OPENING + 1])
        with suppress(orjson.JSONDecodeError):
            return piecewise.beginning(short, OPENING, whole=len(short) == len(view))
        return piecewise.beginning(surrogates.mended(short), OPENING, whole=len(short) == len(view))
    except orjson.JSONDecodeError:
        return None


def _grown(raw: bytes, last: Seen) -> Seen | None:
    """Read a body to whose messages some were appended since the last; return None for any other.

    Both have the same bytes up to the end of a message. There the last closes the list, and this one goes on with a comma.
    """
    end = _common(raw, last.raw)
    if raw[end : end + 1] != b"," or last.raw[end : end + 1] != b"]":
        return None
    if any(name in tail for tail in (raw[end:], last.raw[end:]) for name in _NAME):  # of two lists the last one counts
        return None
    front = _front(last, end)
    known = last.found
    new = _read(_OPENED + raw[end + 1 :], opening=known.opening is None)
    if front is None or new is None or not new.message_count:
        return None
    found = Skimmed(
        {**front, **new.head},
        known.outline + new.outline,
        known.message_count + new.message_count,
        known.opening if known.opening is not None else new.opening,
        known.may_call_tools or new.may_call_tools,
    )
    return Seen(raw, found, end, known.message_count, front)


def _front(last: Seen, end: int) -> Mapping[str, Any] | None:
    """Return what stands in front of the messages; None unless the list of messages ends there.

    At the second request of a conversation this reads the whole body once more, at later ones what was new in the one before.
    """
    if end <= last.checked:
        return None
    unchecked = _OPENED + last.raw[last.checked + 1 : end] if last.checked else last.raw[:end]
    probed = _read(unchecked + _ONE_MORE, opening=False)
    if probed is None or probed.message_count != last.found.message_count - last.before + 1:
        return None
    return last.front if last.checked else probed.head


def _common(raw: bytes, other: bytes) -> int:
    """Return how many bytes two bodies have in common at their beginnings."""
    view = memoryview(other)
    least, most = 0, min(len(raw), len(other))
    while least < most:
        middle = (least + most + 1) // 2
        if raw.startswith(view[least:middle], least):
            least = middle
        else:
            most = middle - 1
    return least


def _rich(messages: list[_Message]) -> list[_Message]:
    """Return the messages whose content is more than one text. Where there are none, no message is looked at in Python."""
    begins = map(_first_byte, map(_view, map(_content, messages)))
    if _TEXT_OR_NULL.issuperset(begins) and not _any_has(_audio, messages):
        return []
    return [m for m in messages if memoryview(m.content)[0] not in _TEXT_OR_NULL or m.audio is not _ABSENT]


def _any_has(member: Callable[[_Message], msgspec.Raw], messages: list[_Message]) -> bool:
    return any(map(is_not, map(member, messages), repeat(_ABSENT)))


def _outline(message: _Message) -> Message:
    """Return the message without its text."""
    found: dict[str, Any] = {"role": message.role}
    for name in ("content", "audio"):
        value = getattr(message, name)
        if value is not _ABSENT:
            found[name] = "" if memoryview(value)[0] == _QUOTE else value_of(value)
    return found
