"""Compression: one conversation made to fit one budget, by the gentlest rung that is asked for."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from gateway.context import marks
from gateway.context.count.counter import Counter
from gateway.context.cut.budget import Budget
from gateway.context.cut.layout import Source
from gateway.context.cut.policy import Policy
from gateway.context.cut.summary import Summary
from gateway.context.cut.turns import split
from gateway.context.write.draft import Draft, Step
from gateway.context.write.fold import fold
from gateway.wire.chat import Message

HARD_TURNS: Final = 5


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

    Rung 1 does as much as is needed, stage by stage. Rung 2 keeps at most five turns and 10,000 characters of any text; rung
    3 keeps the pinned messages and the last user message, with the newest step where the request ends inside a
    tool loop. Never raises. Where nothing fits, the smallest draft there is comes back: compare its cost with the room.
    """
    whole = Draft(tuple(messages), tuple(map(counter.message, messages)))
    if rung <= 1 and whole.cost <= budget.room and policy.max_turns is None:
        return whole
    try:
        if rung > 1:
            policy = replace(policy, max_turns=min(policy.max_turns or HARD_TURNS, HARD_TURNS))
        source = source_of(messages, budget, counter, policy, summary=summary, system_role=system_role, rung=rung)
        if rung <= 1 and whole.cost <= budget.room and len(source.conversation.turns) <= (policy.max_turns or 1):
            return whole
        return fold(source)
    except Exception as error:  # noqa: BLE001  # a bug in folding must never cost the client its answer (promise 6)
        return replace(whole, steps=(Step("failed", 0, type(error).__name__),))


def source_of(
    messages: Sequence[Message],
    budget: Budget,
    counter: Counter,
    policy: Policy,
    *,
    summary: Summary | None = None,
    system_role: bool = True,
    rung: int = 1,
) -> Source:
    """Gather what a fold is made from: the messages without notes of an earlier fold, and what stood in those."""
    plain, found = list(messages), []
    for index, message in enumerate(messages):
        if message.get("role") != "tool" and marks.may_have_one(message):
            plain[index], text = marks.without(message)
            found.append(text)
    earlier = "\n".join(filter(None, found))
    return Source(tuple(plain), split(plain), budget, counter, policy, summary, system_role, rung, earlier)
