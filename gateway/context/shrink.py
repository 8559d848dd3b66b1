"""One message made smaller: the cut of a text that is too long alone."""

from collections.abc import Callable, Mapping
from typing import Any

from gateway.context.draft import Counter
from providers.wire import MEDIA_TYPES, Message, text_of


def shrink_text(text: str, tokens: int, count: Callable[[str], int]) -> str:
    """Keep the head and the tail of a text and say how much went between them."""
    if count(text) <= tokens:
        return text
    size = len(text)
    keep = max(int(size * tokens / max(count(text), 1)), 0)
    while True:
        head, tail = keep // 2, keep - keep // 2
        cut = f"{text[:head]}\n[... {size - keep} characters cut ...]\n{text[size - tail :] if tail else ''}".strip()
        if keep == 0 or count(cut) <= tokens:
            return cut
        keep = keep * 3 // 4


def shrink_message(message: Message, tokens: int, counter: Counter) -> Message:
    """Shrink the text of a message so that it costs at most so many tokens, as far as its text allows."""
    cost = counter.message(message)
    if cost <= tokens:
        return message
    content = message.get("content")
    whole = text_of(message)
    allowed = max(tokens - (cost - counter.text(whole)), 1)
    if isinstance(content, str):
        return {**message, "content": shrink_text(content, allowed, counter.text)}
    if isinstance(content, list) and whole:
        parts: list[Any] = [
            part for part in content if not (isinstance(part, dict) and isinstance(part.get("text"), str))
        ]
        return {**message, "content": [{"type": "text", "text": shrink_text(whole, allowed, counter.text)}, *parts]}
    return message


def without_media(message: Message) -> Message:
    """Replace media by a text that says what stood there, and drop reasoning."""
    plain = {key: value for key, value in message.items() if key not in ("reasoning_content", "reasoning")}
    content = message.get("content")
    if isinstance(content, list):
        plain["content"] = [_stub(part) for part in content]
    return plain


def _stub(part: Any) -> Any:
    if isinstance(part, Mapping) and part.get("type") in MEDIA_TYPES:
        return {"type": "text", "text": f"[{MEDIA_TYPES[part['type']]} removed]"}
    return part
