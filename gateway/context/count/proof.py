"""Prove from the size of a body alone that a request fits, so that most requests are never counted."""

from collections.abc import Mapping
from typing import Any, Final

from gateway.context.count.families import family_of
from gateway.wire.format import Conversation
from gateway.wire.message import Message
from gateway.wire.views import Opaque

_EXPANSION: Final = 11
"""The most tokens per byte when letters are split first: U+FDFA has 3 bytes and becomes 18 letters with 33 tokens."""

_ENVELOPE: Final = 1024
"""Tokens that templates may add to a request without tools: preambles, frames, default prompts."""


def proven(body_bytes: int, reserve: int, window: int, request: Conversation, family: str = "") -> bool:
    """Prove without counting that a request fits: tokens never outnumber bytes, and nothing is included by reference.

    Two kinds of text may cost more tokens than bytes: letters that a normaliser splits (Qwen, old Claude), and results
    of parallel calls, which are escaped. Both need letters beyond ASCII; if there are any, and they could matter, the
    size counts several times.
    """
    beside = reserve + _ENVELOPE
    if body_bytes + beside > window or not self_contained(request):
        return False
    normalises = family_of(family).normalises
    # Searching the whole body takes as long as parsing it: this comes last, for bodies near their window.
    if body_bytes * (_EXPANSION if normalises else 2) + beside <= window:
        return True
    if not normalises and not request.may_call_tools:
        return True
    if request.raw.isascii() and not (normalises and b"\\u" in request.raw):
        return True
    return not normalises and not any(map(_several, request.messages))


def _several(message: Message) -> bool:
    """Return whether a message makes several calls in parallel."""
    calls = message.get("tool_calls")
    return isinstance(calls, list) and len(calls) > 1


def self_contained(request: Conversation) -> bool:
    """Return whether the body holds everything the model reads: no media, no ids of files or earlier answers, no hosted
    tools."""
    if request.refers_elsewhere:
        return False
    given = request.head.get("tools")
    if isinstance(given, list) and not all(isinstance(tool, dict) and _own(tool) for tool in given):
        return False
    for message in request.outline:
        content = message.get("content")
        if "audio" in message or (isinstance(content, list) and not all(map(_is_text, content))):
            return False
    return True


def _own(tool: Mapping[str, Any]) -> bool:
    return tool.get("type", "function") in ("function", "custom")


def _is_text(part: Any) -> bool:
    if type(part) is Opaque:
        return part.stands_here
    return isinstance(part, str) or (isinstance(part, dict) and isinstance(part.get("text"), str) and len(part) <= 3)
