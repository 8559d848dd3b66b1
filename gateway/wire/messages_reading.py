"""Read a body of the Anthropic Messages format, with the views of its messages."""

from collections.abc import Sequence
from typing import Any

import orjson

from gateway.wire import piecewise
from gateway.wire.format import Format
from gateway.wire.memory import Memory
from gateway.wire.messages_request import BodyMessage, MessagesRequest
from gateway.wire.messages_tools import translated_tools
from gateway.wire.messages_views import views
from gateway.wire.raw_json import members, readable
from gateway.wire.views import Piece, pieces


def read(raw: bytes, memory: Memory, made_by: Format) -> MessagesRequest | None:
    """Read a body; return None if it is no body of this format."""
    raw, found = readable(raw)
    rows = pieces(found["messages"]) if found and "messages" in found else None
    if not found or not rows:
        return None
    parsed = [_body_message(row) for row in rows]
    try:
        head = {name: piecewise.loads(value) for name, value in found.items() if name != "messages"}
    except orjson.JSONDecodeError:
        return None
    body_messages = tuple(message for message in parsed if message is not None)
    if len(body_messages) < len(parsed):
        return None
    compacted = _newest_compaction(body_messages)
    cleared = _cleared(rows, compacted[0])
    shown, origins = views(head.get("system"), body_messages, compacted, cleared)
    return MessagesRequest(
        format=made_by,
        raw=raw,
        head=head,
        views=shown,
        translated_head={
            **{name: value for name, value in head.items() if name != "system"},
            **translated_tools(head),
        },
        memory=memory,
        body_messages=body_messages,
        origins=origins,
        compacted=compacted,
        cleared=cleared,
    )


def _body_message(row: Piece) -> BodyMessage | None:
    role, content = row.value.get("role"), row.value.get("content")
    if not isinstance(role, str):
        return None
    if isinstance(content, str):
        return BodyMessage(row.raw, role, content)
    inside = members(row.raw)
    blocks = pieces(inside["content"]) if inside and "content" in inside else None
    return None if blocks is None else BodyMessage(row.raw, role, None, tuple(blocks))


def _newest_compaction(body_messages: Sequence[BodyMessage]) -> tuple[int, int]:
    """Return the message and the block of the newest compaction; (-1, -1) without one."""
    positions = (
        (at, n)
        for at, message in enumerate(body_messages)
        for n, block in enumerate(message.blocks)
        if block.type == "compaction" and not _has_failed(block)
    )
    return max(positions, default=(-1, -1))


def _has_failed(compaction: Piece) -> bool:
    """Return whether a compaction has failed: the API takes it for nothing.

    https://platform.claude.com/docs/en/build-with-claude/compaction
    """
    return not compaction.value.get("content") and not compaction.value.get("encrypted_content")


def _cleared(rows: Sequence[Piece], compacted: int) -> frozenset[int]:
    """Return the system messages that were for one user turn only: the model sees them until the next user message.

    Those before the newest compaction, in message ``compacted``, are left out: nothing there has a view.
    https://platform.claude.com/docs/en/api/beta/messages/create
    """
    last_user = max((at for at, row in enumerate(rows) if row.value.get("role") == "user"), default=-1)
    return frozenset(
        at
        for at, row in enumerate(rows[:last_user])
        if at > compacted
        and row.value.get("role") == "system"
        and row.value.get("clear_at") == "next_user_message"
        and not row.value.get("output_config")
        and _has_only_texts(row.value.get("content"))
    )


def _has_only_texts(content: Any) -> bool:
    return isinstance(content, str) or (
        isinstance(content, list) and all(isinstance(part, dict) and part.get("type") == "text" for part in content)
    )
