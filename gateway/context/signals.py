"""Signals in a sentence: does it bind what comes later, does it ask, does it report an error.

A sentence that binds is told by how it is built: it is no question, it speaks of the speaker or to the listener, it speaks of all times or of
conditions. The words below are the closed classes of several languages (modal verbs, adverbs of generality,
pronouns), not the vocabulary of any subject. What they miss still has the weight of a user's own statement.
"""

import re
from typing import Final

_BOUND = (
    # English
    "never|always|must(?:n['’]t)?|should(?:n['’]t)?|shall|ought|need(?:s|ed)? to|ha(?:ve|s) to|don['’]t|do not|does(?:n['’]t| not)|can(?:['’]t|not)|won['’]t"
    "|only|every(?:thing|one|body)?|each|any(?:thing|one|body)?|all|none?|nothing|nobody|whenever|whatever|whoever|wherever|unless|until|before|after"
    "|from now on|in future|by default|at (?:most|least)|instead|rather|prefer\\w*|required?|remember|forget|keep|avoid|throughout"
    "|make sure|ensure|mind|essential|important"
    # German, Dutch, Scandinavian
    "|nie(?:mals)?|immer|stets|m(?:uss|üssen|usst)|soll(?:en|st|te)?|darf|dürfen|nicht|kein(?:e[nmrs]?)?|nur|jede[nmrs]?|alle[nmrs]?|ab jetzt|künftig|lieber"
    "|nooit|altijd|moet(?:en)?|geen|alleen|elke?|aldrig|alltid|altid|aldri|måste|må|skal|ska|inte|ikke|bara|kun"
    # French, Spanish, Italian, Portuguese, Romanian
    "|jamais|toujours|doi[st]|devez|doivent|faut|pas|seulement|chaque|tou(?:t|te|s|tes)|dorénavant|désormais|plutôt|sans|avant|aucune?"
    "|nunca|siempre|deb(?:e|es|en|o)|hay que|tiene[ns]? que|sólo|solo|cada|tod[oa]s?|ningun[oa]?|jamás|a partir de ahora|prefiero|antes"
    "|mai|sempre|dev(?:i|e|ono|o)|non|soltanto|ogni|tutt[oaie]|nessun[oa]?|senza|preferisco|não|deve[ms]?|somente|apenas|todos?|todas?|nenhum[a]?|prefiro|numai|doar"
    # Slavic, Turkish, Greek, Finnish, Hungarian, Indonesian
    "|никогда|всегда|долж(?:ен|на|ны|но)|нужно|надо|нельзя|не|только|кажд\\w+|все(?:гда|х|м)?|ніколи|завжди|треба|nigdy|zawsze|mus(?:i|isz|zę|í)|nie|tylko|każd\\w+|nikdy|vždy|jen"
    "|asla|hiçbir|her(?: zaman)?|daima|sadece|gerek\\w*|lazım|πάντα|ποτέ|πρέπει|μόνο|aina|ei koskaan|täytyy|vain|soha|mindig|kell|csak|selalu|jangan|harus|hanya"
    # Semitic, Indic
    "|أبدا|دائما|يجب|لا|فقط|كل|לא|תמיד|רק|חייב|हमेशा|कभी नहीं|केवल|सिर्फ|मत|चाहिए"
)
_BINDS: Final = re.compile(rf"(?<![^\W_])(?:{_BOUND})(?![^\W_])", re.I)
# Scripts without spaces: Chinese, Japanese, Korean endings, Thai.
_BINDS_UNSPACED: Final = re.compile(
    "必须|必須|总是|總是|永远|永遠|从不|不要|不得|不能|別|别|只能|只要|每次|所有|以后|以後|务必|一律|禁止|应该|應該|请|請|始终|默认"
    "|絶対|必ず|常に|いつも|決して|ない(?:で|こと)|ません|ください|べき|だけ|すべて|毎回|今後"
    "|항상|절대|반드시|언제나|마세요|주세요|해야|만 |모든|앞으로|ต้อง|ห้าม|เสมอ|อย่า|ทุก|เท่านั้น"
)
_ASKS: Final = re.compile(r"[?？؟;;](?:\s|[\"'”’)\]]|$)|[?？؟]\s*$")
_ERROR: Final = re.compile(
    r"(?<![a-z])(?:error|exception|traceback|fail(?:ed|ure|s|ing)?|fatal|panic|abort(?:ed)?|denied|refused|rejected|invalid|not found|no such|cannot|can't"
    r"|unable|undefined|unexpected|timed? ?out|unauthori[sz]ed|forbidden|conflict|overflow|segfault|killed|insufficient|missing|warning|assert(?:ion)?\w*"
    r"|fehler|fehlgeschlagen|erreur|échec|error(?:es)?|fallo|falló|errore|erro|ошибка|错误|失败|エラー|失敗|오류)",
    re.I,
)
_SELF: Final = re.compile(
    r"(?<![^\W_])(?:I|my|me|mine|we|our|us|I['’]\w+|we['’]\w+|ich|mein\w*|wir|unser\w*|je|j['’]|mon|ma|mes|nous|notre|yo|mi|mis|nosotros|nuestr\w+|io|mio|mia"
    r"|noi|eu|meu|minha|nós|я|мой|моя|мы|наш\w*|ik|mijn|wij|ons|jag|min|vi|jeg|ja|mój|benim|biz|أنا|मैं|मेर\w+)(?![^\W_])|我|私|僕|저|나는|제 "
)


def binding(sentence: str) -> float:
    """How much a user's sentence sounds as if it were to hold from now on: 0 to about 3."""
    if _ASKS.search(sentence):
        return 0.2 if len(sentence) > 20 else 0.0
    found = len(_BINDS.findall(sentence)) + len(_BINDS_UNSPACED.findall(sentence))
    return 0.6 + min(found, 3) * 0.55 + (0.4 if _SELF.search(sentence) else 0.0)


def asks(text: str) -> bool:
    """Whether a text has a question in it."""
    return _ASKS.search(text) is not None


def reports_error(line: str) -> bool:
    """Whether a line of output reports that something went wrong."""
    return _ERROR.search(line) is not None
