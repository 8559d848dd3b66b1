"""The exchange: one record of what happened to one request, without any message text, for every observer.

Tokens of all kinds are integers; times of day are seconds since 1970.
"""

from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

import msgspec

from gateway.context.write.draft import Step
from providers.record import Usage

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
    "stateful",  # fits, and text outside the body enters the prompt: an earlier response, a stored prompt
    "compacted",  # a compaction: the upstream's, or our digest
    "not_chat",  # another known endpoint, passed through
    "unknown_endpoint",  # a path that no documented API has, passed through
    "not_json",  # the body is not JSON; passed through
    "not_understood",  # JSON, but not a conversation; passed through
    "websocket",  # passed through
    "own",  # answered by the gateway itself: a preflight request, the root page
    "rejected",  # refused by the gateway before anything was sent
    "left",  # the client left before it was decided what to send
    "malformed",  # no valid HTTP
]
"""The reason for the gateway's action, in one word."""


class Call(msgspec.Struct, frozen=True):
    """One call to an upstream."""

    upstream: str
    model: str
    """The model's name at the upstream."""
    status: int
    """0 when no answer came."""
    sign: str = ""
    """The sign by which a refusal was recognised; empty without one."""
    limit: int | None = None
    """The limit in tokens that the refusal states."""
    tokens: int | None = None
    """The prompt that was sent, by our count; None when nothing was counted."""
    rung: int = 0
    """The rung of the ladder: 0 unchanged, 1 the usual fold, above that after refusals."""
    seconds: float = 0.0
    """From sending to the recognised answer."""


class Lost(NamedTuple):
    """How much of a conversation the model does not get."""

    turns: int = 0
    """Turns that were folded."""
    lines: int = 0
    """Lines of the folded part that are neither in the digest nor in the quotes."""
    images: int = 0
    """Images, audio, video and files."""
    question_characters: int = 0
    """Characters of the current question."""


NOTHING_LOST: Final = Lost()
"""The model gets all of it."""


class Parts(NamedTuple):
    """The tokens of each part of the prompt, and the tokens reserved for the answer."""

    system: int = 0
    tools: int = 0
    """Tools, schemas and the overhead of a request."""
    digest: int = 0
    """The digest or summary of what was folded."""
    quotes: int = 0
    """Quotes from folded messages for a question."""
    history: int = 0
    question: int = 0
    """The last user message, without the note and the quotes in it."""
    reserve: int = 0
    """Kept free for the answer."""


CLIENT_GONE: Final = "client_gone"
"""The error of a request whose client left before it had the whole answer."""
CLIENT_GONE_STATUS: Final = 499
"""Its status; nginx's number."""


class Exchange(msgspec.Struct):
    """The record of one request. Token counts are None when not counted; times are in seconds.

    It is filled in where it is made, and only read by observers. It is not frozen, because setting a field costs 150 instructions, and
    naming it in a call with more than fifteen names 500.
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
    """Prompt tokens that were read from a cache."""
    written_tokens: int | None = None
    """Prompt tokens that were written to a cache, where the upstream bills them."""
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
    at: float = 0.0
    """When the request arrived, in seconds since 1970."""
    client: str = ""
    """The client's address."""
    method: str = ""
    path: str = ""
    """Without the query."""
    session: str = ""
    """The client's own name of the conversation, where it sends one; else empty."""
    conversation: str = ""
    """A hash of how the conversation begins and of the caller: the same for all its requests."""
    model_used: str = ""
    """The model's name at the upstream that answered."""
    answer_bytes: int = 0
    reserve: int = 0
    """Tokens kept free for the answer."""
    calls: tuple[Call, ...] = ()
    """Every call to an upstream, in order."""
    lost: Lost = NOTHING_LOST
    parts: Parts | None = None
    """The tokens of each part; None when nothing was counted."""
    caller: str = ""
    """A hash of the caller's credentials. With it an operator can delete everything that is stored about the caller."""

    def set_bill(self, usage: Usage) -> None:
        """Set the tokens that the upstream billed."""
        self.prompt_tokens, self.completion_tokens = usage.prompt, usage.completion
        self.cached_tokens, self.written_tokens = usage.cached, usage.written

    @classmethod
    def passed(
        cls, request_id: str, why: Why, status: int, *, error: str = "", usage: Usage | None = None, **known: Any
    ) -> "Exchange":
        """Return the record of a request without a decision: passed through, or refused before anything was sent. ``usage`` is its bill."""
        given: dict[str, Any] = {
            "upstream": "", "model": "", "entry": "", "stream": False, "window": 0, "tokens_before": None,
            "tokens_after": None, "basis": "", "attempts": 0, **known,
        }  # fmt: skip
        found = cls(
            request_id=request_id, why=why, action="error" if error else "none", status=status, error=error, **given
        )
        if usage is not None:
            found.set_bill(usage)
        return found


Observer = Callable[[Exchange], None]
"""Receives every exchange synchronously when the response has ended. Must be quick and must not raise."""
