"""Media and reasoning of a message, and the message without them."""

from typing import Any, Final

from gateway.wire.message import Message, media_kind, media_parts

THOUGHT: Final = "reasoning_content"
REASONING: Final = frozenset({THOUGHT, "reasoning", "reasoning_details"})
KEPT_THOUGHT: Final = 120
"""Characters of an old `THOUGHT` that stay. DeepSeek and Moonshot refuse answers of a tool loop without it
(https://api-docs.deepseek.com/guides/thinking_mode#tool-calls). Chosen: an empty one is refused, too, and the same words everywhere
are imitated."""


def carries_more(message: Message) -> bool:
    """Return whether a message has media or reasoning, which are dropped first when it is old."""
    if not REASONING.isdisjoint(message) and any(name != THOUGHT and message.get(name) for name in REASONING):
        return True
    thought = message.get(THOUGHT)
    if thought and not (isinstance(thought, str) and len(thought) <= KEPT_THOUGHT):
        return True
    return isinstance(message.get("content"), list) and any(True for _ in media_parts(message))


def without_media(message: Message) -> Message:
    """Replace media by a text that names them, and drop reasoning but for the beginning of a `THOUGHT`."""
    plain = {key: value for key, value in message.items() if key not in REASONING}
    if isinstance(thought := message.get(THOUGHT), str):
        plain[THOUGHT] = thought if len(thought) <= KEPT_THOUGHT else f"{thought[: KEPT_THOUGHT - 1]}…"
    content = message.get("content")
    if isinstance(content, list):
        plain["content"] = [_stub(part) for part in content]
    return plain


def _stub(part: Any) -> Any:
    kind = media_kind(part)
    return {"type": "text", "text": f"[{kind} removed]"} if kind else part
