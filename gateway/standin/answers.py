"""What the stand-in can be told to answer: values a test writes down and the server plays."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"

Pace = Callable[[int], Awaitable[None]]
"""Awaited before the chunk of that number leaves: how a test holds a stream without sleeping."""


class Gate:
    """A pace that lets chunks through one by one, as the test says. Chunk 0 follows the headers."""

    def __init__(self, open_until: int = 0) -> None:
        self._passes = asyncio.Semaphore(open_until)

    def release(self, chunks: int = 1) -> None:
        """Let so many more chunks leave."""
        for _ in range(chunks):
            self._passes.release()

    async def __call__(self, _: int) -> None:
        await self._passes.acquire()


@dataclass(frozen=True, slots=True)
class Reply:
    """A good chat completion, streamed when the request asks for a stream."""

    text: str = "Understood."
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    """Whole calls as in an assistant message; a stream carries their arguments in pieces."""
    finish_reason: str = ""
    """Empty: ``tool_calls`` when there are some, else ``stop``."""
    pieces: int = 3
    """How many chunks of text a stream has."""
    usage: Mapping[str, Any] | None = None
    """Instead of what the stand-in counts."""
    headers: Mapping[str, str] = field(default_factory=dict)
    pace: Pace | None = None


@dataclass(frozen=True, slots=True)
class Refuse:
    """Too long, in the words of a server, whatever the request's real size."""

    dialect: str = ""
    """Empty: the stand-in's own."""
    limit: int | None = None
    """The limit to state; None: the window."""
    prompt: int | None = None
    """The prompt size to state; None: the counted one."""


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes exactly as given: any status, any headers, any end. What a fault looks like on the wire."""

    status: int = 200
    chunks: tuple[bytes, ...] = ()
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": JSON})
    pace: Pace | None = None
    before: Pace | None = None
    """Awaited before the headers leave."""
    end: Literal["close", "reset", "silence"] = "close"
    """How it ends: properly, with the connection reset, or never (until the other side leaves)."""
    said: bool = True
    """False: not even headers are sent before the end."""


Answer = Reply | Refuse | Raw
