"""The current question: its messages, and whether they can be sent whole."""

from collections.abc import Sequence
from typing import Final

from gateway.context.cut.source import Source

OVERCOUNT_FACTOR: Final = 1.35
"""Factor. An estimated count may be a third too high. Until an upstream has refused, a question that is too large by no
more than this factor is sent whole."""


def question_indices(source: Source) -> tuple[int, ...]:
    """Return the user messages of the current turn, by index; empty without one. They are the messages that stay whole if that is possible.

    If no turn begins with a user message, it is the last message that the user wrote. Nothing is quoted for such a message: `Layout.question`, for
    which lines are quoted, is empty then. In any other case the two are the same.
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
    """Return the messages that no stage but the last may change: pinned messages, a prefill, and the question.

    If the question does not fit as a whole, only its last message is among them; if that does not fit either, none of its messages is.
    """
    question = question_indices(source)
    whole: tuple[int, ...] = ()
    if source.policy.question == "refuse" or _fits_alone(source, question):
        whole = question
    elif _fits_alone(source, question[-1:]):
        whole = question[-1:]
    return frozenset((*source.structure.pinned, *prefill_of(source), *whole))


def _fits_alone(source: Source, question: Sequence[int]) -> bool:
    """Return whether pinned messages and the question fit the window when nothing else is sent."""
    needed = (*source.structure.pinned, *question)
    return may_fit(source, sum(source.cost_without_ids(source.messages[index]) for index in needed))


def may_fit(source: Source, tokens: int) -> bool:
    """Return whether messages of so many tokens may fit the window with the least room for an answer, so that none of the question must
    go."""
    overcount = 1.0 if source.counter.exact or source.budget.refused_before else OVERCOUNT_FACTOR
    return tokens <= source.budget.largest_room * overcount


def _role(source: Source, index: int) -> object:
    return source.messages[index].get("role")
