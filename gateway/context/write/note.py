"""Where the note and the quotes stand: the one place that decides it.

They hold words of tools, documents and the assistant, so they stand in user messages only, each frame in front of what the user said:
the note in front of the first message that stands, quotes in front of the question they belong to.
"""

from collections.abc import Mapping
from typing import Any

from gateway.context.marks import CUT
from gateway.wire.chat import PINNED_ROLES, Message, texts


def place(standing: Mapping[int, Message], note: str, quotes: Mapping[int, str]) -> tuple[Message, ...]:
    """Put the note and the quotes into the messages that stand, given by index; empty texts are left out.

    Where the first unpinned message is not the user's, a user message of its own in front of it carries the note. Content that is
    a string stays one, for some servers take no other; content in parts gets a part more.
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
    """A message with texts in front of its content."""
    content: Any = message.get("content")
    if isinstance(content, list):
        return {**message, "content": [*({"type": "text", "text": block} for block in blocks), *content]}
    said = [content] if isinstance(content, str) and content else []
    return {**message, "content": "\n\n".join([*blocks, *said])}


def _has_cut(message: Message, note: str) -> bool:
    """Whether the bare note stands in front of the message already."""
    return note == CUT and message.get("role") == "user" and next(texts(message.get("content")), "").startswith(CUT)
