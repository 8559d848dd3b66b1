"""The answers of the stand-in: values that a test writes and the server plays."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"

Pace = Callable[[int], Awaitable[None]]
"""Awaited before each chunk is sent, with its number: a test can hold a stream without sleeping."""


class Gate:
    """A pace that a test opens chunk by chunk. Chunk 0 follows the headers."""

    def __init__(self, open_until: int = 0) -> None:
        self._passes = asyncio.Semaphore(open_until)

    def release(self, chunks: int = 1) -> None:
        """Let so many more chunks be sent."""
        for _ in range(chunks):
            self._passes.release()

    async def __call__(self, _: int) -> None:
        await self._passes.acquire()


@dataclass(frozen=True, slots=True)
class Completion:
    """A good chat completion, streamed when the request asks for a stream."""

    text: str = "Understood."
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    """Complete calls as in an assistant message; a stream carries their arguments in pieces."""
    finish_reason: str = ""
    """Empty: ``tool_calls`` when there are some, else ``stop``."""
    pieces: int = 3
    """The number of text chunks in a stream."""
    usage: Mapping[str, Any] | None = None
    """Replaces the stand-in's own count."""
    headers: Mapping[str, str] = field(default_factory=dict)
    pace: Pace | None = None


@dataclass(frozen=True, slots=True)
class Refuse:
    """A "too long" in the words of a server, whatever the request's real size."""

    dialect: str = ""
    """Empty: the stand-in's own."""
    limit: int | None = None
    """The limit to state; None: the window."""
    prompt: int | None = None
    """The prompt size to state; None: the counted one."""


@dataclass(frozen=True, slots=True)
class Raw:
    """Exactly these bytes: any status, any headers, any end. Used for faults on the wire."""

    status: int = 200
    chunks: tuple[bytes, ...] = ()
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": JSON})
    pace: Pace | None = None
    before: Pace | None = None
    """Awaited before the headers are sent."""
    end: Literal["close", "reset", "silence"] = "close"
    """The end: proper, with a connection reset, or never (until the other side leaves)."""
    sends_head: bool = True
    """Whether the head of the answer is sent before the end."""


Answer = Completion | Refuse | Raw
