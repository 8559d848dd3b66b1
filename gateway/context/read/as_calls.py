"""Messages of an agent that calls in its text, as views with calls and results."""

from collections.abc import Sequence
from typing import Any

from gateway.context.read.text_calls import Called, called_in
from gateway.context.read.text_results import is_result
from gateway.context.read.view import ADDED, CALLS, PROSE, viewed, without_added
from gateway.wire.derived import Derived, derived_of
from gateway.wire.message import Message, text_of, tool_calls


def as_calls(messages: Sequence[Message]) -> Sequence[Message]:
    """Return messages in which calls in text are calls, and their results are results; the same messages if there are none."""
    if not all(map(ADDED.isdisjoint, messages)):
        messages = [message if ADDED.isdisjoint(message) else without_added(message) for message in messages]
    found: list[Message] | None = None
    for index in range(1, len(messages)):
        before, message = messages[index - 1], messages[index]
        if message.get("role") == "user" and before.get("role") == "assistant" and not tool_calls(before):
            called = _called(before)
            if called.calls and is_result(text_of(message), called):
                found = found or list(messages)
                found[index - 1] = _caller(before, called)
                found[index] = viewed(message, {"role": "tool"})
    return found or messages


def _called(message: Message) -> Called:
    """Return an agent's message read for its calls. It is read once."""
    derived: Derived[Any] = derived_of(message)
    if derived.called is None:
        derived.called = called_in(text_of(message))
    found: Called = derived.called
    return found


def _caller(message: Message, called: Called) -> Message:
    """Return the view of an agent's message that has the calls of its text."""
    calls = [{"function": {"name": call.name, "arguments": call.arguments}} for call in called.calls]
    return viewed(message, {CALLS: calls, PROSE: called.prose})
