"""The exchange: one frozen record of what happened to one request, without any message text, for every observer."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from gateway.context.write.draft import Step

Action = Literal["none", "fold", "retry", "observe", "off", "error"]
Why = Literal[
    "proven",  # fits by its size in bytes; nothing was counted
    "fits",  # fits by the count
    "lowered",  # fits with a lower output limit
    "folded",  # did not fit, or was refused
    "observe",  # only reported what would be done
    "off",  # folding is switched off
    "too_large",  # even the smallest form does not fit
    "failed",  # a fault of the gateway's own: forwarded as it came, or answered with an error
    "stateful",  # refers to an earlier response: the history is not in the body
    "not_chat",  # another endpoint, passed through
    "not_understood",  # a body that is no conversation, passed through
    "websocket",  # passed through
    "rejected",  # refused by the gateway before anything was sent
    "malformed",  # no valid HTTP
]
"""Why the gateway did what it did with a request, in one word."""


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
    why: Why | Literal[""] = ""
    """The reason for the action, in one word."""
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
    mode: str = ""
    """``enforce``, ``observe`` or ``off``; empty where nothing could have been folded."""
    format: str = ""
    """The wire format of the body, ``chat`` for example; empty where it was not read."""
    question_kept: float | None = None
    """The share of the current question that was sent where it had to be cut; None where it was sent whole."""

    @classmethod
    def passed(cls, request_id: str, why: Why, status: int, *, error: str = "", **known: Any) -> "Exchange":
        """The record of a request about which nothing was decided: passed through, or refused before anything was sent."""
        facts: dict[str, Any] = {
            "upstream": "", "model": "", "entry": "", "stream": False, "window": 0, "tokens_before": None,
            "tokens_after": None, "basis": "", "attempts": 0, **known,
        }  # fmt: skip
        return cls(
            request_id=request_id, why=why, action="error" if error else "none", status=status, error=error, **facts
        )


Observer = Callable[[Exchange], None]
"""Gets every exchange, synchronously, once the response has ended. Must be quick and must not raise."""
