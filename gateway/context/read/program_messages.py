"""Messages that an agent's program writes around what the user says: ``[attempt_completion] Result: <feedback>also for B2</feedback>``."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from gateway.context.read.elements import elements_of

SAID: Final = frozenset({"answer", "feedback", "task", "user_feedback", "user_message", "user_query"})
"""Names of the elements with the user's words, in messages that an agent's program writes."""


class Piece(NamedTuple):
    """A piece of such a message."""

    text: str
    is_said: bool
    """Whether the user said it."""


OUTPUT: Final = r"(?:responses?|results?|outputs?|observations?|returncode|stdout|stderr|exit_code)"
RESULT_TAG: Final = re.compile(rf"(?:\w{{1,40}}_)?{OUTPUT}", re.I)
"""The name of an element with a result."""
RESULT_LABEL: Final = re.compile(
    r"\s{0,20}(?:(?:\*\*)?Observations?(?: (?:from\b|[(\[#\d])[^\n:]{0,20})?(?:\*\*)?:(?:\*\*)?|\[[^\n]{1,500}?\] (?:Result|Error|Output):)",
    re.I,
)
"""What a program writes before a result: ``Observation:``, ``Observation 2:``, ``[read_file for 'a.py'] Result:``."""
_OTHER_BEGINNING: Final = re.compile(
    rf"""\s{{0,20}}(?:
        (?-i:\[[A-Z][A-Z_\ ]{{2,40}}\])
      | (?-i:[A-Z][A-Z_\ ]{{0,40}}\b(?:RESULTS?|OUTPUT|RESPONSE|LOGS)\b[^\n:]{{0,120}}:)
      | </?(?:\w{{1,40}}_)?{OUTPUT}\b[^<>\n]{{0,200}}>
    )""",
    re.X | re.I,
)
"""Other beginnings of what programs write: ``[ERROR]``, ``EXECUTION RESULT of [execute_bash]:``, ``<tool_response>``. A person may write
``[IMPORTANT]`` and ``EXPECTED OUTPUT:``, too."""
_ACTED: Final = r"(?:added|answered|asked|denied|gave|provided|rejected|replied|responded|said|sent|wrote)"
_WORDS: Final = r"(?:comment|feedback|input|message|reply|request)"
_SAID_LABEL: Final = re.compile(
    rf"^(?:[^\n:]{{0,80}}[.!] |here is )?(?:new (?:task|instructions?)[^\n:]{{0,40}}|the user (?:has )?{_ACTED}\b[^\n:]{{0,120}}|(?:the )?user(?:'s)? {_WORDS}[^\n:]{{0,120}}):[ \t]*",
    re.M | re.I,
)
"""The label before what the user says: ``New task:``, ``The user rejected it with the following message:``."""


def pieces_of(text: str) -> list[Piece]:
    """Split a message that an agent's program wrote around what the user says; empty for any other message."""
    return list(_said_to_agent(text)) if ":" in text or "</" in text else []


def begins_like_result(text: str) -> bool:
    """Return whether a message begins like the result of an agent's call."""
    return RESULT_LABEL.match(text) is not None or _OTHER_BEGINNING.match(text) is not None


def _said_to_agent(text: str) -> Iterator[Piece]:
    """Yield the pieces of a message of an agent's program that has words of the user."""
    is_framed = begins_like_result(text)
    said = [element for element in elements_of(text) if element.name in SAID] if is_framed else []
    yield from [Piece(element.inner(text).strip(), True) for element in said]
    label = None if said else _SAID_LABEL.search(text)
    if label and (is_framed or not text[: label.start()].strip()):
        yield Piece(text[: label.start()], False)
        yield Piece(text[label.end() :].strip(), True)
