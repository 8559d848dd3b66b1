"""The current question: its messages, and whether they can be sent whole."""

from collections.abc import Sequence
from typing import Final

from gateway.context.cut.layout import Source

DOUBT: Final = 1.35
"""Factor. An estimated count may be a third too high; until an upstream has refused, a question this much too large is
sent whole."""


def question_of(source: Source) -> tuple[int, ...]:
    """Return the user messages of the current turn, by index; empty without one."""
    turn = source.conversation.current
    if turn is not None and turn.user:
        return turn.user
    last = next((index for index in range(len(source.messages) - 1, -1, -1) if _role(source, index) == "user"), None)
    return () if last is None else (last,)


def prefill_of(source: Source) -> tuple[int, ...]:
    """Return the assistant message at the end of a request, which the model continues: it is never changed."""
    last = len(source.messages) - 1
    return (last,) if last >= 0 and _role(source, last) == "assistant" else ()


def kept_whole(source: Source) -> frozenset[int]:
    """Return the messages that no rung may change: pinned ones, a prefill, and the question or at least its last
    message, if it fits."""
    question = question_of(source)
    whole = next(
        (part for part in (question, question[-1:]) if source.policy.question == "refuse" or fits(source, part)), ()
    )
    return frozenset((*source.conversation.pinned, *prefill_of(source), *whole))


def fits(source: Source, question: Sequence[int]) -> bool:
    """Return whether pinned messages and the question fit the window alone, with the shortest answer."""
    needed = sum(source.bare(source.messages[index]) for index in (*source.conversation.pinned, *question))
    doubt = 1.0 if source.counter.exact or source.budget.refused else DOUBT
    return needed <= source.budget.most * doubt


def _role(source: Source, index: int) -> object:
    return source.messages[index].get("role")
