"""The exchange: one frozen record of what happened to one request, without any message text, for every observer."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from gateway.context.write.draft import Step

Action = Literal["none", "fold", "retry", "observe", "off", "error"]
Why = Literal[
    "proven",  # its size in bytes proves that it fits; tokens were not counted
    "fits",  # the token count fits
    "lowered",  # fits with a lower output limit
    "folded",  # did not fit, or was refused
    "observe",  # only reported what would be done
    "off",  # folding is switched off
    "too_large",  # even the smallest form does not fit
    "failed",  # a fault of the gateway itself: forwarded unchanged, or answered with an error
    "stateful",  # refers to an earlier response: the history is not in the body
    "not_chat",  # another endpoint, passed through
    "not_understood",  # the body is not a conversation; passed through
    "websocket",  # passed through
    "rejected",  # refused by the gateway before anything was sent
    "malformed",  # no valid HTTP
]
"""The reason for the gateway's action, in one word."""


class Exchange(NamedTuple):
    """The record of one chat request. Token counts are None when not counted; times are in seconds.

    It is a named tuple, because every request makes one and a frozen dataclass with this many fields takes five times
    as long.
    """

    request_id: str
    upstream: str
    model: str
    """The model as the client named it; never used as a metric label (its values are the client's)."""
    entry: str
    """The configured or catalogued entry that decided the window: a bounded set, usable as a label."""
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
    """The signs of the recognised refusals, in order."""
    steps: tuple[Step, ...] = ()
    why: Why | Literal[""] = ""
    """The reason for the action, in one word."""
    warning: str = ""
    error: str = ""
    """Code of our own error, or kind of the upstream's fault; empty otherwise."""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    body_bytes: int = 0
    decided_s: float = 0.0
    """From the complete request to the first attempt ready to send."""
    first_byte_s: float = 0.0
    """From the request's arrival to the first byte sent to the client."""
    total_s: float = 0.0
    mode: str = ""
    """``enforce``, ``observe`` or ``off``; empty when nothing could have been folded."""
    format: str = ""
    """Wire format of the body, for example ``chat``; empty when the body was not read."""
    question_kept: float | None = None
    """The share of the current question that was sent, if it was cut; None if it was sent whole."""

    key: str = ""
    """The name of the client key, never the key; empty where the gateway asks for none."""

    @classmethod
    def passed(cls, request_id: str, why: Why, status: int, *, error: str = "", **known: Any) -> "Exchange":
        """Return the record of a request without a decision: passed through, or refused before anything was sent."""
        facts: dict[str, Any] = {
            "upstream": "", "model": "", "entry": "", "stream": False, "window": 0, "tokens_before": None,
            "tokens_after": None, "basis": "", "attempts": 0, **known,
        }  # fmt: skip
        return cls(
            request_id=request_id, why=why, action="error" if error else "none", status=status, error=error, **facts
        )


Observer = Callable[[Exchange], None]
"""Receives every exchange synchronously when the response has ended. Must be quick and must not raise."""
