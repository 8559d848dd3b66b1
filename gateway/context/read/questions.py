"""Questions: whether a text asks, and what kind of question a message is.

By the form of any text:

- `asks`: it has a question mark at an end.
- `asks_to_be_told`: it begins like a question or with *tell me*, with or without a mark.
- `is_unmarked_question`: it is short, and has the form of a question without its mark.

Of a whole message:

- `wants_to_know`: it asks anything, perhaps among other things.
- `is_question`: it is mainly a question.
- `unmarked_questions_in`: what it may ask without a mark, among other things.
- `asks_for_information`: it is a short question for something that is known already, and no errand.
"""

import re
from typing import Final

from gateway.context.read.question_words import asks_by_word, has_question_word, positions_of_question_words

_QUESTION_MARK: Final = re.compile(r"(?:[?？؟\u037e]|(?<=[\u0370-\u03ff]);)(?:[\s\"'”’)\]]|$)")
"""Behind Greek letters a semicolon is a question mark."""
_QUESTION_BEGINNINGS: Final = (
    r"(?:tell|remind) me\b|(?:give|show) (?:me|us) (?:the|all|both|every|our|my)\b|(?:list|recap|summari[sz]e) |(?:everything|all) (?:that|i|we|you|about|the)\b",
    r"(?:what|who|when|where|why|how|which)(?:'?s\b| (?:is|was|are|were|did|do|does|had|has|have|should|shall|can|could|would|will|much|many|long|often|old|far|time|day)\b)",
    r"(?:which|whose|whom|who) (?!knows|cares)\w|(?:from|with|to|for|on|in|at|by|about) (?:whom|which|what) ",
    r"(?:did|do|does|have|has) (?:i|we|you|he|she|they|my|our)\b",
    r"(?:sag|erinnere?) mi[rc]h?\b|(?:gib|zeige?) (?:mir|uns) (?:die|das|den|alle|alles|beide)\b|(?:nenn|liste|zähl)e? |alles,? was\b",
    r"(?:was|wo|wie|wer) (?:ist|sind|war|waren|hat|hatten?|haben?|hab|heißt|hieß|viele?|lange|oft|kam|kommt|gibt|macht|machen|darf|sollen?|muss|kann|können|wollte)\b",
    r"(?:(?:ab|an|für|mit|von|zu|seit|bis|in|bei|auf|über) )?(?:wen|wem|wann|wohin|woher|womit|worauf|wofür|wovon|warum|wieso|weshalb|welche[rsnm]?) \w",
    r"(?:dis|rappelle)-moi\b|tout ce qu|(?:dime|recuérdame|todo lo que|dimmi|ricordami|tutto quello|me diga|tudo o que)\b",
    r"(?:напомни|скажи|перечисли|назови|всё,? что)\b",
    "告诉我|提醒我|列出|总结|(?=[^。！!…]{1,40}[。~～ ]*$)[^。！!]*(?:为啥|(?:什么|哪|谁|多少|怎么)(?![都也怕])|几[号点]|几个月|[吗呢][。…~～ ]*$)|[^。！!]*(?:教えて|まとめて|[すた]か|っけ)[。… ]*$",
)
"""Beginnings of questions without a question mark, and of requests to tell something. In languages that have only the latter here, and in thirty others,
`question_words` tells the former."""
_OPENING: Final = r"\W*+(?:(?:ok|okay|so|and|now|also|oh|hey|hi|wait|sorry|please|und|ach|bitte|et|alors|y|bueno|e|allora|а|и|ну)\b\W*+){0,2}"
_QUESTION_WITHOUT_MARK: Final = re.compile(f"{_OPENING}(?:{'|'.join(_QUESTION_BEGINNINGS)})", re.I)
_LEADING: Final = re.compile(_OPENING, re.I)
_VERB_FIRST: Final = re.compile(
    r"(?:(?:was|is|are|were|did|do|does|has|have|had|can|could|would|will|should|(?:did|was|is|do|has|had)n'?t) "
    r"(?:i|we|you|u|he|she|it|they|there|this|that|the|all|any|my|our|his|her|your)\b"
    r"|(?:hatten?|hab|haben?|hat|ist|war|waren|sind|kann|muss|soll|darf|wollten?) (?:ich|wir|er|sie|es|der|die|das|mein|meine|da|nur|nicht)\b"
    r"|(?:har|hade|är|kan|ska|skulle|heeft|heb|had|is|was|moet|mag) (?:jag|vi|han|hon|det|ik|we|wij|hij|ze|er|het|mijn)\b|est-ce qu|c'(?:est|était) (?:qui|quoi|quand|où)\b|come (?:si|mai|è|era|ha|hai|ho|sta)\b|czy\b)",
    re.I,
)
"""English, German, Dutch and Swedish begin such a question with its verb, Polish with a particle. French and Italian begin others with two words that
mean something else apart."""
_INVERTED: Final = re.compile(
    r"\b(?:who|what|when|where|which|why|how)(?: [\w']+){0,3} (?:did|do|does|was|were|is|are|has|have|had|can|could|should|would|will) (?:i|we|you|u|he|she|it|they|my|our|the)\b",
    re.I,
)
"""An English question behind another clause: *if I get locked out where did I put the key*."""
_OTHER_MARK: Final = re.compile(r"[.!。！]\W*$")
"""The end of a text that is no question without a mark: a person who types a full stop would type a question mark, too."""
_REMARK: Final = re.compile(
    r"(?:what an? |(?:when|where|what|how|while) (?:i|we|he|she|they|it|you|my|our|the|this|that)\b)", re.I
)
"""Beginnings of English exclamations and of clauses that are no questions: *when I was nineteen we had no car*."""
_CLAUSE_END: Final = re.compile(r"(?<=[.!…。！])\s|[,;，；\n]")
_DENSE: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
"""Characters of Chinese, Japanese and Korean. Each says as much as two letters or more."""
SENTENCE: Final = re.compile(r"[^.!?…。！？؟\n]*[.!?…。！？؟\n]*")
"""A rough sentence with the marks at its end: *e.g.* ends one, too. That is exact enough to separate a question from the words around it."""
LEAST_QUESTION_SHARE: Final = 0.4
"""The least share of a message's characters that its questions have if the message is a question, not a story with a
question in it."""
SHORT_QUESTION_CHARACTERS: Final = 160
"""The most characters of a message that is a question because its last sentence asks. Chosen: two sentences, the subject and
the question."""
UNMARKED_QUESTION_CHARACTERS: Final = 100
"""The most characters of a message that can be a question without a question mark. Chosen: one sentence."""


def asks(text: str) -> bool:
    """Return whether a text contains a question with its mark."""
    # Most sentences have no question mark, and searching for one character costs a hundredth of the pattern.
    return ("?" in text or not text.isascii()) and _QUESTION_MARK.search(text) is not None


def asks_to_be_told(text: str) -> bool:
    """Return whether a text begins like a question or a request to tell something."""
    return _QUESTION_WITHOUT_MARK.match(text) is not None


def wants_to_know(text: str) -> bool:
    """Return whether a message asks something: it has a question mark, or it is short and has the form of a question or of a request to tell
    something. Many people type no question mark."""
    return asks(text) or is_unmarked_question(text)


def is_question(text: str) -> bool:
    """Return whether a message is mainly a question, or short and ends with a question. The answer may be anywhere in the
    conversation."""
    if not asks(text):
        return is_unmarked_question(text)
    sentences = [sentence for sentence in SENTENCE.findall(text) if sentence.strip()]
    if len(text) <= SHORT_QUESTION_CHARACTERS and asks(sentences[-1]):
        return True
    return sum([len(sentence) for sentence in sentences if asks(sentence)]) >= LEAST_QUESTION_SHARE * len(text.strip())


def asks_for_information(text: str) -> bool:
    """Return whether a message is a short question for something that is known already: its question has a question word, or it
    begins with a request to tell something. *Which card was it?* is one; *could you book it?* is an errand."""
    if len(text) > SHORT_QUESTION_CHARACTERS:
        return False
    if asks_to_be_told(text):
        return True
    if not asks(text):
        return is_unmarked_question(text) and has_question_word(text)
    questions = [sentence for sentence in SENTENCE.findall(text) if asks(sentence)]
    return is_question(text) and has_question_word(questions[-1])


def is_unmarked_question(text: str) -> bool:
    """Return whether a message is short, and begins like a question or a request to tell something, or has a question word where its language asks
    with it."""
    if size(text) > UNMARKED_QUESTION_CHARACTERS:
        return False
    if asks_to_be_told(text):
        return True
    said = _LEADING.sub("", text, count=1)
    if _INVERTED.search(said):
        return True
    is_remark = _OTHER_MARK.search(said) or _REMARK.match(said)
    return not is_remark and (asks_by_word(said) or _VERB_FIRST.match(said) is not None)


def unmarked_questions_in(text: str) -> str:
    """Return the clauses of a message without question marks that may be questions; empty if there are none.

    A clause that is too long for a question is speech without punctuation: there a question may begin with any question word. Many of these
    words ask nothing, so the caller must also find out whether the clauses ask for what was said (`gateway.context.choose.asking`).
    """
    if asks(text):
        return ""
    found: list[str] = []
    for clause in _CLAUSE_END.split(text):
        if size(clause) <= UNMARKED_QUESTION_CHARACTERS:
            found += [clause.strip()] if is_unmarked_question(clause.strip()) else []
            continue
        end = 0
        for start in positions_of_question_words(clause):
            if start >= end:
                end = start + UNMARKED_QUESTION_CHARACTERS
                found.append(clause[start:end].strip())
    return ", ".join(found)


def is_speech(text: str) -> bool:
    """Return whether a text reads like speech that a machine has written down: it has no punctuation."""
    return _CLAUSE_END.search(text.strip()) is None


def size(text: str) -> int:
    """Return the characters of a text, where those of `_DENSE` count twice."""
    return len(text) + len(_DENSE.findall(text))
