"""The task of a counted request at one place, and the reserve for its answer.

The gateway and the library make their tasks here, so that both keep the same tokens free.
"""

from math import ceil
from typing import Final, NamedTuple

from gateway.context.count import message_cost, tokens
from gateway.context.count.tokens import TokenCount
from gateway.context.cut.policy import Policy
from gateway.context.life.ladder import Task
from gateway.wire.format import Conversation

DEFAULT_RESERVE: Final = 4096
"""Tokens kept for an answer without a limit of its own, at most. Chosen: most answers are shorter; see `RESERVE_DIVISOR`."""
RESERVE_DIVISOR: Final = 4
"""Divisor: at most one part in so many of the window is kept for an answer without a limit of its own. Chosen for small windows."""
MOST_OVERCOUNT: Final = 0.6
"""Share of an estimate by which it may be too high, at most. Chosen: with more, nothing would ever be refused."""
OVERCOUNT_PER_ERROR: Final = 1.5
"""Overcount that is assumed, as a multiple of an estimate's relative error. Chosen: nine texts in ten are within the error."""


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


class Reserve(NamedTuple):
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
    request: Conversation, window: int, *, configured: int | None, largest: int | None, counted: bool
) -> Reserve:
    """Return the tokens that are kept free for the answer.

    ``configured`` is the operator's reserve, ``largest`` the model's longest answer. ``counted`` is whether the model counts
    its answer against the window.
    """
    limits = request.output_limits
    output_limit = next((limit for limit in limits if limit > 0), None) if limits else None
    if output_limit is not None and counted:
        return Reserve(output_limit, output_limit)
    reserve = configured if configured is not None else min(DEFAULT_RESERVE, window // RESERVE_DIVISOR)
    reserve = min(reserve, largest) if largest else reserve
    return Reserve(reserve if output_limit is None else min(reserve, output_limit), None)


def task_from(
    request: Conversation, found: Measurement, model: MeasuredModel, reserve: Reserve, policy: Policy
) -> Task:
    """Return the task of a counted request, without anything about its conversation."""
    stable, best, window = found.stable, found.best, model.window
    exact = stable.basis == "exact"
    plain = message_cost.counter(model.family, model.images, request.memory)
    return Task(
        request=request,
        model=model.name,
        window=window,
        prompt=best.total,
        fixed=stable.fixed,
        margin=tokens.margin(best, window, policy.margin),
        fold_margin=tokens.margin(stable, window, policy.margin) if exact else ceil(window * policy.margin),
        reserve=reserve.tokens,
        output_limit=reserve.output_limit,
        min_output=policy.min_output,
        counter=message_cost.scaled(plain, found.ratio, request.memory),
        policy=policy,
        plain_counter=plain,
        plain_fixed=found.plain_fixed,
        configured_window=model.configured_window,
        error=model.error,
        binds_thinking=model.binds_thinking,
        has_upper_bounds=found.has_upper_bounds or best.has_upper_bounds,
        basis=best.basis,
        overcount=best.error if exact or found.anchored else min(MOST_OVERCOUNT, OVERCOUNT_PER_ERROR * best.error),
    )
