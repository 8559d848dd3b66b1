"""Place the note and the quotes into the messages.

They contain words of tools, documents and the assistant, so they are placed only in user messages, each in a frame: the
note before the first standing message, quotes behind their question. A note stays for many turns and quotes for few, so
whatever a prompt cache has of a request up to the newest question is also the beginning of the next one.
"""

from collections.abc import Mapping
from typing import Any

from gateway.context import marks
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
        before = note if index == first and not _has_cut(message, note) else ""
        if before and message.get("role") != "user":
            placed.append({"role": "user", "content": note})
            before = ""
        behind = quotes.get(index, "")
        placed.append(_with_frames(message, before, behind) if before or behind else message)
    return tuple(placed)


def _with_frames(message: Message, before: str, behind: str) -> Message:
    """Return a message with a frame before its content and one behind it; empty frames are left out."""
    content: Any = message.get("content")
    # The bare note is no frame: it stays when frames are taken off, so the checksum behind it covers it.
    bare = [CUT] if before == CUT else []
    if isinstance(content, list):
        last = marks.sealed(behind, "\n".join([*bare, *texts(content)])) if behind else ""
        return {**message, "content": [*_part(before), *content, *_part(last)]}
    said = [content] if isinstance(content, str) and content else []
    last = marks.sealed(behind, "\n\n".join([*bare, *said])) if behind else ""
    return {**message, "content": "\n\n".join([text for text in (before, *said, last) if text])}


def _part(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}] if text else []


def _has_cut(message: Message, note: str) -> bool:
    """Return whether the bare note is already before the message."""
    return note == CUT and message.get("role") == "user" and next(texts(message.get("content")), "").startswith(CUT)
