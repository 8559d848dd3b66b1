"""The structure of a conversation: pinned messages, turns, steps, and where it may be cut.

Everything is in indices of the message list, so nothing here copies or changes a message. This module knows roles and
call ids, not sizes.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from gateway.context.read.view import SENT
from gateway.wire.message import CONTINUES, LATE, PINNED_ROLES, RESULT_ROLES, Message


class Turn(NamedTuple):
    """A run of user messages and everything up to the next user message; ``user`` is empty before the first user
    message."""

    user: tuple[int, ...]
    steps: tuple[tuple[int, ...], ...]
    """The steps: each is an assistant message with all its results, or a plain assistant message. A late result comes before the
    step with its call."""

    @property
    def indices(self) -> tuple[int, ...]:
        return self.user + tuple(index for step in self.steps for index in step)


class Structure(msgspec.Struct, frozen=True):
    """The pinned messages, wherever they are, and the turns of all other messages, oldest first."""

    pinned: tuple[int, ...]
    turns: tuple[Turn, ...]
    callers: Mapping[int, int]
    """For the index of each result, the index of the message with its call (`callers_of`)."""

    @property
    def current(self) -> Turn | None:
        """The last turn, which is always protected; None when there are only pinned messages."""
        return self.turns[-1] if self.turns else None


def split(messages: Sequence[Message]) -> Structure:
    """Split a conversation. Every index is exactly once in the result.

    A user message between a call and its result does not begin a turn: a cut before it would separate the two (case 7).
    A message that continues an earlier one belongs to its step. A result without a call belongs to the step before it. A *late* result
    (`gateway.wire.message.LATE`) is a step at its own position, and the step of its call moves there: so a job that runs for many turns does
    not join them.
    """
    callers = callers_of(messages)
    late = {index: caller for index, caller in callers.items() if LATE in messages[index]}
    on_time = {index: caller for index, caller in callers.items() if index not in late}
    spanned = _between_call_and_result(messages, {**on_time, **_continued(messages)})
    pinned: list[int] = []
    turns: list[Turn] = []
    user: list[int] = []
    steps: list[list[int]] = []

    def close() -> None:
        if user or steps:
            turns.append(Turn(tuple(user), tuple(map(tuple, steps))))
            user.clear()
            steps.clear()

    for index, message in enumerate(messages):
        role = message.get("role")
        if role in PINNED_ROLES:
            pinned.append(index)
        elif role == "user" and index not in spanned:
            if steps:
                close()
            user.append(index)
        elif steps and (role in RESULT_ROLES or index in spanned) and late.get(index, steps[-1][0]) in steps[-1]:
            steps[-1].append(index)
        else:
            steps.append([index])
    close()
    return Structure(tuple(pinned), _with_late_results(turns, late) if late else tuple(turns), callers)


def _with_late_results(turns: Sequence[Turn], late: Mapping[int, int]) -> tuple[Turn, ...]:
    """Move the step of each call with a late result to the step that begins with this result."""
    steps = [[list(step) for step in turn.steps] for turn in turns]
    step_of = {index: step for of_turn in steps for step in of_turn for index in step}
    for result, caller in late.items():
        source, target = step_of[caller], step_of[result]
        if source is not target:
            target += source
            step_of.update(dict.fromkeys(source, target))
            source.clear()
    joined_turns = (
        Turn(turn.user, tuple(tuple(step) for step in of_turn if step))
        for turn, of_turn in zip(turns, steps, strict=True)
    )
    return tuple(turn for turn in joined_turns if turn.indices)


def call_ids(message: Message) -> list[str]:
    """Return the ids of an assistant message's calls. A legacy ``function_call`` has its function's name as id."""
    calls = message.get("tool_calls")
    ids = [call.get("id") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    legacy = message.get("function_call")
    if isinstance(legacy, dict):
        ids.append(legacy.get("name"))
    return [name for name in ids if isinstance(name, str)]


def result_id(message: Message) -> str:
    """Return the id of the call that a result belongs to; empty without one."""
    name = message.get("tool_call_id") if message.get("role") == "tool" else message.get("name")
    return name if isinstance(name, str) else ""


def callers_of(messages: Sequence[Message]) -> dict[int, int]:
    """Map the index of each result to the index of the message that made its call.

    A result belongs to the newest call with its id, and a call has one result: a later turn may use an id again
    (case 11).
    """
    callers_by_id: dict[str, int] = {}
    callers: dict[int, int] = {}
    for index, message in enumerate(messages):
        role = message.get("role")
        if role == "assistant":
            if "tool_calls" in message or "function_call" in message:
                for name in call_ids(message):
                    callers_by_id[name] = index
        elif role in RESULT_ROLES and SENT in message:
            callers[index] = index - 1
        elif role in RESULT_ROLES:
            caller = callers_by_id.pop(result_id(message), None)
            if caller is not None:
                callers[index] = caller
    return callers


def _continued(messages: Sequence[Message]) -> dict[int, int]:
    """Map the index of each message that continues an earlier one to the index of the earlier one."""
    continuing = [(index, message[CONTINUES]) for index, message in enumerate(messages) if CONTINUES in message]
    return {index: index - before for index, before in continuing if isinstance(before, int) and 0 < before <= index}


def _between_call_and_result(messages: Sequence[Message], callers: Mapping[int, int]) -> set[int]:
    """Return the indices between each call and its last result, with the result's own. A call is left out if only
    results are between."""
    last_other = -1
    last_result: dict[int, int] = {}
    for index, message in enumerate(messages):
        if message.get("role") not in RESULT_ROLES:
            last_other = index
        caller = callers.get(index, index)
        if caller < last_other:
            last_result[caller] = index
    spanned: set[int] = set()
    end = -1
    for caller in sorted(last_result):
        spanned.update(range(max(caller, end) + 1, last_result[caller] + 1))
        end = max(end, last_result[caller])
    return spanned
