"""Place the note and the quotes into the messages.

They contain words of tools, documents and the assistant, so they are placed only in user messages, each frame before
the user's words: the note before the first standing message, quotes before their question.
"""

from collections.abc import Mapping
from typing import Any

from gateway.context.marks import CUT
from gateway.wire.message import PINNED_ROLES, Message, texts


def place(standing: Mapping[int, Message], note: str, quotes: Mapping[int, str]) -> tuple[Message, ...]:
    """Place the note and the quotes into the standing messages, given by index; empty texts are left out.

    If the first unpinned message is not the user's, an additional user message before it carries the note. String
    content stays a string, because some servers accept nothing else; content in parts gets one more part.
    """
    first = next((index for index in sorted(standing) if standing[index].get("role") not in PINNED_ROLES), None)
    placed: list[Message] = []
    for index in sorted(standing):
        message = standing[index]
        blocks = [note] if index == first and note and not _has_cut(message, note) else []
        if blocks and message.get("role") != "user":
            placed.append({"role": "user", "content": note})
            blocks = []
        if quotes.get(index):
            blocks.append(quotes[index])
        placed.append(_with_blocks(message, blocks) if blocks else message)
    return tuple(placed)


def _with_blocks(message: Message, blocks: list[str]) -> Message:
    """Return a message with texts before its content."""
    content: Any = message.get("content")
    if isinstance(content, list):
        return {**message, "content": [*({"type": "text", "text": block} for block in blocks), *content]}
    said = [content] if isinstance(content, str) and content else []
    return {**message, "content": "\n\n".join([*blocks, *said])}


def _has_cut(message: Message, note: str) -> bool:
    """Return whether the bare note is already before the message."""
    return note == CUT and message.get("role") == "user" and next(texts(message.get("content")), "").startswith(CUT)
