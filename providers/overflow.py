"""What a refusal says about size."""

import re
from typing import Literal

from providers.record import Overflow, Refusal

_CONTEXT = re.compile(
    rb"maximum context length is (\d+) tokens.{0,80}?(?:requested|resulted in|has|contains at least) (?:about )?(\d+)",
    re.S,
)


def read_refusal(status: int, body: bytes, where: Literal["http", "sse"]) -> Refusal | None:
    """Read what an answer says about size; None when it is not about size."""
    head = body[:65536]
    match = _CONTEXT.search(head)
    if match and b"error" in head and b'"choices"' not in head:
        return Overflow(limit=int(match[1]), prompt=int(match[2]), sign="context")
    if b"context_length_exceeded" in head and b'"choices"' not in head:
        return Overflow(sign="code")
    return None
