"""An upstream's reply to a request, in the core's terms: an answer or a refusal.

This file does not know how a provider words a refusal: `providers.overflow` reads that, and the driver hands it in as numbers.
"""

from typing import Any

import msgspec


class StatedNumbers(msgspec.Struct, frozen=True):
    """A refusal's numbers in tokens, None when not stated; the shape of ``providers.record.Overflow``."""

    limit: int | None = None
    """The window, or the largest prompt."""
    prompt: int | None = None
    completion: int | None = None
    """The requested output."""
    total: int | None = None
    """Prompt and requested output together, where only their sum is stated."""
    exact: bool = True
    """False if ``prompt`` or ``total`` is only a bound (*at least N*). A bound decides no size."""
    excess: int | None = None
    """Tokens above the limit, when only the difference is stated."""


class OutputLimit(msgspec.Struct, frozen=True):
    """The upstream accepts the prompt but not the requested output."""

    limit: int | None = None
    """The largest output that it states, in tokens; some state the whole window instead."""


class ThinkingRejected(msgspec.Struct, frozen=True):
    """The upstream rejects signed thinking of earlier answers: at its place, or everywhere."""

    limit: int | None = None
    """Always None: each kind of numbers has a limit, so that the record of a call need not ask which kind it is."""


Numbers = StatedNumbers | OutputLimit | ThinkingRejected
"""The numbers of a refusal, by what it is about: the prompt, the output, or signed thinking."""


class Refusal(msgspec.Struct, frozen=True):
    """An upstream refuses a request because of its size, or because of signed thinking: the sign that matched, and the numbers."""

    sign: str
    numbers: Numbers

    @property
    def too_long(self) -> bool:
        """Return whether the prompt is too long, and not only the requested output."""
        return isinstance(self.numbers, StatedNumbers)


class Reply(msgspec.Struct, frozen=True):
    """An upstream's answer, read far enough to recognise a refusal."""

    status: int
    refusal: Refusal | None = None
    refusal_body: bytes = b""
    """The decoded body with the refusal."""
    empty_stream: bool = False
    """A stream that ended without an event: some servers refuse long prompts this way (case 123)."""
    handle: Any = None
    """The answer itself, for the driver."""
