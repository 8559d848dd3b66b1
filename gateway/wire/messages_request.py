"""A body of the Anthropic Messages format: its messages with their blocks, and the origins of its views."""

from typing import Final

import msgspec

from gateway.wire.views import Piece, ViewedRequest

THINKING: Final = frozenset({"thinking", "redacted_thinking"})
SERVER_CALLS: Final = frozenset({"server_tool_use", "mcp_tool_use"})
"""Calls of tools that the server runs. The result is in the same message or in a later one."""
CALLS: Final = SERVER_CALLS | {"tool_use"}


class BlockOrigin(msgspec.Struct, frozen=True):
    """The origin of a view: the message in the body and its blocks, None when its content is one text."""

    at: int
    """Index of the message; -1 for ``system``."""
    blocks: tuple[int, ...] | None


class BodyMessage(msgspec.Struct, frozen=True):
    """One message of the body."""

    raw: bytes
    role: str
    content: str | None
    """The content if it is one text."""
    blocks: tuple[Piece, ...] = ()


class MessagesRequest(ViewedRequest, frozen=True, kw_only=True, eq=False):
    """A Messages body: its bytes, its messages, and their views."""

    body_messages: tuple[BodyMessage, ...]
    origins: tuple[BlockOrigin, ...]
    compacted: tuple[int, int]
    """The message and the block of the newest compaction; (-1, -1) where there is none."""
    cleared: frozenset[int]
    """Messages that the model no longer sees: see `_cleared`."""

    @property
    def message_count(self) -> int:
        return len(self.body_messages)

    @property
    def output_limits(self) -> tuple[int, ...]:
        return self.output_limits_named("max_tokens")

    @property
    def refers_elsewhere(self) -> bool:
        return self.continues or any(self.head.get(name) for name in ("container", "mcp_servers"))

    @property
    def continues(self) -> bool:
        """Whether the server has the messages before these, as in `thread: {"type": "continue"}`."""
        thread = self.head.get("thread")
        return isinstance(thread, dict) and thread.get("type") == "continue"
