"""How far an old tool result is shortened: trimmed, or reduced to a stub."""

from typing import Final, NamedTuple

from gateway.context.cut.source import Source
from gateway.context.cut.units import Room
from gateway.wire.message import Message, text_of
from gateway.wire.views import Opaque

STUB_TOKENS: Final = 48
"""Tokens of a tool result that is reduced to a stub: its rows with errors or with the question's words. See `result_limits`."""
TRIMMED_RESULT_SHARE: Final = 1 / 16
"""Share of the free room that a trimmed tool result keeps."""


class ResultLimits(NamedTuple):
    """The most tokens of a tool result."""

    trimmed: int
    stubbed: int
    """The parts that are never cut stay in a stub."""


def result_limits(source: Source, room: Room, message: Message) -> ResultLimits:
    """Return the most tokens of a tool result once it is trimmed or reduced to a stub."""
    content = message.get("content")
    whole = [part for part in content if type(part) is Opaque] if isinstance(content, list) else []
    stubbed = STUB_TOKENS + (source.counter.message({"role": "tool", "content": whole}) if whole else 0)
    trimmed = max(int(room.free * TRIMMED_RESULT_SHARE), stubbed)
    configured = tokens_of_characters(source, message, source.policy.tool_result_chars)
    return ResultLimits(trimmed if configured is None else min(trimmed, configured), stubbed)


def tokens_of_characters(source: Source, message: Message, characters: int) -> int | None:
    """Return about how many tokens a message has when cut to so many characters; None if it is no longer than that."""
    content = message.get("content")
    length = len(content) if isinstance(content, str) else len(text_of(message))
    return None if length <= characters else max(int(source.cost_without_ids(message) * characters / length), 1)
