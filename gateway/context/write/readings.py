"""Messages read for a fold: each with its role, its lines, and the call that it is the result of."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from gateway.context.choose import lines
from gateway.context.choose.line import Line, MessageLines
from gateway.context.cut.layout import Source
from gateway.wire.memory import Memory
from gateway.wire.message import RESULT_ROLES, Message, call_name, text_of, tool_calls

READ: Final = 120_000
"""Characters of a folded part, from its end, that are read in full."""


SPOKEN_READ: Final = 1_000_000
"""Characters, from its end, in which a user's words are read in full. Chosen: 3 s for the worst text, a second for prose; windows of a million
tokens hold four times as much."""


def first_read(messages: Sequence[Message], folded: Sequence[int], most: int) -> int:
    """How many of the folded messages, the oldest, lie before the last so many characters: they are only skimmed, so that the time stays
    bounded."""
    left = most
    for number in range(len(folded) - 1, -1, -1):
        message = messages[folded[number]]
        content = message.get("content")
        left -= len(content) if isinstance(content, str) else len(text_of(message))
        if left <= 0:
            return number + 1
    return 0


def reading_of(source: Source, index: int, read: Callable[[Message, Memory], tuple[Line, ...]]) -> MessageLines:
    """A message of a conversation, read in full or skimmed."""
    message = source.messages[index]
    tool = _tool(source, index)
    return MessageLines(index, str(message.get("role")), read(message, source.memory), tool, _name(message))


_NAME: Final = re.compile(r"[\w.-]{1,64}")
"""A name of a speaker, by OpenAI's rule and a little beyond: nothing that could look like the end of one."""
_SPEAKER: Final = re.compile(rf"(user|assistant)(?: \(({_NAME.pattern})\))?: ")


def _name(message: Message) -> str:
    """Return the name that the client gave to a speaker; empty without one."""
    name = message.get("name")
    speaks = message.get("role") not in RESULT_ROLES
    return name if speaks and isinstance(name, str) and _NAME.fullmatch(name) else ""


def _tool(source: Source, index: int) -> str:
    """Return the call of a result, or its tool's name; empty for any other message."""
    message = source.messages[index]
    if message.get("role") not in RESULT_ROLES:
        return ""
    caller = source.conversation.callers.get(index)
    made = lines.read(source.messages[caller], source.memory) if caller is not None else ()
    calls = tool_calls(source.messages[caller]) if caller is not None else []
    # A message's calls are its last lines.
    for call, line in zip(calls, made[len(made) - len(calls) :], strict=False):
        if call.get("id") == message.get("tool_call_id"):
            return line.text if len(line.text) <= SHOWN else call_name(call)
    return str(message.get("name") or "tool")


SHOWN: Final = 72
"""Characters up to which a call is shown in full before its result."""


def earlier_of(text: str, memory: Memory) -> Iterator[MessageLines]:
    """Return the lines of notes that the client sent back, each with its original speaker."""
    rows = [row for row in text.split("\n") if row.strip()]
    for number, row in enumerate(rows):
        speaker = _SPEAKER.match(row)
        role, name = (speaker[1], speaker[2] or "") if speaker else ("", "")
        message = {"role": role, "content": row[speaker.end() :] if speaker else row}
        yield MessageLines(number - len(rows) - 1, role, lines.read(message, memory), name=name)
