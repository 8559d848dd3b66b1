"""The insertion of the note and the quotes into the messages.

The note and the quotes contain words of tools, documents and the assistant. So they are only written into user messages, each in a frame: the
note before the first kept message, quotes after their question. A note stays for many turns and quotes for few. So the
request up to the newest question is also the beginning of the next request, and a prompt cache can reuse it.
"""

from collections.abc import Mapping
from typing import Any

from gateway.context import frames
from gateway.context.frames import NOTICE
from gateway.wire.message import PINNED_ROLES, Message, texts


def with_note_and_quotes(kept: Mapping[int, Message], note: str, quotes: Mapping[int, str]) -> tuple[Message, ...]:
    """Return the kept messages, given by index, with the note and the quotes in them; empty texts are left out.

    If the first unpinned message is not the user's, an additional user message before it carries the note. String
    content stays a string, because some servers accept nothing else; content in parts gets one more part.
    """
    first = next((index for index in sorted(kept) if kept[index].get("role") not in PINNED_ROLES), None)
    messages: list[Message] = []
    for index in sorted(kept):
        message = kept[index]
        before = note if index == first and not _has_notice(message, note) else ""
        if before and message.get("role") != "user":
            messages.append({"role": "user", "content": note})
            before = ""
        after = quotes.get(index, "")
        messages.append(_with_frames(message, before, after) if before or after else message)
    return tuple(messages)


def _with_frames(message: Message, before: str, after: str) -> Message:
    """Return a message with a frame before its content and one after it; empty frames are left out."""
    content: Any = message.get("content")
    # The notice is no frame: it stays when frames are removed, so the checksum of the quotes covers it.
    notice = [NOTICE] if before == NOTICE else []
    if isinstance(content, list):
        sealed = frames.sealed(after, "\n".join([*notice, *texts(content)])) if after else ""
        return {**message, "content": [*_part(before), *content, *_part(sealed)]}
    words = [content] if isinstance(content, str) and content else []
    sealed = frames.sealed(after, "\n\n".join([*notice, *words])) if after else ""
    return {**message, "content": "\n\n".join([text for text in (before, *words, sealed) if text])}


def _part(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}] if text else []


def _has_notice(message: Message, note: str) -> bool:
    """Return whether the note is only the notice, and the message begins with it already."""
    return (
        note == NOTICE and message.get("role") == "user" and next(texts(message.get("content")), "").startswith(NOTICE)
    )
