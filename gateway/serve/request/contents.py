"""The contents of an attempt, for its record: how many tokens each part of the prompt has, and what is left out."""

from typing import NamedTuple

from gateway.context.life.attempt import Attempt
from gateway.context.life.task import Task
from gateway.context.write.draft import NOTE_STAGES, QUOTES_STAGE, Draft
from gateway.observe.exchange import Lost, Parts
from gateway.wire.message import PINNED_ROLES, Message, media_parts


class AttemptContents(NamedTuple):
    """What an attempt sends and leaves out. Computing it reads every message, so it is done in the thread that makes the attempt."""

    attempt: Attempt
    lost: Lost
    parts: Parts


def contents_of(task: Task, attempt: Attempt, known: AttemptContents | None = None) -> AttemptContents:
    """Return the contents of an attempt; ``known`` is returned if it belongs to this attempt."""
    if known is not None and known.attempt is attempt:
        return known
    return AttemptContents(attempt, lost_by(task, attempt), parts_of(task, attempt))


def parts_of(task: Task, attempt: Attempt) -> Parts:
    """Return the tokens of each part of an attempt. Together with the margin of the count they add up to its prompt."""
    messages = task.messages_of(attempt)
    draft = attempt.draft
    costs = draft.costs if draft is not None else None
    system = sum(_tokens_of(task, messages, costs, index) for index in _pinned(messages))
    question = sum(_tokens_of(task, messages, costs, index) for index in _question(messages))
    note, quotes = _tokens_written(draft, NOTE_STAGES), _tokens_written(draft, frozenset({QUOTES_STAGE}))
    # The question's message contains the quotes and, if it is the first one that is not pinned, the note.
    added = quotes + (note if draft is not None and _question_comes_first(messages) else 0)
    question = max(question - added, 0)
    tools = min(task.fixed, attempt.prompt)
    history = max(attempt.prompt - tools - system - question - note - quotes, 0)
    return Parts(system, tools, note, quotes, history, question, task.output_of(attempt) or task.reserve)


def lost_by(task: Task, attempt: Attempt) -> Lost:
    """Return how much of the conversation an attempt does not send."""
    draft = attempt.draft
    if draft is None:
        return Lost()
    images = _media_count(task.conversation.messages) - _media_count(draft.messages)
    kept = draft.question_kept
    all_lines = sum(step.total for step in draft.steps if step.stage in NOTE_STAGES)
    sent_lines = sum(step.count for step in draft.steps if step.stage in NOTE_STAGES or step.stage == QUOTES_STAGE)
    return Lost(
        turns=draft.turns_folded,
        lines=max(all_lines - sent_lines, 0),
        images=max(images, 0),
        question_characters=kept.total - kept.characters if kept is not None else 0,
    )


def _tokens_written(draft: Draft | None, stages: frozenset[str]) -> int:
    """Return the tokens that stages have added: their negative savings."""
    return -sum(step.saved for step in draft.steps if step.stage in stages) if draft is not None else 0


def _tokens_of(task: Task, messages: tuple[Message, ...], costs: tuple[int, ...] | None, index: int) -> int:
    """Return the tokens of one message: from the draft's costs if it was folded, else counted."""
    return costs[index] if costs is not None else task.counter.message(messages[index])


def _pinned(messages: tuple[Message, ...]) -> list[int]:
    """Return the indices of the pinned messages."""
    return [index for index, message in enumerate(messages) if message.get("role") in PINNED_ROLES]


def _question(messages: tuple[Message, ...]) -> list[int]:
    """Return the indices of the last user messages that follow each other: those of the current turn."""
    found: list[int] = []
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].get("role") == "user":
            found.append(index)
        elif found:
            break
    return found


def _question_comes_first(messages: tuple[Message, ...]) -> bool:
    """Return whether the question is the first message that is not pinned: then the note is placed in it."""
    first = next((index for index, message in enumerate(messages) if message.get("role") not in PINNED_ROLES), -1)
    return first in _question(messages)


def _media_count(messages: tuple[Message, ...]) -> int:
    return sum(1 for message in messages for _ in media_parts(message))
