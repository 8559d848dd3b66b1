"""The task of a counted request at one place, and the reserve for its answer.

The gateway and the library make their tasks here, so that both keep the same tokens free.
"""

from math import ceil
from typing import Any, Final, NamedTuple

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
    """Whether a bill of the conversation was at hand."""


def reserve_for(
    request: Conversation, window: int, *, configured: int | None, largest: int | None, counted: bool
) -> tuple[int, int | None]:
    """Return the tokens to reserve for the answer, and the client's own limit.

    ``configured`` is the operator's reserve, ``largest`` the model's longest answer. ``counted`` is whether the model counts
    its answer against the window.
    """
    output_limit = next((limit for limit in request.output_limits if limit > 0), None)
    if output_limit is not None and counted:
        return output_limit, output_limit
    reserve = configured if configured is not None else min(DEFAULT_RESERVE, window // RESERVE_DIVISOR)
    reserve = min(reserve, largest) if largest else reserve
    return reserve if output_limit is None else min(reserve, output_limit), None


def task_from(
    request: Conversation,
    found: Measurement,
    *,
    model: str,
    window: int,
    reserve: tuple[int, int | None],
    family: str,
    images: str,
    policy: Policy,
    **known: Any,
) -> Task:
    """Return the task of a counted request; ``known`` are further fields of it."""
    stable, best = found.stable, found.best
    exact = stable.basis == "exact"
    plain = message_cost.counter(family, images, request.memory)
    return Task(
        request=request,
        model=model,
        window=window,
        prompt=best.total,
        fixed=stable.fixed,
        margin=tokens.margin(best, window, policy.margin),
        fold_margin=tokens.margin(stable, window, policy.margin) if exact else ceil(window * policy.margin),
        reserve=reserve[0],
        output_limit=reserve[1],
        min_output=policy.min_output,
        counter=message_cost.scaled(plain, found.ratio, request.memory),
        policy=policy,
        plain_counter=plain,
        plain_fixed=found.plain_fixed,
        has_upper_bounds=found.has_upper_bounds or best.has_upper_bounds,
        basis=best.basis,
        overcount=best.error if exact or found.anchored else min(MOST_OVERCOUNT, OVERCOUNT_PER_ERROR * best.error),
        **known,
    )
