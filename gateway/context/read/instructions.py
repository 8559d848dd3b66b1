"""Instructions: sentences that tell an assistant to do something, and the parts of them.

*Write me a short note about how the move went* has a frame, which says what to write (*write me a short note*), and a subject, which may be
something that was said.
"""

import re
from typing import Final

from gateway.context.read.familiar import speaks_of_speaker, tokens_of
from gateway.context.read.questions import (
    SENTENCE,
    asks,
    asks_to_be_told,
    unmarked_questions_in,
)
from gateway.context.read.subject import names_a_subject

_VERB_WORDS: Final = (
    "write draft summarize summarise prepare compare give show find explain help translate rewrite rephrase create suggest remind tell calculate recap"
    " describe outline compose proofread shorten"
    " schreib schreibe schreiben schreibt erstell erstelle gib zeig zeige erklär erkläre hilf übersetz übersetze formulier formuliere vergleich vergleiche entwirf"
    " verfass verfasse notier notiere ergänz ergänze beschreib beschreibe kürz kürze korrigier korrigiere"
    " écris rédige donne montre résume explique aide traduis prépare ajoute décris corrige propose raccourcis"
    " escribe escríbeme redacta redáctame muestra muéstrame resume resúmeme explica explícame traduce tradúceme prepara prepárame compara corrige describe"
    " agrega añade ayúdame dame hazme ponme"
    " scrivi scrivimi mostra mostrami elenca elencami riassumi riassumimi spiega spiegami aiuta aiutami traduci traducimi preparami correggi aggiungi crea dammi fammi"
    " escreve escreva faz faça explique ajuda ajude traduz monta lista mostra anota"
    " schrijf geef toon vertaal beschrijf"
    " напиши составь сделай дай покажи перечисли объясни помоги переведи опиши подготовь добавь исправь сократи придумай выпиши"
    " napisz zrób przygotuj wypisz przetłumacz ułóż opisz streść pokaż wyjaśnij pomóż stwórz popraw"
    " اكتب اكتبي اكتبلي لخص لخصي لخصلي ترجم ترجمي ترجملي اشرح اشرحي اشرحلي جهز جهزي جهزلي"
)
_VERBS: Final = frozenset(_VERB_WORDS.split())
"""Verbs at the beginning of instructions to an assistant: to write, make or look for something."""
_VERBS_WITH_OBJECT_WORDS: Final = (
    "make list plan fill sum put turn add note sort collect gather answer reply check fix correct set do email text message mach mache plan plane such suche list liste fass"
    " fasse stell stelle schick schicke setz setze trag trage fais haz maak"
)
_VERBS_WITH_OBJECT: Final = frozenset(_VERBS_WITH_OBJECT_WORDS.split())
"""Verbs that are an instruction if one of `_OBJECTS` follows. *List of movements* is not an instruction."""
_OBJECTS_WORDS: Final = (
    "me us to it them him her this that these a an the my our your all what everything up in out to down together mal mir uns ihm ihr ein eine einen das"
    " die den alles mein meine meinen moi une un la le les una el las los een het de"
)
_OBJECTS: Final = frozenset(_OBJECTS_WORDS.split())
_PLEASE: Final = (
    r"please|bitte|s'il (?:te|vous) pla[iî]t|por favor|per favore|per piacere|alsjeblieft|alstublieft|proszę|пожалуйста"
)
_UNSPACED_INSTRUCTION: Final = (
    r"[^。！？!?\n]{0,8}(?:帮我|给我写|请你|麻烦你)|(?:[^。！？!?\n]{0,6}[，, ])?[请再先]?(?:写|列|拟|整理|总结|翻译|起草|改)(?:一?[份封篇段张个下首条点]|成|出|短)"
    r"|把[^。！？!?\n]{1,40}(?:写|列|改|做|整理|翻译|译)[成进出到下]|给[^。！？!?\n]{1,12}[写列]"
    r"|[^。！？!?\n]{0,80}(?:書い|作っ|まとめ|教え|訳し|直し|入れ|並べ|説明し)て(?:ください|下さい|ほしい|欲しい|くれる|くれない|もらえる|ね)?(?:[。！？!?\s]|$)"
    r"|[^.!?\n]{0,80}(?:써|적어|만들어|알려|정리해|번역해|요약해|설명해|작성해|고쳐)\s?(?:줘|주세요|줄래|주라)"
)
"""Scripts without spaces, and Korean: the verb with its ending or its object."""
_CAN_YOU: Final = (
    r"(?:can|could|would|will) (?:you|we)(?! (?:believe|imagine|guess)\b)|kannst du|könn(?:test du|en sie|ten sie)|peux-tu|pouvez-vous|puedes|podrías|puoi|pode"
    r"|kun je|możesz|можешь|i (?:need|want) you to"
)
_OPENING: Final = re.compile(
    r"\W*+(?:(?:ok|okay|so|and|now|also|then|please|just|bitte|und|dann|et|alors|y|por favor|me|e|а|и|теперь)\b\W*+){0,3}"
    rf"(?P<can_you>(?:{_CAN_YOU})\b(?:\W+(?:please|maybe|just|also|bitte)\b)*\W*)?",
    re.I,
)
"""The beginning of an instruction, up to its verb."""
_ELSEWHERE: Final = re.compile(rf"{_UNSPACED_INSTRUCTION}|[^.!?\n]*\b(?:{_PLEASE})\b", re.I)
"""Instructions that do not begin with their verb."""
_WORD: Final = re.compile(r"[^\W\d_]+")
_TELLING: Final = re.compile("remember|recall|know|say|see|look|find|erinner|sag|weißt|nenn", re.I)
"""Beginnings of verbs that ask for information behind *can you*."""
_POINTING: Final = re.compile(
    r"(?:\W+(?:me|us|mir|uns|moi|nous|mi|bitte|please|mal|doch)\b)*\W+"
    r"(?:(?:this|that|these|those|it|dies(?:e[snr]?)?|es|ça|cela|ceci|esto|eso|isto|isso|questo|quello|dit|dat|это)\b|das\b(?!\s+(?-i:[A-ZÄÖÜ])))",
    re.I,
)
"""Behind a verb: a word that points at something. The German *das* is an article if a noun follows, with its capital."""
_POINTING_UNSPACED: Final = re.compile(r"[^。！？!?\n]{0,6}[把将][这那]|[こそ]れ[をは]")


def instructs(text: str) -> bool:
    """Return whether a sentence is an instruction: it begins with *write me* or *could you*, or it has *please*."""
    return _end_of_verb(text) > 0 or _ELSEWHERE.match(text) is not None


def request_in(text: str) -> str:
    """Return the sentences of a message that ask with a mark or instruct; without any, its clauses that may ask without a mark; empty if there are none."""
    found = _asking_sentences(text)
    return " ".join(found).strip() if found else unmarked_questions_in(text)


def is_unmarked_request(text: str) -> bool:
    """Return whether a message asks or instructs only by its question words: perhaps it does neither."""
    return not _asking_sentences(text)


def _asking_sentences(text: str) -> list[str]:
    """Return the sentences that ask with a mark, or instruct."""
    return [sentence for sentence in SENTENCE.findall(text) if asks(sentence) or instructs(sentence)]


def is_errand(text: str) -> bool:
    """Return whether what a message asks are only errands: *can you put that into a table?*, but not *can you tell me who called?*"""
    questions = [sentence for sentence in SENTENCE.findall(text) if asks(sentence)]
    return bool(questions) and all(map(_is_errand, questions))


def _is_errand(question: str) -> bool:
    """Return whether a question begins with *can you*, and does not go on with *tell me* and the like."""
    opening = _OPENING.match(question)
    if opening is None or opening["can_you"] is None:
        return False
    rest = question[opening.end() :]
    return not asks_to_be_told(rest) and _TELLING.match(rest) is None


def is_about_what_is_at_hand(request: str) -> bool:
    """Return whether a request points at what it is about: *fix this*, *put that into a table*, *make it shorter*."""
    return any(map(_points, SENTENCE.findall(request)))


def _points(sentence: str) -> bool:
    end = _end_of_verb(sentence)
    return (_POINTING.match(sentence, end) if end else _POINTING_UNSPACED.match(sentence)) is not None


def without_frame(request: str) -> str:
    """Return what a request is about: its sentences without *write me a short note*."""
    return " ".join([sentence[_start_of_subject(sentence) :] for sentence in SENTENCE.findall(request)]).strip()


def has_frame(request: str) -> bool:
    """Return whether a request says what to write before it says what it is about."""
    return any(map(_start_of_subject, SENTENCE.findall(request)))


def _start_of_subject(sentence: str) -> int:
    """Return where a sentence says what it is about: behind the verb, the reader and what is to be written. 0 without a frame."""
    end = _end_of_verb(sentence)
    for token in tokens_of(sentence, end) if end else ():
        if token.known or speaks_of_speaker(token.text) or (names_a_subject(token.text) and not token.new):
            return token.start
    return 0


def _end_of_verb(sentence: str) -> int:
    """Return where the verb of an instruction ends; 0 if a sentence does not begin with one."""
    opening = _OPENING.match(sentence)
    if opening is None:
        return 0
    verb = _WORD.match(sentence, opening.end())
    if verb is not None:
        following = _WORD.search(sentence, verb.end())
        if _is_verb(verb[0], following[0] if following else ""):
            return verb.end()
    return opening.end() if opening["can_you"] is not None else 0


def _is_verb(word: str, following: str) -> bool:
    """Return whether a word is the verb of an instruction, given the word that follows. The German *schreib ich auf* tells what the speaker does."""
    word, following = word.lower(), following.lower()
    return (word in _VERBS and following != "ich") or (word in _VERBS_WITH_OBJECT and following in _OBJECTS)
