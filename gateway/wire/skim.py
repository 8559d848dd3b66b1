"""Skim a chat-completions body: read as little of it as possible. Texts are only measured, and of a conversation that has
grown, only the new messages are read.

A client sends its whole conversation with every request, and appends to it. So a body usually begins like the one before
it, up to the end of its last message. Comparing the two costs a hundredth of reading.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from struct import Struct
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec
import orjson

from gateway.wire import piecewise, surrogates
from gateway.wire.derived import held_bytes
from gateway.wire.memory import LONGEST_SHARE, Memory, Recent
from gateway.wire.message import OPENING_CHARACTERS, Message, opening_in
from gateway.wire.piecewise import LONGEST_ESCAPE

OUTPUT_FIELDS: Final = ("max_completion_tokens", "max_tokens", "max_output_tokens")

OUTSIDE_MEMBERS: Final = (
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
READ_MEMBERS: Final = (
    "model",
    "stream",
    *OUTPUT_FIELDS,
    "tools",
    "prompt_cache_key",
    "session_id",
    "store",
    "modalities",
    *OUTSIDE_MEMBERS,
)
"""The members that are read besides the messages."""
BEGINNING_BYTES: Final = 2**14
"""Bytes at the beginning of a body, by which the body before it is found. Chosen: shorter bodies are parsed."""
BEGINNING_STEP: Final = 16
"""Of so many bytes at the beginning one is looked at. Chosen: names and dates in which bodies differ are longer, and hashing takes a
seventh of the work. Whole bodies are compared afterwards."""
BODIES_SHARE: Final = 1 / 2
"""Share of the memory's budget for whole bodies. Folds need the rest."""
_MESSAGES_NAMES: Final = (b'"messages"', rb"\u006", rb"\u007")
"""A body that names its messages has one of these: the name, or an escape of one of its letters, which no library writes."""
_LIST_START: Final = b'{"messages":['
"""Put before messages that are read without the earlier ones."""
_PROBE: Final = b',{"role":""}]}'
"""Appended to find out whether the list that is open there is the list of the messages."""
_ABSENT: Final = msgspec.Raw(b"null")


class _Message(msgspec.Struct, gc=False):
    """The members of a message that a skim reads."""

    role: str
    content: msgspec.Raw = _ABSENT
    audio: msgspec.Raw = _ABSENT
    tool_calls: list[msgspec.Raw] | None = None


class Skimmed(msgspec.Struct, frozen=True):
    """The parts of a body that a skim has read."""

    head: Mapping[str, Any]
    outline: tuple[Message, ...]
    """The messages whose content is more than one text, without their texts."""
    message_count: int
    opening: str | None
    """The beginning of the first user message; None without one, or if it cannot be read."""
    may_call_in_parallel: bool


class SkimmedBody(NamedTuple):
    """A body, and what a skim has read of it."""

    raw: bytes
    found: Skimmed
    checked_bytes: int = 0
    """Bytes up to the end of a message that is known to be one of the list; 0 if none is known."""
    checked_messages: int = 0
    """The number of messages up to there."""
    members_before: Mapping[str, Any] = MappingProxyType({})
    """The members before the list of messages; read once ``checked_bytes`` is known."""
    outline_bytes: int = 0
    """Bytes that the outline takes."""
    size: int = 0
    """Bytes that the body takes, with the values that were read: many small values take thirty times their text."""


def skimmed(raw: bytes, memory: Memory) -> Skimmed | None:
    """Return what a skim reads of a body; None if it is no body of this format."""
    bodies = memory.part(skimmed, partial(_bodies, memory))
    beginning = raw[:BEGINNING_BYTES:BEGINNING_STEP]
    last = bodies.get(beginning)
    if last is not None and last.raw == raw:
        return last.found
    current = _continued(raw, last) if last is not None else None
    if current is None:
        found = _read(raw)
        if found is None:
            return None
        current = SkimmedBody(raw, found)
    if len(raw) <= memory.budget * LONGEST_SHARE:
        current = _with_size(current, last if current.checked_bytes else None)
        if current.size <= memory.budget * LONGEST_SHARE:
            bodies.put(beginning, current)
    return current.found


def _with_size(current: SkimmedBody, last: SkimmedBody | None) -> SkimmedBody:
    """Return a skimmed body with its size. ``last`` is the body that it continues."""
    known, before = (last.outline_bytes, len(last.found.outline)) if last is not None else (0, 0)
    outline_bytes = known + held_bytes(current.found.outline[before:])
    size = len(current.raw) + outline_bytes + held_bytes(current.found.head.values())
    return current._replace(outline_bytes=outline_bytes, size=size)


def _bodies(memory: Memory) -> Recent[bytes, SkimmedBody]:
    return Recent(memory, lambda beginning, current: len(beginning) + current.size, BODIES_SHARE)


# Of a message that was read, a field is read in half of the work that `attrgetter` takes, and a byte in half of what a view takes.
_first_byte: Final[Callable[[msgspec.Raw], tuple[int]]] = Struct("B").unpack_from
_QUOTE: Final = ord('"')
_TEXT_OR_NULL: Final = frozenset([tuple(b'"'), tuple(b"n")])
_Body: Final = msgspec.defstruct(
    "_Body", [("messages", list[_Message]), *((name, Any, msgspec.UNSET) for name in READ_MEMBERS)]
)
_body: Final = msgspec.json.Decoder(_Body).decode
value_of: Final = msgspec.json.Decoder().decode
"""Return the value of some JSON. Raises MsgspecError, or UnicodeDecodeError for bytes that are no text."""


def _read(raw: bytes, *, opening: bool = True) -> Skimmed | None:
    """Read a body; its ``opening`` only on request."""
    try:
        body: Any = _body(raw)
        outline = tuple(map(_outline, _with_more_than_text(body.messages)))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    messages: list[_Message] = body.messages
    first = next((message.content for message in messages if message.role == "user"), None) if opening else None
    return Skimmed(
        {name: value for name in READ_MEMBERS if (value := getattr(body, name)) is not msgspec.UNSET},
        outline,
        len(messages),
        _opening(first) if first is not None else None,
        any([len(message.tool_calls) > 1 for message in messages if message.tool_calls]),
    )


def _opening(content: msgspec.Raw) -> str | None:
    """Return the beginning of a content's text. A client may have cut it in the middle of an emoji."""
    view = memoryview(content)
    try:
        if view[0] != _QUOTE:
            return opening_in(surrogates.loads(bytes(view)))
        short = bytes(view[: LONGEST_ESCAPE * OPENING_CHARACTERS + 1])
        with suppress(orjson.JSONDecodeError):
            return piecewise.beginning(short, OPENING_CHARACTERS, whole=len(short) == len(view))
        return piecewise.beginning(surrogates.repaired(short), OPENING_CHARACTERS, whole=len(short) == len(view))
    except orjson.JSONDecodeError:
        return None


def _continued(raw: bytes, last: SkimmedBody) -> SkimmedBody | None:
    """Skim a body that continues the last one: messages were appended to its list. Return None for any other body.

    Both have the same bytes up to the end of a message. There the last body closes the list, and this one has a comma.
    """
    end = _common_bytes(raw, last.raw)
    if raw[end : end + 1] != b"," or last.raw[end : end + 1] != b"]":
        return None
    if any(
        name in tail for tail in (raw[end:], last.raw[end:]) for name in _MESSAGES_NAMES
    ):  # of two lists of messages, parsers use the last one
        return None
    front = _members_before(last, end)
    known = last.found
    new = _read(_LIST_START + raw[end + 1 :], opening=known.opening is None)
    if front is None or new is None or not new.message_count:
        return None
    found = Skimmed(
        {**front, **new.head},
        known.outline + new.outline,
        known.message_count + new.message_count,
        known.opening if known.opening is not None else new.opening,
        known.may_call_in_parallel or new.may_call_in_parallel,
    )
    return SkimmedBody(raw, found, end, known.message_count, front)


def _members_before(last: SkimmedBody, end: int) -> Mapping[str, Any] | None:
    """Return the members before the list of messages; None if the list that ends at ``end`` is not the list of messages.

    In the second request of a conversation this reads the whole body again, in later ones only what was new in the last.
    """
    if end <= last.checked_bytes:
        return None
    unchecked = _LIST_START + last.raw[last.checked_bytes + 1 : end] if last.checked_bytes else last.raw[:end]
    probed = _read(unchecked + _PROBE, opening=False)
    if probed is None or probed.message_count != last.found.message_count - last.checked_messages + 1:
        return None
    return last.members_before if last.checked_bytes else probed.head


def _common_bytes(raw: bytes, other: bytes) -> int:
    """Return the number of bytes that two bodies have in common at their beginnings."""
    view = memoryview(other)
    least, most = 0, min(len(raw), len(other))
    while least < most:
        middle = (least + most + 1) // 2
        if raw.startswith(view[least:middle], least):
            least = middle
        else:
            most = middle - 1
    return least


def _with_more_than_text(messages: list[_Message]) -> list[_Message]:
    """Return the messages whose content is more than one text."""
    return [m for m in messages if _first_byte(m.content) not in _TEXT_OR_NULL or m.audio is not _ABSENT]


def _outline(message: _Message) -> Message:
    """Return the message without its text."""
    found: dict[str, Any] = {"role": message.role}
    for name in ("content", "audio"):
        value = getattr(message, name)
        if value is not _ABSENT:
            found[name] = "" if memoryview(value)[0] == _QUOTE else value_of(value)
    return found
