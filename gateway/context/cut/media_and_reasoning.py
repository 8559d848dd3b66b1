"""Media and reasoning of a message, and the message without them."""

from typing import Any, Final

from gateway.wire.message import Message, media_kind, media_parts

REASONING_CONTENT: Final = "reasoning_content"
REASONING_FIELDS: Final = frozenset({REASONING_CONTENT, "reasoning", "reasoning_details", "thinking_blocks"})
"""Fields of a message that carry the reasoning behind an answer."""
KEPT_REASONING_CHARACTERS: Final = 120
"""Characters that an old message keeps of its `REASONING_CONTENT`, from its beginning. DeepSeek and Moonshot refuse answers
of a tool loop without this field (https://api-docs.deepseek.com/guides/thinking_mode#tool-calls). Chosen: they refuse an
empty one, too, and a model imitates words that are the same everywhere."""


def has_media_or_reasoning(message: Message) -> bool:
    """Return whether a message has media or reasoning, which are dropped first when it is old."""
    if not REASONING_FIELDS.isdisjoint(message) and any(
        name != REASONING_CONTENT and message.get(name) for name in REASONING_FIELDS
    ):
        return True
    reasoning = message.get(REASONING_CONTENT)
    if reasoning and not (isinstance(reasoning, str) and len(reasoning) <= KEPT_REASONING_CHARACTERS):
        return True
    return isinstance(message.get("content"), list) and any(True for _ in media_parts(message))


def without_media_and_reasoning(message: Message) -> Message:
    """Replace media by a text that names their kind, and drop reasoning, except for the beginning of its
    `REASONING_CONTENT`."""
    plain = {key: value for key, value in message.items() if key not in REASONING_FIELDS}
    if isinstance(reasoning := message.get(REASONING_CONTENT), str):
        is_short = len(reasoning) <= KEPT_REASONING_CHARACTERS
        plain[REASONING_CONTENT] = reasoning if is_short else f"{reasoning[: KEPT_REASONING_CHARACTERS - 1]}…"
    content = message.get("content")
    if isinstance(content, list):
        plain["content"] = [_stub(part) for part in content]
    return plain


def _stub(part: Any) -> Any:
    kind = media_kind(part)
    return {"type": "text", "text": f"[{kind} removed]"} if kind else part
