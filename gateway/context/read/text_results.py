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
_SPEAKS_TO_USER: Final = re.compile(
    r"""(?:attempt|task)_completion | (?:final|give)_?answer | (?:\w{1,20}_)?respond | finish(?:ed)?(?:_\w{1,20})? | task_complete
      | complete(?:_task)? | submit | done | terminate | end | stop | exit | human(?:_input)? | message(?:_notify|_ask)?_user
      | ask(?:_(?:followup_)?question | _(?:the_)?(?:user|human)(?:_\w{1,20})?)?""",
    re.X | re.I,
)
"""Names of tools with which an agent ends its task or asks the user. Their result is what the user says."""
_ENDS_IN_CODE: Final = re.compile(r"(?:final_answer|ask_user|ask_human)\s{0,4}\(|COMPLETE_TASK")
"""The same in a program or a command that the agent writes: smolagents' ``final_answer(...)``, mini-swe-agent's last command."""
_SHOW_NOTHING_FIRST: Final = frozenset(
    {
        "apply_diff",
        "edit_file",
        "execute_command",
        "insert_content",
        "replace_in_file",
        "search_and_replace",
        "write_to_file",
    }
)
"""Tools of Cline and Roo Code whose results begin with a sentence of the program, and never with a text from elsewhere."""
_FEEDBACK: Final = re.compile(
    r"(?:\[[^\n]{1,500}?\] (?:Result|Error|Output):)\s{0,20}The user (?:denied this operation and )?provided the following feedback:\s{0,20}<feedback>"
)
"""How the results of these tools begin if the user has denied the call, or said something to it."""
_ENVIRONMENT_TAGS: Final = frozenset({"environment_details", "system-reminder", "system_reminder"})
"""Elements in which a program tells an agent about its environment, in each message anew."""


def is_result(text: str, before: Called) -> bool:
    """Return whether a user message is the result of the calls in the message before it.

    People write code and paste output, too. So a result must begin like a result. If the calls are not certain, it must begin in a way in which
    no person writes about code.
    """
    if not before.calls:
        return False
    if any([piece.is_said for piece in pieces_of(text)]) and (
        not _of_call(text) or _may_have_users_words(text, before)
    ):
        return False
    if before.certain:
        return begins_like_result(text) or _LIKE_OUTPUT.match(text) is not None
    return RESULT_LABEL.match(text) is not None or _BEHIND_CODE.match(text) is not None


def _of_call(text: str) -> bool:
    """Return whether a message begins like the result of a call, and not like another message of a program, such as ``[TASK RESUMPTION]``."""
    return RESULT_LABEL.match(text) is not None or _BEHIND_CODE.match(text) is not None


def _may_have_users_words(text: str, before: Called) -> bool:
    """Return whether a result may have words of the user: the agent has spoken to the user, or the program says so before all else.

    Any other result is what a tool returned. A mail or a web page in it may have a row *New task: ...* or an element ``<feedback>``, too.
    """
    names = {call.name for call in before.calls}
    if any([_SPEAKS_TO_USER.fullmatch(name) for name in names]):
        return True
    if any([_ENDS_IN_CODE.search(call.arguments) for call in before.calls]):
        return True
    return names <= _SHOW_NOTHING_FIRST and _FEEDBACK.match(text) is not None


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
