"""Cues in a sentence: whether it is binding for later turns, asks something, or reports an error.

A binding sentence is recognised by its words: it is no question, and it speaks of the speaker, of all times, of conditions or
of duty. The words below are function words of many languages (modal verbs, quantifiers, adverbs, pronouns). They belong to no
subject. A binding sentence without these words still has the worth of a user's statement.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

_BINDING_WORDS: Final = (
    # English
    "never always must mustn't should shouldn't shall ought needs don't doesn't can't cannot won't only every everything everyone everybody"
    " each any anything anyone anybody all no none nothing nobody whenever whatever whoever wherever unless until before after instead"
    " rather prefer prefers preferably required require remember forget keep avoid throughout ensure mind essential important"
    # German, Dutch, Scandinavian
    " nie niemals immer stets muss müssen musst soll sollen sollst sollte darf dürfen nicht kein keine keinen keinem keiner nur jede jeder"
    " jedes jeden jedem alle allen alles künftig lieber nooit altijd moet moeten geen alleen elk elke aldrig alltid altid aldri måste må"
    " skal ska inte ikke bara kun"
    # French, Spanish, Italian, Portuguese, Romanian
    " jamais toujours dois doit devez doivent faut pas seulement chaque tout toute tous toutes dorénavant désormais plutôt sans avant aucun"
    " aucune nunca siempre debe debes deben debo sólo solo cada todo todos toda todas ningún ninguno ninguna jamás prefiero antes mai sempre"
    " devi deve devono devo non soltanto ogni tutto tutta tutti tutte nessun nessuno nessuna senza preferisco não devem somente apenas"
    " nenhum nenhuma prefiro numai doar"
    # Slavic, Turkish, Greek, Finnish, Hungarian, Indonesian
    " никогда всегда должен должна должны должно нужно надо нельзя не только каждый каждая каждое каждые все всё ніколи завжди треба nigdy"
    " zawsze musi muszę musisz musí nie tylko każdy każda nikdy vždy jen asla hiçbir her daima sadece gerek gerekli lazım πάντα ποτέ πρέπει"
    " μόνο aina koskaan täytyy vain soha mindig kell csak selalu jangan harus hanya"
    # Semitic, Indic
    " أبدا دائما يجب لا فقط كل לא תמיד רק חייב हमेशा केवल सिर्फ मत चाहिए"
)
_BINDING: Final = frozenset(_BINDING_WORDS.split())
_PHRASES: Final = (
    "from now on",
    "in future",
    "by default",
    "at most",
    "at least",
    "make sure",
    "has to",
    "have to",
    "need to",
)
# Scripts without spaces: Chinese, Japanese, Korean endings, Thai.
_BINDING_UNSPACED: Final = re.compile(
    "必须|必須|总是|總是|永远|永遠|从不|不要|不得|不能|別|别|只能|只要|每次|所有|以后|以後|务必|一律|禁止|应该|應該|请|請|始终|默认"
    "|絶対|必ず|常に|いつも|決して|ない(?:で|こと)|ません|ください|べき|だけ|すべて|毎回|今後"
    "|항상|절대|반드시|언제나|마세요|주세요|해야|만 |모든|앞으로|ต้อง|ห้าม|เสมอ|อย่า|ทุก|เท่านั้น"
)
_SELF_WORDS: Final = (
    "i i'm i'd i'll i've my me mine we we're we'd we'll our us ich mein meine meinen wir unser unsere je j'ai mon ma mes nous notre yo mi mis"
    " nosotros nuestro nuestra io mio mia noi eu meu minha nós я мой моя мы наш ik mijn wij ons jag min vi jeg ja mój benim biz أنا मैं मेरा मेरी"
)
SELF: Final = frozenset(_SELF_WORDS.split())
"""*I*, *my* and the like in all languages at once. `self_words` has more of them, because there only the words of one language count: the
Polish *i* (*and*) and *ma* (*has*) would be wrong here."""
_SELF_UNSPACED: Final = re.compile("我|私|僕|(?<![가-힣])(?:저[는도를]?|나[는도를]?|난|제가?|내가?)(?![가-힣])")
"""Korean words are whole words here: *now* (이제) and *evening* (저녁) have the letters of *my* and *I*."""
_OTHER_WORDS: Final = (
    "you you'd you'll you've you're your yours du dich dir dein deine deinen deiner tu te toi ton ta tes vous votre vos tú ti usted ustedes"
    " ci tuo tua você vocês seu sua ты тебя тебе вы вас вам твой ваш jij je jou jouw sen sana siz"
)
OTHER: Final = frozenset(_OTHER_WORDS.split())
"""*You*, *your* and the like in all languages at once."""
_OTHER_UNSPACED: Final = re.compile("你|您|あなた|君|당신|너는|네가")
_TOKEN: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_LETTERS: Final = bytes(code if code in b"abcdefghijklmnopqrstuvwxyz'" else ord(" ") for code in range(256))
_QUESTION_MARK: Final = re.compile(r"[?？؟\u037e](?:[\s\"'”’)\]]|$)")
# Each is searched separately: in lines of some hundred characters this is twenty times faster than one joint
# expression.
_ERROR_WORDS: Final = (
    "error exception traceback fatal panic abort denied refused rejected invalid cannot can't unable undefined unexpected timeout timedout"
    " unauthorized unauthorised forbidden conflict overflow segfault killed insufficient missing warning assert"
    " fehler fehlgeschlagen erreur échec fallo falló errore ошибка 错误 失败 エラー 失敗 오류"
)
_ERRORS: Final = (*_ERROR_WORDS.split(), "not found", "no such", "time out", "timed out")
_FAILURE: Final = re.compile(r"fail(?:ed|ure|s|ing)?\b|erro\b")


STATEMENT_POINTS: Final = 0.6
"""Points of any statement. This and the next ones were chosen: a statement with one binding word has more than one without."""
BINDING_WORD_POINTS: Final = 0.55
"""Points of each binding word or phrase, of `MOST_BINDING_WORDS` at most."""
MOST_BINDING_WORDS: Final = 3
"""Binding words that count in one sentence."""
SELF_POINTS: Final = 0.4
"""Points of a sentence that speaks of its speaker."""
QUESTION_POINTS: Final = 0.2
"""Points of a question with more than `SHORT_QUESTION` characters: it may contain a statement."""
SHORT_QUESTION: Final = 20
"""Characters of a question that contains no statement."""


class Sentence(NamedTuple):
    """A sentence in the forms in which cues are looked for. It is split once for all of them."""

    text: str
    low: str
    """The text in small letters, with straight apostrophes."""
    tokens: list[str]
    """The words of ``low``. In ASCII all apostrophes beside and inside a word belong to it."""


def sentence_of(text: str) -> Sentence:
    """Return a text as a sentence in which cues are looked for."""
    low = text.lower().replace("’", "'")
    # For ASCII this costs a third of the pattern.
    tokens = low.encode().translate(_LETTERS).decode().split() if low.isascii() else _TOKEN.findall(low)
    return Sentence(text, low, tokens)


def binding(text: str) -> float:
    """Return the points of a user's sentence as binding for later turns: 0 to about 3."""
    return binding_points(sentence_of(text))


def binding_points(sentence: Sentence) -> float:
    """Return the same as `binding` for a sentence that is split already."""
    text, low, tokens = sentence
    if asks(text):
        return QUESTION_POINTS if len(text) > SHORT_QUESTION else 0.0
    if "'" in low:
        tokens = [token.strip("'") for token in tokens]
    found = sum(map(_BINDING.__contains__, tokens)) + sum([phrase in low for phrase in _PHRASES])
    names_speaker = not SELF.isdisjoint(tokens)
    if not text.isascii():
        found += len(_BINDING_UNSPACED.findall(text))
        names_speaker = names_speaker or _SELF_UNSPACED.search(text) is not None
    return (
        STATEMENT_POINTS
        + min(found, MOST_BINDING_WORDS) * BINDING_WORD_POINTS
        + (SELF_POINTS if names_speaker else 0.0)
    )


def speaks_of_self(text: str) -> bool:
    """Return whether a text says *I* or *my*."""
    return not SELF.isdisjoint(_tokens(text)) or (not text.isascii() and _SELF_UNSPACED.search(text) is not None)


def speaks_to_other(text: str) -> bool:
    """Return whether a text says *you* or *your*."""
    return not OTHER.isdisjoint(_tokens(text)) or (not text.isascii() and _OTHER_UNSPACED.search(text) is not None)


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text.lower().replace("’", "'"))


def asks(text: str) -> bool:
    """Return whether a text contains a question."""
    # Most sentences have no mark at all; to look for that one costs a hundredth of the pattern.
    return ("?" in text or not text.isascii()) and _QUESTION_MARK.search(text) is not None


_QUESTION_BEGINNINGS: Final = (
    r"(?:tell|remind) me\b|(?:give|show) (?:me|us) (?:the|all|both|every|our|my)\b|(?:list|recap|summari[sz]e) |(?:everything|all) (?:that|i|we|you|about|the)\b",
    r"(?:what|who|when|where|why|how|which)(?:'?s\b| (?:is|was|are|were|did|do|does|had|has|have|should|shall|can|could|would|will|much|many|long|often|old|far|time|day)\b)",
    r"(?:which|whose|whom|who) (?!knows|cares)\w|(?:from|with|to|for|on|in|at|by|about) (?:whom|which|what) ",
    r"(?:did|do|does|have|has) (?:i|we|you|he|she|they|my|our)\b",
    r"(?:sag|erinnere?) mi[rc]h?\b|(?:gib|zeige?) (?:mir|uns) (?:die|das|den|alle|alles|beide)\b|(?:nenn|liste|zähl)e? |alles,? was\b",
    r"(?:was|wo|wie|wer) (?:ist|sind|war|waren|hat|hatten?|haben?|hab|heißt|hieß|viele?|lange|oft|kam|kommt|gibt|macht|machen|darf|sollen?|muss|kann|können|wollte)\b",
    r"(?:(?:ab|an|für|mit|von|zu|seit|bis|in|bei|auf|über) )?(?:wen|wem|wann|wohin|woher|womit|worauf|wofür|wovon|warum|wieso|weshalb|welche[rsnm]?) \w",
    r"(?:dis|rappelle)-moi\b|tout ce qu|qu'est-ce|(?:qui|que|quand|où|pourquoi|comment|combien|quelle?s?) (?:est|était|sont|étaient|ai?|avait|as)\b",
    r"(?:dime|recuérdame|todo lo que)\b|(?:quién|qué|cuándo|dónde|cuántos?|cuál|por qué|cómo) ",
    r"(?:dimmi|ricordami|tutto quello)\b|(?:chi|cosa|quando|dove|perché|quanto|quale) (?:è|era|ha|ho|sono|aveva)\b",
    r"(?:me diga|tudo o que)\b|(?:quem|quando|onde|quanto|qual) (?:é|era|foi|são)\b",
    r"(?:напомни|скажи|перечисли|назови|всё,? что)\b|(?:кто|когда|где|почему|зачем|сколько|какая|какие|какой|куда) ",
    "告诉我|提醒我|列出|总结|(?=[^。！!…]{1,40}[。~～ ]*$)[^。！!]*(?:为啥|(?:什么|哪|谁|多少|怎么)(?![都也怕])|几[号点]|几个月|[吗呢][。…~～ ]*$)|[^。！!]*(?:教えて|まとめて|[すた]か|っけ)[。… ]*$",
)
"""Beginnings of questions without a question mark and of requests to tell something: a question word with its verb, and
other closed classes."""
_OPENING: Final = r"\W*+(?:(?:ok|okay|so|and|now|also|oh|hey|hi|wait|sorry|please|und|ach|bitte|et|alors|y|bueno|e|allora|а|и|ну)\b\W*+){0,2}"
_QUESTION_WITHOUT_MARK: Final = re.compile(f"{_OPENING}(?:{'|'.join(_QUESTION_BEGINNINGS)})", re.I)
SENTENCE: Final = re.compile(r"[^.!?…。！？؟\n]*[.!?…。！？؟\n]*")
LEAST_QUESTION_SHARE: Final = 0.4
"""The least share of a message's characters that its questions have if the message is a question, not a story with a
question in it."""
SHORT_QUESTION_CHARACTERS: Final = 160
"""The most characters of a message that is a question because its last sentence asks. Chosen: two sentences, the subject and
the question."""


UNMARKED_QUESTION_CHARACTERS: Final = 100
"""The most characters of a message that can be a question without a question mark. Chosen: one sentence."""


def asks_to_be_told(text: str) -> bool:
    """Return whether a text begins like a question or a request to tell something."""
    return _QUESTION_WITHOUT_MARK.match(text) is not None


def wants_to_know(text: str) -> bool:
    """Return whether a message asks something: it has a question mark, or it is short and begins like a question or a request
    to tell something. Many people type no question mark."""
    return asks(text) or (len(text) <= UNMARKED_QUESTION_CHARACTERS and asks_to_be_told(text))


_QUESTION_WORD: Final = re.compile(
    r"\b(?:who|whom|whose|what|when|where|whereabouts|which|why|how|wer|wen|wem|wessen|was|wann|wo|wohin|woher|welche[rsnm]?|warum|wieso"
    r"|weshalb|wie|wieviel|qui|que|quoi|quels?|quelles?|où|quand|pourquoi|comment|combien|qué|quién(?:es)?|cuándo|dónde|adónde|cuál(?:es)?"
    r"|cómo|cuánt[oa]s?|chi|che|cosa|quando|dove|quale|quali|perché|come|quant[oaie]|quem|onde|qual|quais|como|wat|wanneer|waar|welke"
    r"|waarom|hoe|кто|кого|что|когда|где|куда|какой|какая|какие|почему|зачем|сколько|как)\b"
    r"|什么|哪|谁|几|多少|怎么|为啥|何|いつ|どこ|誰|どれ|いくら|なぜ|どう|どの|どんな|무엇|뭐|언제|어디|누구|왜|얼마|어느|어떤|몇",
    re.I,
)
"""Question words, a closed class of each language."""


def asks_for_information(text: str) -> bool:
    """Return whether a message is a short question for something that is known already: its question has a question word, or it
    begins with a request to tell something. *Which card was it?* is one; *could you book it?* is an errand."""
    if len(text) > SHORT_QUESTION_CHARACTERS:
        return False
    if asks_to_be_told(text):
        return True
    questions = [sentence for sentence in SENTENCE.findall(text) if asks(sentence)]
    return bool(questions) and is_question(text) and _QUESTION_WORD.search(questions[-1]) is not None


def is_question(text: str) -> bool:
    """Return whether a message is mainly a question, or short and ends with a question. The answer may be anywhere in the
    conversation."""
    if not asks(text):
        return wants_to_know(text)
    sentences = [found[0] for found in SENTENCE.finditer(text) if found[0].strip()]
    if len(text) <= SHORT_QUESTION_CHARACTERS and asks(sentences[-1]):
        return True
    return sum([len(sentence) for sentence in sentences if asks(sentence)]) >= LEAST_QUESTION_SHARE * len(text.strip())


def reports_error(line: str, error_words: Sequence[str] = _ERRORS) -> bool:
    """Return whether a line of output reports an error: it has one of the given words, or a word of failure."""
    low = line.lower()
    if any([error in low for error in error_words]):
        return True
    return ("fail" in low or "erro" in low) and _FAILURE.search(low) is not None


def errors_in(text: str) -> Sequence[str]:
    """Return the error words in a whole text; its lines have no others. In a text with escapes all are possible."""
    low = text.lower()
    return _ERRORS if "\\u" in low else [error for error in _ERRORS if error in low]
