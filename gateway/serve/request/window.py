"""What fills a model's window, and what of the conversation does not reach it: facts for the record, from the attempt."""

from typing import NamedTuple

from gateway.context.life.ladder import Attempt, Task
from gateway.context.write.draft import Draft
from gateway.observe.exchange import Lost, Parts
from gateway.wire.message import PINNED_ROLES, Message, media_parts

DIGESTS = frozenset({"digest", "summary", "note"})
"""Steps that write what stands for the folded part."""
QUOTES = "recall"
"""The step that writes excerpts."""


class Portrait(NamedTuple):
    """What an attempt sends and leaves out. Its making reads every message, so it is made where the attempt is."""

    attempt: Attempt
    lost: Lost
    parts: Parts


def portrait(task: Task, attempt: Attempt, known: Portrait | None = None) -> Portrait:
    """Describe an attempt for its record; the ``known`` portrait is used if it is of this attempt."""
    if known is not None and known.attempt is attempt:
        return known
    return Portrait(attempt, lost_by(task, attempt), parts_of(task, attempt))


def parts_of(task: Task, attempt: Attempt) -> Parts:
    """Return what fills the window of an attempt. The parts and the margin of the count add up to its prompt."""
    messages = task.messages_of(attempt)
    draft = attempt.draft
    costs = draft.costs if draft is not None else None
    system = sum(_cost(task, messages, costs, index) for index in _pinned(messages))
    question = sum(_cost(task, messages, costs, index) for index in _question(messages))
    digest, quotes = _written(draft, DIGESTS), _written(draft, frozenset({QUOTES}))
    # Quotes stand behind the question, the note in front of the first standing message: often the same one.
    spare = question - (quotes + (digest if draft is not None and _stands_alone(messages) else 0))
    question = max(spare, 0)
    tools = min(task.fixed, attempt.prompt)
    history = max(attempt.prompt - tools - system - question - digest - quotes, 0)
    return Parts(system, tools, digest, quotes, history, question, task.output_of(attempt) or task.reserve)


def lost_by(task: Task, attempt: Attempt) -> Lost:
    """Return what of the conversation an attempt does not send."""
    draft = attempt.draft
    if draft is None:
        return Lost()
    images = _media(task.request.messages) - _media(draft.messages)
    kept = draft.question_kept
    given = sum(step.total for step in draft.steps if step.stage in DIGESTS)
    shown = sum(step.count for step in draft.steps if step.stage in DIGESTS or step.stage == QUOTES)
    return Lost(
        turns=draft.turns_folded,
        lines=max(given - shown, 0),
        images=max(images, 0),
        question_characters=kept.total - kept.characters if kept is not None else 0,
    )


def _written(draft: Draft | None, stages: frozenset[str]) -> int:
    return -sum(step.saved for step in draft.steps if step.stage in stages) if draft is not None else 0


def _cost(task: Task, messages: tuple[Message, ...], costs: tuple[int, ...] | None, index: int) -> int:
    return costs[index] if costs is not None else task.counter.message(messages[index])


def _pinned(messages: tuple[Message, ...]) -> list[int]:
    return [index for index, message in enumerate(messages) if message.get("role") in PINNED_ROLES]


def _question(messages: tuple[Message, ...]) -> list[int]:
    """Return the user messages of the current turn: the last run of them."""
    found: list[int] = []
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].get("role") == "user":
            found.append(index)
        elif found:
            break
    return found


def _stands_alone(messages: tuple[Message, ...]) -> bool:
    """Return whether the question is the first message that is not pinned, so that the note stands in it."""
    first = next((index for index, message in enumerate(messages) if message.get("role") not in PINNED_ROLES), -1)
    return first in _question(messages)


def _media(messages: tuple[Message, ...]) -> int:
    return sum(1 for message in messages for _ in media_parts(message))
