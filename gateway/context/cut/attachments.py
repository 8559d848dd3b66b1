"""Media and reasoning of a message, and the message without them."""

from typing import Any, Final

from gateway.wire.message import Message, media_kind, media_parts

REASONING: Final = frozenset({"reasoning_content", "reasoning", "reasoning_details"})


def carries_more(message: Message) -> bool:
    """Return whether a message has media or reasoning, which are dropped first when it is old."""
    if not REASONING.isdisjoint(message) and any(map(message.get, REASONING)):
        return True
    return isinstance(message.get("content"), list) and any(True for _ in media_parts(message))


def without_media(message: Message) -> Message:
    """Replace media by a text that names them, and drop reasoning."""
    plain = {key: value for key, value in message.items() if key not in REASONING}
    content = message.get("content")
    if isinstance(content, list):
        plain["content"] = [_stub(part) for part in content]
    return plain


def _stub(part: Any) -> Any:
    kind = media_kind(part)
    return {"type": "text", "text": f"[{kind} removed]"} if kind else part
