"""What a counted request must fit: the reserve for its answer, and the task for one place.

The gateway and the library build their tasks here, so that both keep the same free.
"""

from math import ceil
from typing import Any, Final, NamedTuple

from gateway.context.count import message_cost, tokens
from gateway.context.count.tokens import TokenCount
from gateway.context.cut.policy import Policy
from gateway.context.life.ladder import Task
from gateway.wire.format import Conversation

RESERVE: Final = 4096
"""Tokens kept for an answer without a limit of its own, at most. Chosen: most answers are shorter; see `RESERVE_SHARE`."""
RESERVE_SHARE: Final = 4
"""Divisor: at most one part in so many of the window is kept for an answer without a limit of its own. Chosen for small windows."""
MOST_SLACK: Final = 0.6
"""Share of an estimate by which the truth may lie below it, at most. Chosen: above it nothing would ever be refused."""
SLACK_OF_ERROR: Final = 1.5
"""Factor of an estimate's relative error that is allowed for in doubt. Chosen: the error is that of nine texts in ten."""


class Measurement(NamedTuple):
    """A request as it was counted."""

    stable: TokenCount
    """By the vocabulary and the learned ratio: where a cut stands is asked of it."""
    best: TokenCount
    """By the conversation's last bill where there is one: whether the request fits is asked of it."""
    plain_fixed: int
    """Tools, schemas and the overhead by the vocabulary alone."""
    bounded: bool
    """Media are counted by an upper bound, or text is included by reference."""
    ratio: float = 1.0
    """The learned factor of `stable`."""
    anchored: bool = False
    """Whether a bill of the conversation was at hand."""


def reserve_for(
    request: Conversation, window: int, *, configured: int | None, largest: int | None, counted: bool
) -> tuple[int, int | None]:
    """Return the tokens to reserve for the answer, and the client's own limit.

    ``configured`` is the operator's reserve, ``largest`` the model's longest answer; ``counted`` tells whether the model counts
    its answer against the window.
    """
    asked = next((limit for limit in request.output_limits if limit > 0), None)
    if asked is not None and counted:
        return asked, asked
    reserve = configured if configured is not None else min(RESERVE, window // RESERVE_SHARE)
    reserve = min(reserve, largest) if largest else reserve
    return reserve if asked is None else min(reserve, asked), None


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
    sure = stable.basis == "exact"
    plain = message_cost.counter(family, images, request.memory)
    return Task(
        request=request,
        model=model,
        window=window,
        prompt=best.total,
        fixed=stable.fixed,
        margin=tokens.margin(best, window, policy.margin),
        fold_margin=tokens.margin(stable, window, policy.margin) if sure else ceil(window * policy.margin),
        reserve=reserve[0],
        asked=reserve[1],
        floor=policy.min_output,
        counter=message_cost.scaled(plain, found.ratio, request.memory),
        policy=policy,
        plain=plain,
        plain_fixed=found.plain_fixed,
        bounded=found.bounded or best.has_upper_bounds,
        basis=best.basis,
        slack=best.error if sure or found.anchored else min(MOST_SLACK, SLACK_OF_ERROR * best.error),
        **known,
    )
