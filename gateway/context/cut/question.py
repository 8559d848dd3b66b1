"""The current question: its messages, and whether they can be sent whole."""

from collections.abc import Sequence
from typing import Final

from gateway.context.cut.source import Source

OVERCOUNT_FACTOR: Final = 1.35
"""Factor. An estimated count may be a third too high. Until an upstream has refused, a question that is too large by no
more than this factor is sent whole."""


def question_of(source: Source) -> tuple[int, ...]:
    """Return the user messages of the current turn, by index; empty without one. They are the messages that stay whole if that is possible.

    Of a turn without user messages it is the last one that the user wrote at all. `Layout.question`, for which lines are quoted, is the newest
    unit with user messages: nearly always the same.
    """
    turn = source.structure.current
    if turn is not None and turn.user:
        return turn.user
    last = next((index for index in range(len(source.messages) - 1, -1, -1) if _role(source, index) == "user"), None)
    return () if last is None else (last,)


def prefill_of(source: Source) -> tuple[int, ...]:
    """Return the assistant message that ends a request, by index; empty without one. The model continues it, so it is
    never changed."""
    last = len(source.messages) - 1
    return (last,) if last >= 0 and _role(source, last) == "assistant" else ()


def kept_whole(source: Source) -> frozenset[int]:
    """Return the messages that no rung may change: pinned messages, a prefill, and as much of the question as fits when nothing else is
    sent."""
    pinned = source.structure.pinned
    whole = whole_beside(source, sum(source.cost_without_ids(source.messages[index]) for index in pinned))
    return frozenset((*pinned, *prefill_of(source), *whole))


def whole_beside(source: Source, others: int) -> Sequence[int]:
    """Return the messages of the question that stay whole beside other messages of so many tokens.

    If the whole question does not fit, only its last message is one of them; if that does not fit either, none is.
    """
    question = question_of(source)
    if source.policy.question == "refuse":
        return question
    overcount = 1.0 if source.counter.exact or source.budget.refused_before else OVERCOUNT_FACTOR
    for whole in (question, question[-1:]):
        needed = others + sum(source.cost_without_ids(source.messages[index]) for index in whole)
        if needed <= source.budget.largest_room * overcount:
            return whole
    return ()


def _role(source: Source, index: int) -> object:
    return source.messages[index].get("role")
