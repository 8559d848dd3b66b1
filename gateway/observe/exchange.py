"""The exchange: one frozen record of what happened to one request, without any message text, for every observer."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from gateway.context.write.draft import Step

Action = Literal["none", "fold", "retry", "observe", "off", "error"]


class Exchange(NamedTuple):
    """What happened to one chat request. Token counts are None where nothing was counted; times are in seconds.

    A named tuple, because every request makes one and a frozen dataclass of this many fields takes five times as long.
    """

    request_id: str
    upstream: str
    model: str
    """The model as the client named it; never used as a metric label (its values are the client's)."""
    entry: str
    """The configured or catalogued entry that decided the window: bounded, safe as a label."""
    action: Action
    status: int
    stream: bool
    window: int
    tokens_before: int | None
    tokens_after: int | None
    basis: str
    turns_folded: int = 0
    attempts: int = 1
    refusals: tuple[str, ...] = ()
    """The signs by which refusals were recognised, in order."""
    steps: tuple[Step, ...] = ()
    why: str = ""
    """Why nothing was folded, in one word of a fixed list; empty where the request was folded."""
    warning: str = ""
    error: str = ""
    """The code of an error of our own, or the kind of fault of the upstream; empty otherwise."""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    body_bytes: int = 0
    decided_s: float = 0.0
    """From the whole request read to the first attempt ready."""
    first_byte_s: float = 0.0
    """From the request's arrival to the first byte towards the client."""
    total_s: float = 0.0


Observer = Callable[[Exchange], None]
"""Gets every exchange, synchronously, once the response has ended. Must be quick and must not raise."""
