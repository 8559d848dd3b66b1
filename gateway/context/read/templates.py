"""Messages that a program writes around what the user says.

- A template with retrieved passages: ``Context: ...``, ``Question: when is the visit``, ``Answer:``. The user said what is behind the label.
- A result of an agent's call with words of the user in it: ``[attempt_completion] Result: <feedback>also for B2</feedback>``.
"""

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
LEAST_PASSAGE_BREAKS: Final = 2
"""The least line breaks in passages. A shorter message is read as the user's own, whatever its labels."""
_QUALITY: Final = r"(?:additional|background|given|relevant|retrieved|supporting) "
_PASSAGES: Final = (
    r"context[eo]?|contesto|kontext|kontekst|контекст|documents?|excerpts|passages?|sources?|references?|search results|knowledge(?: base)?|information"
    r"|background|chat history|dokumente?|quellen|fuentes|documentos|上下文|参考|資料|文脈"
)
_CONTEXT: Final = re.compile(rf"^[ *#]{{0,6}}(?:{_QUALITY})?(?:{_PASSAGES})\b[^\n]{{0,80}}$", re.M | re.I)
"""The row before retrieved passages."""
_CONTEXT_BEHIND: Final = re.compile(
    rf"^[ *#]{{0,6}}(?:{_QUALITY})?(?:{_PASSAGES})\b[^\n]{{0,40}}[:：]\*{{0,2}}[ \t]*$", re.M | re.I
)
"""The same behind the question, where a row of the user's may begin with such a word: it needs its colon."""
_USER: Final = r"(?:user|customer|employee|client)(?:'s)?"
_ASKED: Final = re.compile(
    rf"^[ *#]{{0,6}}(?:(?:(?:the|current|new|standalone|follow[- ]?up|my) )?(?:{_USER} )?(?:question|query)|{_USER} (?:input|message|request)"
    r"|frage|pregunta|consulta|pergunta|domanda|vraag|pytanie|вопрос|问题|質問|질문)\*{0,2} ?[:：]\*{0,2}[ \t]*",
    re.M | re.I,
)
"""The label before what the user says."""
_ANSWER: Final = re.compile(
    r"^[ *#]{0,6}(?:(?:helpful|final|your|the|short) )?(?:answer|response|reply|assistant|ai|output|antwort|respuesta|réponse|resposta|risposta|antwoord|odpowiedź|ответ|回答|答案|답변)"
    r"\*{0,2} ?[:：]\*{0,2}\s{0,20}\Z",
    re.M | re.I,
)
"""The label at the end, behind which the model is to write."""


def pieces_of(text: str) -> list[Piece]:
    """Split a message that a program wrote around what the user says; empty for any other message."""
    if ":" not in text and "：" not in text and "</" not in text:
        return []
    return list(_said_to_agent(text)) or list(_said_in_template(text))


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


def _said_in_template(text: str) -> Iterator[Piece]:
    """Yield the pieces of a message with retrieved passages."""
    asked = next(reversed(list(_ASKED.finditer(text))), None)
    if asked is None:
        return
    behind = _CONTEXT_BEHIND.search(text, asked.end())
    passages = text[behind.end() :] if behind else text[: asked.start()]
    if passages.strip().count("\n") < LEAST_PASSAGE_BREAKS or not (behind or _CONTEXT.search(passages)):
        return
    answer = behind or _ANSWER.search(text, asked.end())
    end = answer.start() if answer else len(text)
    yield Piece(text[: asked.start()], False)
    yield Piece(text[asked.end() : end], True)
    if behind:
        yield Piece(text[end:], False)
