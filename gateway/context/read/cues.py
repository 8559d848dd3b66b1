"""Cues in a sentence: how binding it is for later turns, and whether it speaks of its speaker or to the other one.

A binding sentence is recognised by its words: it is no question, and it speaks of the speaker, of all times, of conditions or
of duty. The words below are function words of many languages (modal verbs, quantifiers, adverbs, pronouns). They belong to no
subject. A binding sentence without these words still has the worth of a user's statement.
"""

import re
from typing import Final, NamedTuple

from gateway.context.read.questions import asks

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
