"""Anthropic's cache marks: ``cache_control`` on blocks, at most four per request, and their move when their block is
folded.

A mark means "cache everything up to here". When its block is folded, the mark moves to the nearest earlier block that
stays. The first new block (the digest) gets a mark if one is free and the client uses marks at all, because the digest
stays the same for many turns. https://platform.claude.com/docs/en/build-with-claude/prompt-caching
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import orjson

from gateway.wire.message import CACHE_CONTROL
from gateway.wire.splice import splice

MOST_MARKS: Final = 4
"""Most marks in one request: https://platform.claude.com/docs/en/build-with-claude/prompt-caching"""
_CARRIERS: Final = frozenset({"text", "image", "document", "tool_use", "tool_result"})
"""Types of blocks that may have a mark; thinking may not."""

BlockPosition = tuple[int, int]
"""Index of the message and of the block in it."""


class SentBlock(msgspec.Struct, frozen=True, eq=False):
    """A block to be sent: its bytes, and its position in the original body."""

    raw: bytes
    origin: BlockPosition | None = None

    @property
    def kind(self) -> str:
        """The block's type; empty for a text without any characters."""
        value = orjson.loads(self.raw)
        kind = value.get("type")
        return kind if isinstance(kind, str) and (kind != "text" or value.get("text")) else ""


def marks_outside_messages(head: Mapping[str, Any]) -> int:
    """Count the marks outside the messages: on tools, on system blocks, and the one of the whole request."""
    rows = [row for name in ("tools", "system") if isinstance(head.get(name), list) for row in head[name]]
    return sum(isinstance(row, dict) and bool(row.get(CACHE_CONTROL)) for row in rows) + bool(head.get(CACHE_CONTROL))


def moved_marks(
    kept: Sequence[SentBlock], originals: Sequence[tuple[int, int, Mapping[str, Any]]], free: int
) -> dict[int, bytes]:
    """Return the bytes of kept blocks with a new mark, by the ``id`` of the block; the messages may have ``free`` marks."""
    marked = {(at, n): value[CACHE_CONTROL] for at, n, value in originals if value.get(CACHE_CONTROL)}
    if not marked:
        return {}
    kept_positions = {block.origin for block in kept if block.origin is not None}
    kept_marks = {id(block): marked[block.origin] for block in kept if block.origin in marked}
    new: dict[int, Any] = {}
    for position in sorted(marked.keys() - kept_positions):
        carrier = _before(kept, position)
        if carrier is not None and id(carrier) not in kept_marks:
            new.setdefault(id(carrier), marked[position])
    digest = next((block for block in kept if block.origin is None and block.kind == "text"), None)
    if digest is not None and id(digest) not in new:
        new = {**new, id(digest): _mark_for_digest(kept, digest, kept_marks | new, marked)}
    inside = {(at, n): _marks_inside(value) for at, n, value in originals}
    left = free - len(kept_marks) - sum(inside[block.origin] for block in kept if block.origin is not None)
    chosen = [block for block in kept if id(block) in new][: max(left, 0)]
    return {id(block): splice(block.raw, {CACHE_CONTROL: new[id(block)]}) for block in chosen}


def _marks_inside(block: Mapping[str, Any]) -> int:
    """Count the marks on the parts of a tool result."""
    parts = block.get("content")
    return (
        sum(isinstance(part, dict) and bool(part.get(CACHE_CONTROL)) for part in parts)
        if isinstance(parts, list)
        else 0
    )


def _before(kept: Sequence[SentBlock], position: BlockPosition) -> SentBlock | None:
    """Return the nearest block before a position that may carry a mark."""
    found = None
    for block in kept:
        if block.origin is not None and block.origin > position:
            break
        if block.kind in _CARRIERS:
            found = block
    return found


def _mark_for_digest(
    kept: Sequence[SentBlock], digest: SentBlock, marks: Mapping[int, Any], all_marks: Mapping[BlockPosition, Any]
) -> Any:
    """Return the mark for the digest: that of the next marked block, or the last one. Marks with a longer lifetime must come
    first."""
    after = kept[kept.index(digest) :]
    return next((marks[id(block)] for block in after if id(block) in marks), all_marks[max(all_marks)])
