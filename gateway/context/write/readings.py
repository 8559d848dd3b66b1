"""Messages read for a fold: each with its role, its lines and, if it is a tool result, its call."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

from gateway.context.choose import lookup
from gateway.context.cut.source import Source
from gateway.context.read import lines
from gateway.context.read.line import RECORD, Line, MessageLines, tool_in
from gateway.context.read.view import calls_of
from gateway.context.weigh import speakers
from gateway.wire.memory import Memory
from gateway.wire.message import RESULT_ROLES, Message, text_of

FULLY_READ_CHARACTERS: Final = 120_000
"""Characters at the end of a folded part that are read in full. Older messages are only skimmed."""

USER_READ_CHARACTERS: Final = 1_000_000
"""Characters at the end of a folded part in which the user's words are read in full. Chosen: reading them takes 3 s for
the worst text and 1 s for prose; a window of a million tokens has four times as many."""

LONGEST_SHOWN_CALL: Final = 72
"""Characters. Of a longer call only the beginning is shown before its result: a path, or the beginning of a command."""

CUT: Final = " …)"
"""The end of a call, if only its beginning is shown."""

ShownCalls = dict[int, dict[str | None, str]]
"""How the calls of messages are shown before their results: by the message's index, and the call's id."""

_NAME: Final = re.compile(r"[\w.-]{1,64}")
"""The name of a speaker. OpenAI allows these characters, and fewer letters. None of them can end the name in a row."""
_SPEAKER: Final = re.compile(rf"(user|assistant)(?: \(({_NAME.pattern})\))?: ")
"""The beginning of a row in a note: a role and, in a group, a name."""


def number_skimmed(messages: Sequence[Message], folded: Sequence[int], characters: int) -> int:
    """Return how many of the folded messages, from the first on, are before the last ``characters`` of text. They are only skimmed, so that the
    time stays bounded."""
    left = characters
    for number in range(len(folded) - 1, -1, -1):
        message = messages[folded[number]]
        content = message.get("content")
        left -= len(content) if isinstance(content, str) else len(text_of(message))
        if left <= 0:
            return number + 1
    return 0


def messages_by_relevance(
    source: Source, indices: Sequence[int], query: str, pinned_words: Collection[str] = ()
) -> list[int]:
    """Return those of these messages that are relevant to a question by their texts, the most relevant first. ``pinned_words`` are the words of
    pinned messages, which count less."""
    texts = [text_of(source.messages[index]) for index in indices]
    roles = [str(source.messages[index].get("role")) for index in indices]
    dialogue = speakers.dialogue_of(zip(reversed(roles), reversed(texts), strict=True))
    factors = speakers.answer_factors(query, dialogue)
    return [indices[position] for position in lookup.most_relevant(texts, roles, query, pinned_words, factors)]


def words_of_pinned(source: Source) -> frozenset[str]:
    """Return the keys of the words in pinned messages."""
    pinned = source.structure.pinned
    return frozenset().union(*[lines.word_keys(source.messages[index], source.memory) for index in pinned])


def reading_of(
    source: Source, index: int, read: Callable[[Message, Memory], tuple[Line, ...]], shown: ShownCalls
) -> MessageLines:
    """Return a message of a conversation with its lines; ``read`` reads it in full or skims it. The calls of a caller are added to
    ``shown``: one message may have thousands."""
    message = source.messages[index]
    call, found = _call_of(source, index, shown), read(message, source.memory)
    if found and found[0].kind is RECORD and call.endswith(CUT):
        call = tool_in(call)  # the keys of records say what they are
    role, name = str(message.get("role")), _speaker_name(message)
    return MessageLines(index, role, found, call, name)


def _speaker_name(message: Message) -> str:
    """Return the name that the client gave to a speaker; empty without one."""
    name = message.get("name")
    speaks = message.get("role") not in RESULT_ROLES
    return name if speaks and isinstance(name, str) and _NAME.fullmatch(name) else ""


def _call_of(source: Source, index: int, shown: ShownCalls) -> str:
    """Return the call of a tool result, or its tool's name; empty for any other message."""
    message = source.messages[index]
    if message.get("role") not in RESULT_ROLES:
        return ""
    caller = source.structure.callers.get(index)
    call_id = message.get("tool_call_id")
    if caller is not None and (call_id is None or isinstance(call_id, str)):
        if caller not in shown:
            shown[caller] = _shown_calls(source.messages[caller], source.memory)
        if (call := shown[caller].get(call_id)) is not None:
            return call
    return str(message.get("name") or "tool")


def _shown_calls(message: Message, memory: Memory) -> dict[str | None, str]:
    """Return how each call of a message is shown before its result, by the id of the call. A legacy call has none."""
    calls, read = calls_of(message), lines.read(message, memory)
    # A message's calls are its last lines.
    pairs = zip(calls, read[len(read) - len(calls) :], strict=False)
    shown_calls = [
        (call.get("id"), line.text if len(line.text) <= LONGEST_SHOWN_CALL else _beginning_of(line.text))
        for call, line in pairs
    ]
    # Of calls with the same id, the first one is shown.
    return {call_id: text for call_id, text in reversed(shown_calls) if call_id is None or isinstance(call_id, str)}


def _beginning_of(call: str) -> str:
    """Return the beginning of the line of a long call, to the end of an argument or else of a word, with a mark."""
    beginning = call[:LONGEST_SHOWN_CALL]
    end = max(beginning.rfind(", ") + 1, beginning.rfind(" ", 0, LONGEST_SHOWN_CALL // 2))
    return f"{beginning[:end] if end > 0 else beginning}{CUT}"


def readings_of_notes(text: str, memory: Memory) -> Iterator[MessageLines]:
    """Yield the rows of notes that the client sent back, each as a message of its original speaker."""
    rows = [row for row in text.split("\n") if row.strip()]
    for number, row in enumerate(rows):
        speaker = _SPEAKER.match(row)
        role, name = (speaker[1], speaker[2] or "") if speaker else ("", "")
        message = {"role": role, "content": row[speaker.end() :] if speaker else row}
        # Negative indices: these rows are older than the first message.
        yield MessageLines(number - len(rows) - 1, role, lines.read(message, memory), name=name)
