"""Compression: one conversation made to fit one budget, by the gentlest rung that is asked for."""

from collections.abc import Sequence
from dataclasses import replace

from gateway.context.budget import Budget
from gateway.context.draft import Counter, Draft, Step
from gateway.context.fold import Source, fold
from gateway.context.policy import Policy
from gateway.context.summary import Summary
from gateway.context.turns import split
from providers.wire import Message

HARD_TURNS = 5


def compress(
    messages: Sequence[Message],
    budget: Budget,
    counter: Counter,
    policy: Policy,
    *,
    rung: int = 1,
    summary: Summary | None = None,
    system_role: bool = True,
) -> Draft:
    """Fold a conversation into its room; what fits comes back as it is.

    Never raises. Where nothing fits, the smallest draft there is comes back: compare its cost with the room.
    """
    costs = tuple(counter.message(message) for message in messages)
    whole = Draft(tuple(messages), costs)
    if rung <= 1 and whole.cost <= budget.room:
        return whole
    if rung == 2:
        policy = replace(policy, max_turns=min(policy.max_turns or HARD_TURNS, HARD_TURNS))
    if rung >= 3:
        policy = replace(policy, max_turns=1, recall_share=0.0)
    try:
        return fold(Source(messages, split(messages), budget, counter, policy, summary, system_role))
    except Exception as error:  # noqa: BLE001  # a bug in folding must never cost the client its answer (promise 6)
        return replace(whole, steps=(Step("failed", 0, type(error).__name__),))
