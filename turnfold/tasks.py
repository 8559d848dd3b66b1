"""The core's task for one request of the library: what the gateway finds out about a model, from the catalogue alone."""

from math import ceil

from gateway.context.count import message_cost, tokens
from gateway.context.cut.policy import Policy
from gateway.context.life.ladder import Task
from gateway.wire.format import Conversation

RESERVE = 4096
"""Tokens kept for an answer without a limit of its own, at most; see `RESERVE_SHARE`. The same as the gateway's default."""
RESERVE_SHARE = 4
"""Divisor: at most one part in so many of the window is kept for an answer without a limit of its own."""


def task_of(
    request: Conversation,
    *,
    model: str,
    window: int | None,
    policy: Policy,
    output_reserve: int | None = None,
    tokenizer: str = "auto",
) -> Task:
    """Count a request and return what it must fit. Raises ValueError when no window is known."""
    facts = None
    if window is None or (tokenizer == "auto" and model):
        from gateway.config import catalogue  # noqa: PLC0415  # it reads a file, which a caller that names both spares

        facts = catalogue.load().find(model) if model else None
    if window is None:
        if facts is None:
            raise ValueError(f"no context window is known for the model {model!r}: pass window=, in tokens")
        window = facts.context_window
    family = tokenizer if tokenizer != "auto" else facts.family if facts else "unknown"
    images = facts.images if facts else ""
    found = tokens.count_request(request, family, images)
    counter = message_cost.counter(family, images, request.memory)
    asked = next((limit for limit in request.output_limits if limit > 0), None)
    if facts is not None and not facts.counts_output and request.format.name == "messages":
        asked = None
    free = output_reserve if output_reserve is not None else min(RESERVE, window // RESERVE_SHARE)
    sure = found.basis == "exact"
    margin = tokens.margin(found, window, policy.margin)
    return Task(
        request=request,
        model=request.model or model,
        window=window,
        prompt=found.total,
        fixed=found.fixed,
        margin=margin,
        kept=margin if sure else ceil(window * policy.margin),
        reserve=asked if asked is not None else free,
        asked=asked,
        floor=policy.min_output,
        counter=counter,
        policy=policy,
        plain=counter,
        plain_fixed=found.fixed,
        configured=window,
        basis=found.basis,
        slack=found.error if sure else min(0.6, 1.5 * found.error),
        error=found.error,
        binds_thinking=facts is not None and facts.binds_thinking,
        bounded=found.bounded,
    )
