"""Cache marks: the positions up to which a folded request and the next one are equal, so that the provider caches them.

Marks are set at four ends: of the pinned messages, of the note, of the newest message of the request before, and of the newest message. In
these two messages they are before quotes, which the next turn will not have. If a client sets marks itself, only its marks are sent.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from gateway.context import frames
from gateway.wire.message import CACHE_CONTROL, CONTINUES, PINNED_ROLES, RESULT_ROLES, Message
from gateway.wire.views import Opaque

MOST_MARKS: Final = 4
"""Most marks in one request. Anthropic takes four. OpenAI writes entries at the latest three and at its own, and reads at
older ones."""


class MarkStyle(msgspec.Struct, frozen=True):
    """How one API writes a mark."""

    member: str
    value: Any
    on_results: bool
    """Whether a tool result may have one."""


BREAKPOINT_STYLE: Final = MarkStyle("prompt_cache_breakpoint", {"mode": "explicit"}, on_results=False)
"""https://developers.openai.com/api/docs/guides/prompt-caching: on text parts; the newest result is marked by OpenAI itself."""
NO_AUTOMATIC_BREAKPOINT: Final = {"prompt_cache_options": {"mode": "explicit"}}
"""OpenAI then sets no breakpoint of its own behind the newest message. https://developers.openai.com/api/docs/guides/prompt-caching"""
CACHE_CONTROL_STYLE: Final = MarkStyle(CACHE_CONTROL, {"type": "ephemeral"}, on_results=True)
"""https://platform.claude.com/docs/en/build-with-claude/prompt-caching"""


class CacheTerms(msgspec.Struct, frozen=True):
    """What may be added to a request for its provider's cache."""

    style: MarkStyle | None = None
    """How marks are written; None if none are set."""
    key: str = ""
    """The ``prompt_cache_key``; empty if none is set."""
    always: bool = False
    """Whether requests that fit get marks too."""

    def added(self, messages: Sequence[Message]) -> dict[str, Any]:
        """Return the members to add to a body with these marked messages, where it has none of that name."""
        added: dict[str, Any] = {"prompt_cache_key": self.key} if self.key else {}
        if (
            self.style is BREAKPOINT_STYLE
            and ends_with_passing_quotes(messages)
            and _has_mark(messages[-1], BREAKPOINT_STYLE)
        ):
            added |= NO_AUTOMATIC_BREAKPOINT
        return added

    def marked(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return the messages with marks, if any are set."""
        return marked(messages, self.style) if self.style else tuple(messages)


NO_TERMS: Final = CacheTerms()
"""Nothing is added."""

MarkPosition = tuple[int, int]
"""Index of a message, and of a part of its text."""


def marked(messages: Sequence[Message], style: MarkStyle) -> tuple[Message, ...]:
    """Return the messages with marks; unchanged when the client sets marks of this style itself."""
    if any(_has_mark(message, style) for message in messages):
        return tuple(messages)
    chosen = dict.fromkeys(mark_positions(messages))
    changed = {
        index: _with_marks(messages[index], {n for at, n in chosen if at == index}, style) for index, _ in chosen
    }
    return tuple(changed.get(index, message) for index, message in enumerate(messages))


def mark_positions(messages: Sequence[Message]) -> list[MarkPosition]:
    """Return the positions of marks, in order; at most `MOST_MARKS`."""
    positions: list[MarkPosition] = []
    first = next((n for n, m in enumerate(messages) if m.get("role") not in PINNED_ROLES), len(messages))
    if first:
        positions.append((first - 1, len(parts_of(messages[first - 1])) - 1))
    if first < len(messages) and (count := frames_before(messages[first])):
        positions.append((first, count - 1))
    positions += [(index, _last_before_quotes(messages[index])) for index in _marked_ends(messages, first)]
    return [position for position in dict.fromkeys(positions) if position[1] >= 0]


def _marked_ends(messages: Sequence[Message], first: int) -> list[int]:
    """Return the newest message of the request before, and that of this one. A result inside an answer was never the end of a request."""
    able = [
        n
        for n in range(first, len(messages))
        if messages[n].get("role") in {"user", *RESULT_ROLES} and CONTINUES not in messages[n]
    ]
    if not able:
        return []
    answers = [n for n in range(first, able[-1]) if messages[n].get("role") == "assistant"]
    before = [n for n in able if answers and n < answers[-1]]
    return [*before[-1:], able[-1]]


def ends_with_passing_quotes(messages: Sequence[Message]) -> bool:
    """Return whether a request ends with quotes that the next one will not have: then a cache entry at its end is never
    read."""
    has_calls = any(message.get("role") in RESULT_ROLES or message.get("tool_calls") for message in messages)
    last = parts_of(messages[-1]) if messages and messages[-1].get("role") == "user" else []
    return not has_calls and len(last) > 1 and frames.is_quotes(frames.text_in(last[-1]))


def parts_of(message: Message) -> list[Any]:
    """Return a message's content as parts, with each frame of a text as a part of its own."""
    content = message.get("content")
    if isinstance(content, list):
        return content
    if not isinstance(content, str) or not content:
        return []
    texts = frames.split(content) if message.get("role") == "user" else [content]
    return [{"type": "text", "text": text} for text in texts]


def frames_before(message: Message) -> int:
    """Return the number of parts at the beginning of a message that are frames of the gateway."""
    if message.get("role") != "user":
        return 0
    number = 0
    for part in parts_of(message):
        if not frames.is_frame(frames.text_in(part)):
            break
        number += 1
    return number


def _last_before_quotes(message: Message) -> int:
    """Return the number of the last part of a message before its quotes."""
    parts = parts_of(message)
    last = len(parts) - 1
    has_quotes = last > 0 and message.get("role") == "user" and frames.is_quotes(frames.text_in(parts[-1]))
    return last - 1 if has_quotes else last


def _with_marks(message: Message, numbers: set[int], style: MarkStyle) -> Message:
    """Return a message with marks at the parts of these numbers. A result is marked as a whole, if the style allows it."""
    if message.get("role") in RESULT_ROLES:
        return {**message, style.member: style.value} if style.on_results else message
    parts = parts_of(message)
    able = {n for n in numbers if isinstance(parts[n], dict) and parts[n].get("text") and type(parts[n]) is not Opaque}
    if not able:
        return message
    return {
        **message,
        "content": [{**part, style.member: style.value} if n in able else part for n, part in enumerate(parts)],
    }


def _has_mark(message: Message, style: MarkStyle) -> bool:
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return bool(message.get(style.member)) or any(isinstance(part, dict) and part.get(style.member) for part in parts)
