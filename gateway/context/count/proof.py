"""Prove from the size of a body alone that a request fits, so that most requests are never counted."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from gateway.context.count.families import family_of
from gateway.wire.format import Conversation
from gateway.wire.message import Message
from gateway.wire.views import Opaque

_MOST_TOKENS_PER_BYTE: Final = 11
"""Tokens. U+FDFA has 3 bytes, and a normaliser splits it into 18 letters with 33 tokens."""

_TEMPLATE_TOKENS: Final = 1024
"""Tokens that chat templates may add to a request without tools: preambles, frames, default prompts."""


def fits_by_size(body_bytes: int, reserve: int, window: int, conversation: Conversation, family: str = "") -> bool:
    """Return whether the size of a body proves that the request fits: it has no more tokens than bytes, and includes
    nothing by reference.

    Two kinds of text may have more tokens than bytes: letters that a normaliser splits (Qwen, old Claude), and results of
    parallel calls, which are escaped. Both need letters beyond ASCII. If there may be any, each byte counts as several
    tokens.
    """
    others = reserve + _TEMPLATE_TOKENS
    if body_bytes + others > window or not is_self_contained(conversation):
        return False
    normalises = family_of(family).normalises
    # Searching the whole body takes as long as parsing it: this comes last, for bodies near their window.
    if body_bytes * (_MOST_TOKENS_PER_BYTE if normalises else 2) + others <= window:
        return True
    if not normalises and not conversation.may_call_in_parallel:
        return True
    if conversation.raw.isascii() and not (normalises and b"\\u" in conversation.raw):
        return True
    return not normalises and not any(map(_has_parallel_calls, conversation.messages))


def _has_parallel_calls(message: Message) -> bool:
    """Return whether a message makes several calls in parallel."""
    calls = message.get("tool_calls")
    return isinstance(calls, list) and len(calls) > 1


def is_self_contained(conversation: Conversation) -> bool:
    """Return whether the body has everything that the model reads: no media, no ids of files or of earlier answers, no
    hosted tools."""
    return reads_only_messages(conversation) and is_text(conversation.outline)


def reads_only_messages(conversation: Conversation) -> bool:
    """Return whether the model reads only messages and the client's tools: no earlier answer that the body names, no hosted tools."""
    if conversation.refers_elsewhere:
        return False
    tools = conversation.head.get("tools")
    return not isinstance(tools, list) or all(isinstance(tool, dict) and _is_client_tool(tool) for tool in tools)


def is_text(messages: Iterable[Message]) -> bool:
    """Return whether messages have no media and no ids of files."""
    for message in messages:
        content = message.get("content")
        if "audio" in message or (isinstance(content, list) and not all(map(_is_text, content))):
            return False
    return True


def _is_client_tool(tool: Mapping[str, Any]) -> bool:
    """Return whether the client runs a tool itself."""
    return tool.get("type", "function") in ("function", "custom")


def _is_text(part: Any) -> bool:
    if type(part) is Opaque:
        return part.is_in_body
    return isinstance(part, str) or (isinstance(part, dict) and isinstance(part.get("text"), str) and len(part) <= 3)
