"""Compression: make one conversation fit one budget, by the gentlest sufficient rung."""

from collections.abc import Sequence
from dataclasses import replace

from gateway.context import marks
from gateway.context.count.counter import Counter
from gateway.context.cut.budget import Budget
from gateway.context.cut.layout import Source
from gateway.context.cut.policy import Policy
from gateway.context.cut.rungs import FOLD, RUNGS, Rung
from gateway.context.cut.summary import Summary
from gateway.context.cut.turns import split
from gateway.context.write import remembered
from gateway.context.write.draft import Draft, Step
from gateway.wire.memory import Memory
from gateway.wire.message import PINNED_ROLES, Message


def compress(
    messages: Sequence[Message],
    budget: Budget,
    counter: Counter,
    policy: Policy,
    *,
    rung: int = 1,
    summary: Summary | None = None,
    memory: Memory | None = None,
    prepared: Source | None = None,
) -> Draft:
    """Fold a conversation into its room; a conversation that fits is returned unchanged.

    ``prepared`` is the source of the first fold where it is known already. ``rung`` is a place in `RUNGS`; the first fold does as
    much as is needed, stage by stage. Never raises. When nothing fits, the smallest draft is returned: compare its cost with the room.
    """
    key = remembered.key_of(messages, counter, budget, policy, rung, summary)
    if (found := remembered.recall(key, messages, memory)) is not None:
        return found
    whole = Draft(tuple(messages), tuple(map(counter.message, messages)))
    if rung <= 1 and whole.cost <= budget.room and policy.max_turns is None:
        return whole
    try:
        level = RUNGS[rung]
        if level.max_turns is not None:
            policy = replace(policy, max_turns=min(policy.max_turns or level.max_turns, level.max_turns))
        source = prepared or source_of(messages, budget, counter, policy, summary=summary, rung=level, memory=memory)
        if rung <= 1 and whole.cost <= budget.room and len(source.conversation.turns) <= (policy.max_turns or 1):
            return whole
        from gateway.context.write.fold import fold  # noqa: PLC0415  # a tenth of the start, which nothing else needs

        draft = fold(source)
        remembered.keep(key, messages, draft, memory)
        return draft
    except Exception as error:  # noqa: BLE001  # a bug in folding must never cost the client its answer (promise 6)
        return replace(whole, steps=(Step("failed", 0, type(error).__name__),))


def source_of(
    messages: Sequence[Message],
    budget: Budget,
    counter: Counter,
    policy: Policy,
    *,
    summary: Summary | None = None,
    rung: Rung = FOLD,
    memory: Memory | None = None,
) -> Source:
    """Return the input of a fold: the messages without notes of an earlier fold, and the rows of those notes."""
    plain: list[Message] = []
    found: list[str] = []
    for index, message in enumerate(messages):
        bare, text = marks.without(message)
        if bare is None and not _carrier(messages, index):
            bare, text = message, ""
        if bare is not None:
            plain.append(bare)
        elif summary is not None and index < summary.covers:
            summary = replace(summary, covers=summary.covers - 1)
        if text:
            found.append(text)
    earlier = "\n".join(found)
    return Source(tuple(plain), split(plain), budget, counter, policy, summary, rung, earlier, memory or Memory())


def _carrier(messages: Sequence[Message], index: int) -> bool:
    """Return whether a message is at the place of a note's own message: before the first message, which is not the
    user's."""
    follows = messages[index + 1].get("role") if index + 1 < len(messages) else "user"
    return follows not in {"user", *PINNED_ROLES} and all(
        message.get("role") in PINNED_ROLES for message in messages[:index]
    )
