"""Media and reasoning of a message, and the message without them."""

from typing import Any, Final

from gateway.wire.message import Message, media_kind, media_parts

REASONING_FIELDS: Final = frozenset({"reasoning_content", "reasoning", "reasoning_details"})
"""Fields of a message that carry the reasoning behind an answer."""


def has_media_or_reasoning(message: Message) -> bool:
    """Return whether a message has media or reasoning, which are dropped first when it is old."""
    if not REASONING_FIELDS.isdisjoint(message) and any(map(message.get, REASONING_FIELDS)):
        return True
    return isinstance(message.get("content"), list) and any(True for _ in media_parts(message))


def without_media_and_reasoning(message: Message) -> Message:
    """Replace media by a text that names their kind, and drop reasoning."""
    plain = {key: value for key, value in message.items() if key not in REASONING_FIELDS}
    content = message.get("content")
    if isinstance(content, list):
        plain["content"] = [_stub(part) for part in content]
    return plain


def _stub(part: Any) -> Any:
    kind = media_kind(part)
    return {"type": "text", "text": f"[{kind} removed]"} if kind else part
