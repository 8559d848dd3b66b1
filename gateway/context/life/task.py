"""A task is one counted request that must fit one place.

The gateway and the library make their tasks here, so that both keep the same tokens free.
"""

from math import ceil
from typing import Final, NamedTuple

import msgspec

from gateway.context.cache.marking import NO_TERMS, CacheTerms
from gateway.context.count import message_cost, tokens
from gateway.context.count.counter import Counter
from gateway.context.count.tokens import TokenCount
from gateway.context.cut.policy import Policy
from gateway.context.cut.source import Source
from gateway.context.cut.summary import Summary
from gateway.context.life.attempt import Attempt
from gateway.context.life.bills import LastRequest
from gateway.wire.format import Conversation, output_limit_of
from gateway.wire.message import Message

DEFAULT_RESERVE: Final = 4096
"""Tokens kept for an answer without a limit of its own, at most. Chosen: most answers are shorter; see `RESERVE_DIVISOR`."""
RESERVE_DIVISOR: Final = 4
"""Divisor: at most one part in so many of the window is kept for an answer without a limit of its own. Chosen for small windows."""
LEAST_OUTPUT: Final = 16
"""Tokens. No output limit is lowered below this: OpenAI's Responses refuses less
(*Expected a value >= 16*: https://github.com/vectorize-io/hindsight/issues/58)."""
SMALL_WINDOW_DIVISOR: Final = 8
"""Divisor: in a small window the output may be lowered to one part in so many of it, below the configured ``min_output``."""
MOST_OVERCOUNT: Final = 0.6
"""Share of an estimate by which it may be too high, at most. Chosen: with more, nothing would ever be refused."""
OVERCOUNT_PER_ERROR: Final = 1.5
"""Overcount that is assumed, as a multiple of an estimate's relative error. Chosen: nine texts in ten are within the error."""


class Task(msgspec.Struct, frozen=True):
    """A counted request that must fit one place. All counts are tokens."""

    conversation: Conversation
    model: str
    """The model's name at the place; spliced in where the client used another."""
    window: int
    prompt: int
    """The original request by the best available count, including tools and overhead."""
    fixed: int
    """Tools, schemas and the overhead of a request, by the stable count."""
    margin: int
    """Kept free when the unchanged request is said to fit: the error of the count."""
    fold_margin: int
    """Kept free when the request is folded. It does not depend on the last answer, or the cut would move. It may be too small if a
    count is doubtful: then the upstream refuses, which costs one call and teaches its limit. A larger margin would cost context in
    every request.
    """
    reserve: int
    """Kept free for the answer: the client's limit, or the configured default."""
    output_limit: int | None
    """The client's own output limit; only this is ever lowered."""
    min_output: int
    """The output is not lowered below this; in a small window, not below an eighth of it."""
    counter: Counter
    """The stable counter: the only one that decides where a cut is."""
    policy: Policy
    plain_counter: Counter
    """The counter by the vocabulary alone, without anything learned."""
    plain_fixed: int
    """``fixed`` by the vocabulary alone."""
    configured_window: int
    """The window without anything learned."""
    basis: str = "estimate"
    """The source of ``prompt``: ``exact``, ``anchor`` or ``estimate``."""
    overcount: float = 0.0
    """Share of ``prompt`` by which our count may be too high: 0 for an exact count."""
    scope: str = ""
    """The scope of the request's memory: a hash of the caller's credentials and the upstream."""
    summary: Summary | None = None
    prepared: Source | None = None
    """The source of the first fold, if it was made before the fold, to find a summary. See `fold_conversation`."""
    error: float = 0.3
    """Relative error of a plain count."""
    has_upper_bounds: bool = False
    """Whether media are counted by an upper bound, or text is included by reference: then a bill teaches nothing about our
    count."""
    last_request: LastRequest | None = None
    """Facts about this conversation's last request."""
    binds_thinking: bool = False
    """Whether the model accepts signed thinking only after the conversation in which it was made."""
    cache: CacheTerms = NO_TERMS
    """What is added for the provider's prompt cache."""
    has_erratic_bills: bool = False
    """Whether bills of this model were absurd lately."""

    @property
    def message_tokens(self) -> int:
        """The part of ``prompt`` for messages."""
        return max(self.prompt - self.fixed, 0)

    def least_output(self, window: int) -> int:
        """Return the smallest output that an answer needs; never more than the client's limit."""
        least = min(self.min_output, max(window // SMALL_WINDOW_DIVISOR, LEAST_OUTPUT))
        return min(least, self.output_limit) if self.output_limit is not None else least

    def messages_of(self, attempt: Attempt) -> tuple[Message, ...]:
        """Return the messages of an attempt: its own, or the original ones."""
        return attempt.draft.messages if attempt.draft else self.conversation.messages

    def output_of(self, attempt: Attempt) -> int | None:
        """Return the output limit of an attempt: the lowered one, or the client's; None without one."""
        return attempt.output if attempt.output is not None else self.output_limit

    @property
    def fits(self) -> bool:
        """Return whether the request may be sent unchanged. Equality fits."""
        return self.prompt + self.reserve + self.margin <= self.window


class Measurement(NamedTuple):
    """A request as it was counted."""

    stable: TokenCount
    """The count by the vocabulary and the learned ratio. It decides where a cut is."""
    best: TokenCount
    """The count by the conversation's last bill, if there is one. It decides whether the request fits."""
    plain_fixed: int
    """Tools, schemas and the overhead by the vocabulary alone."""
    has_upper_bounds: bool
    """Whether media are counted by an upper bound, or text is included by reference."""
    ratio: float = 1.0
    """The learned factor of `stable`."""
    anchored: bool = False
    """Whether `best` is computed from a bill of the conversation."""


class Reserve(msgspec.Struct, frozen=True):
    """The tokens that are kept free for the answer."""

    tokens: int
    output_limit: int | None
    """The client's own limit; None if it set none, or if the model does not count its answer against the window."""


class MeasuredModel(NamedTuple):
    """The model for which a request was counted."""

    name: str
    """Its name at the upstream."""
    window: int
    """Its window for this request, in tokens."""
    configured_window: int
    """The same without anything learned from answers."""
    family: str
    images: str
    """The rule for the cost of images."""
    error: float
    """Relative error of a plain count."""
    binds_thinking: bool = False
    """Whether it accepts signed thinking only after the conversation in which it was made."""


def reserve_for(
    conversation: Conversation, window: int, *, configured: int | None, largest: int | None, counted: bool
) -> Reserve:
    """Return the tokens that are kept free for the answer.

    ``configured`` is the operator's reserve, ``largest`` the model's longest answer. ``counted`` is whether the model counts
    its answer against the window.
    """
    output_limit = output_limit_of(conversation)
    if output_limit is not None and counted:
        return Reserve(output_limit, output_limit)
    reserve = configured if configured is not None else min(DEFAULT_RESERVE, window // RESERVE_DIVISOR)
    reserve = min(reserve, largest) if largest else reserve
    return Reserve(reserve if output_limit is None else min(reserve, output_limit), None)


def task_from(
    conversation: Conversation, measured: Measurement, model: MeasuredModel, reserve: Reserve, policy: Policy
) -> Task:
    """Return the task of a counted request, without anything about its conversation."""
    stable, best, window = measured.stable, measured.best, model.window
    exact = stable.basis == "exact"
    plain = message_cost.counter(model.family, model.images, conversation.memory)
    return Task(
        conversation=conversation,
        model=model.name,
        window=window,
        prompt=best.total,
        fixed=stable.fixed,
        margin=tokens.margin(best, window, policy.margin),
        fold_margin=tokens.margin(stable, window, policy.margin) if exact else ceil(window * policy.margin),
        reserve=reserve.tokens,
        output_limit=reserve.output_limit,
        min_output=policy.min_output,
        counter=message_cost.scaled(plain, measured.ratio, conversation.memory),
        policy=policy,
        plain_counter=plain,
        plain_fixed=measured.plain_fixed,
        configured_window=model.configured_window,
        error=model.error,
        binds_thinking=model.binds_thinking,
        has_upper_bounds=measured.has_upper_bounds or best.has_upper_bounds,
        basis=best.basis,
        overcount=best.error if exact or measured.anchored else min(MOST_OVERCOUNT, OVERCOUNT_PER_ERROR * best.error),
    )
