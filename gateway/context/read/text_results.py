"""Results that an agent's program sends as messages of the user: those of calls in text (`text_calls`)."""

import re
from typing import Final

from gateway.context.read.elements import elements_of
from gateway.context.read.program_messages import OUTPUT, RESULT_LABEL, RESULT_TAG, begins_like_result, pieces_of
from gateway.context.read.text_calls import Called

_TOOL: Final = r"(?:tool|command|function|execution|action|code|shell|terminal|bash|python|api|sql|script|program)"
_HAPPENED: Final = r"(?:results?|outputs?|responses?|returned|logs?|executed|finished|failed|exit(?:ed)?)"
_BEHIND_CODE: Final = re.compile(
    rf"""\s{{0,20}}(?:
        (?-i:{_TOOL.upper()}\b[A-Z_\ ]{{0,40}}\b(?:RESULTS?|OUTPUT|RESPONSE|LOGS)\b[^\n:]{{0,120}}:)
      | </?(?:{_TOOL}_)?{OUTPUT}\b[^<>\n]{{0,200}}>
    )""",
    re.X | re.I,
)
"""Beginnings of results that name a tool, or nothing else: ``EXECUTION RESULT of [execute_bash]:``, ``<returncode>``."""
_LIKE_OUTPUT: Final = re.compile(
    rf"""\s{{0,20}}(?:
        [{{\[]\s{{0,20}}["{{}}\[\]\d-]
      | (?:Results?|Outputs?|Responses?|Returned|Stdout|Error|Traceback)\b[^\n:]{{0,60}}:
      | {_TOOL}\b[\w\ '"`.()\[\]-]{{0,80}}?\b{_HAPPENED}\b[^\n:]{{0,60}}:
    )""",
    re.X | re.I,
)
"""Beginnings that a person's message may have, too: JSON, *Output:*, *Command output:*."""
_ENVIRONMENT_TAGS: Final = frozenset({"environment_details", "system-reminder", "system_reminder"})
"""Elements in which a program tells an agent about its environment, in each message anew."""


def is_result(text: str, before: Called) -> bool:
    """Return whether a user message is the result of the calls in the message before it.

    People write code and paste output, too. So a result must begin like a result. If the calls are not certain, it must begin in a way in which
    no person writes about code.
    """
    if not before.calls or any([piece.is_said for piece in pieces_of(text)]):
        return False
    if before.certain:
        return begins_like_result(text) or _LIKE_OUTPUT.match(text) is not None
    return RESULT_LABEL.match(text) is not None or _BEHIND_CODE.match(text) is not None


def result_in(text: str) -> str:
    """Return a result without the marks around it, and without what the program says about the agent's environment."""
    said: list[str] = []
    start = 0
    for element in elements_of(text):
        is_environment = element.name in _ENVIRONMENT_TAGS
        if is_environment or RESULT_TAG.fullmatch(element.name):
            said += [text[start : element.start], "" if is_environment else element.inner(text)]
            start = element.end
    plain = "\n".join([part.strip() for part in [*said, text[start:]] if part.strip()])
    opened = RESULT_LABEL.match(plain)
    return plain[opened.end() :].strip() if opened else plain
