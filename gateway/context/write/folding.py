"""Make a conversation fit a budget, on one rung of the ladder: by an earlier draft, or by a new fold."""

from collections.abc import Sequence

from msgspec.structs import replace

from gateway.context import frames
from gateway.context.count.counter import Counter
from gateway.context.cut.budget import Budget
from gateway.context.cut.policy import Policy
from gateway.context.cut.rungs import FOLD, RUNGS, RungLimits
from gateway.context.cut.source import Source
from gateway.context.cut.summary import Summary
from gateway.context.cut.turns import split
from gateway.context.read.view import as_sent
from gateway.context.write import draft_cache
from gateway.context.write.draft import Draft, Step
from gateway.wire.memory import Memory
from gateway.wire.message import PINNED_ROLES, Message


def fold_conversation(
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

    ``rung`` is a position in `RUNGS`. ``prepared`` is the source of this fold, if the caller has made it already. Never
    raises. If nothing fits, the smallest draft is returned, which costs more than the room.
    """
    key = draft_cache.key_of(messages, counter, budget, policy, rung, summary)
    if (cached := draft_cache.find(key, messages, memory)) is not None:
        return cached
    unchanged = Draft(tuple(messages), tuple(map(counter.message, messages)))
    if rung <= 1 and unchanged.cost <= budget.room and policy.max_turns is None:
        return unchanged
    try:
        rung_limits = RUNGS[rung]
        most_turns = rung_limits.max_turns
        if most_turns is not None:
            policy = replace(policy, max_turns=min(policy.max_turns or most_turns, most_turns))
        source = prepared or source_of(
            messages, budget, counter, policy, summary=summary, rung_limits=rung_limits, memory=memory
        )
        if rung <= 1 and unchanged.cost <= budget.room and len(source.structure.turns) <= (policy.max_turns or 1):
            return unchanged
        from gateway.context.write.stages import fold  # noqa: PLC0415  # a tenth of the start-up time, and only a fold needs it

        draft = fold(source)
        draft = replace(draft, messages=tuple(map(as_sent, draft.messages)))
        draft_cache.store(key, messages, draft, memory)
        return draft
    except Exception as error:  # noqa: BLE001  # a bug in folding must never cost the client its answer (promise 6)
        return replace(unchanged, steps=(Step("failed", 0, type(error).__name__),))


def source_of(
    messages: Sequence[Message],
    budget: Budget,
    counter: Counter,
    policy: Policy,
    *,
    summary: Summary | None = None,
    rung_limits: RungLimits = FOLD,
    memory: Memory | None = None,
) -> Source:
    """Return the input of a fold: the messages without the notes of an earlier fold, and the rows of these notes."""
    plain: list[Message] = []
    notes: list[str] = []
    for index, message in enumerate(messages):
        rest, rows = frames.without(message)
        if rest is None and not _carries_note(messages, index):
            rest, rows = message, ""
        if rest is not None:
            plain.append(rest)
        elif summary is not None and index < summary.covers:
            summary = replace(summary, covers=summary.covers - 1)
        if rows:
            notes.append(rows)
    from gateway.context.read.as_calls import as_calls  # noqa: PLC0415  # see `fold_conversation`
    from gateway.context.read.as_said import as_said  # noqa: PLC0415

    earlier_notes = "\n".join(notes)
    memory = memory or Memory()
    read = tuple(as_said(as_calls(plain), memory))
    return Source(read, split(read), budget, counter, policy, summary, rung_limits, earlier_notes, memory)


def _carries_note(messages: Sequence[Message], index: int) -> bool:
    """Return whether a message is at the position where the gateway adds a message for a note: after pinned messages only, and before
    a message that is not the user's."""
    follows = messages[index + 1].get("role") if index + 1 < len(messages) else "user"
    return follows not in {"user", *PINNED_ROLES} and all(
        message.get("role") in PINNED_ROLES for message in messages[:index]
    )
