"""Where the note stands: the one place where a folded request says that it was folded."""

from collections.abc import Sequence
from typing import Any

from gateway.context.marks import CUT, END
from gateway.wire.chat import PINNED_ROLES, Message


def with_text(message: Message, text: str, *, at_end: bool) -> Message:
    """A message with a text before or behind its content, as a part of its own where the content has parts."""
    content: Any = message.get("content")
    if isinstance(content, list):
        part = {"type": "text", "text": text}
        return {**message, "content": [*content, part] if at_end else [part, *content]}
    if not isinstance(content, str) or not content:
        return {**message, "content": text}
    return {**message, "content": f"{content}\n\n{text}" if at_end else f"{text}\n\n{content}"}


def place(standing: dict[int, Message], note: str, pinned: Sequence[int], *, system_role: bool) -> None:
    """Put the note at the end of the first pinned message, into a new one, or in front of the first user message.

    A new message gets the index -1: it stands first.
    """
    if system_role and pinned:
        standing[pinned[0]] = with_text(standing[pinned[0]], note, at_end=True)
        return
    if system_role:
        standing[-1] = {"role": "system", "content": note}
        return
    closed = note if note == CUT else f"{note}\n{END}"
    first = next((index for index in sorted(standing) if standing[index].get("role") not in PINNED_ROLES), None)
    if first is not None and standing[first].get("role") == "user":
        standing[first] = with_text(standing[first], closed, at_end=False)
    else:
        standing[-1] = {"role": "user", "content": closed}
