"""Standing wishes: what a user wants from now on, recognised by its wording and by the assistant's reply.

A wish speaks to the other ("you"), of all times, of duty or of things to avoid. It is often an aside, and the reply
begins with a word of assent. A story speaks of the past and of third persons. The words below are closed classes of
some languages, not the vocabulary of a subject. A wish in other words still has the assistant's assent.
"""

import re
from collections.abc import Sequence
from math import fsum
from operator import mul
from typing import Final, NamedTuple

from gateway.context.choose import weights
from gateway.context.choose.cues import OTHER, SELF
from gateway.context.choose.learned import points_of
from gateway.context.choose.words import stem

_NEGATION: Final = (
    "no not never nothing none nobody nor neither without don't doesn't didn't can't cannot won't wouldn't shouldn't mustn't isn't aren't"
    " nicht nie niemals kein keine keinen keinem keiner nichts ohne ne pas jamais rien aucun aucune sans nunca nada ningún ninguna sin não"
    " sem non mai niente senza niet nooit geen zonder inte aldrig ikke aldri не нет никогда ничего без нельзя nie nigdy bez nic"
)
_ALL_TIMES: Final = (
    "always only ever every everything everyone everybody any anything anyone anybody all each whenever whatever whoever wherever usually"
    " throughout immer stets nur jede jeder jedes jeden jedem alle allen alles künftig grundsätzlich überhaupt toujours seulement chaque tout"
    " toute tous toutes désormais dorénavant siempre solo sólo cada todo toda todos todas sempre soltanto ogni tutto tutti só apenas altijd"
    " alleen alltid bara varje всегда только каждый каждую каждое все всё лишь zawsze tylko każdy wszystko"
)
_DUTY: Final = (
    "must should shall ought need needs have let please keep leave make prefer rather instead avoid remember stop want like okay may can could"
    " would will muss müssen musst soll sollen sollst sollte darf dürfen bitte lass lieber statt kannst könntest möchte will mag dois doit"
    " devez faut veux voudrais préfère plutôt peux pouvez évite debe debes debo quiero prefiero puedes podrías evita favor deve devi voglio"
    " preferisco puoi pode quero prefiro moet wil graag kun должен должна надо нужно можно хочу пожалуйста лучше muszę proszę chcę wolę"
)
_STORY: Final = (
    "was were had did been went came said told got took gave asked thought knew made found saw left sat ran yesterday ago last today tonight"
    " tomorrow war waren hatte hatten wurde wurden hat haben habe hab gestern heute morgen letzte vorhin gerade était étaient avait ai été"
    " hier aujourd'hui demain fue era estaba había ayer hoy mañana ha è era ieri oggi domani foi ontem hoje amanhã gisteren vandaag был была"
    " было были вчера сегодня завтра сказал сказала"
)
_THIRD: Final = (
    "he she they him her them his their er sie ihm ihn ihr ihre seine il elle ils elles lui leur él ella ellos ellas su sus lei lui loro ele"
    " ela eles hij zij ze haar hem он она они его её ее их ему ей им"
)
_CONDITION: Final = (
    "if when before unless until once wenn falls bevor sobald solange bis si quand avant cuando antes hasta se quando prima fino als wanneer"
    " voordat если когда пока до прежде jeśli kiedy gdy"
)
_CHANGE: Final = (
    "again back anymore longer now forget after doch wieder mehr jetzt sofort vergiss finalement maintenant oublie encore ya ahora olvida"
    " vuelve adesso più dimentica agora mais теперь больше уже снова опять забудь"
)
_NAMING: Final = "call called name everyone heiße nenn nennen heisse name appelle nom appelez llamo llama llámame nombre chiamo chiamami nome зовут зови"
_CLASSES: Final = (
    (frozenset(_NEGATION.split()), weights.NEGATION, re.compile("不|别|別|没|無|ない|ません")),
    (
        frozenset(_ALL_TIMES.split()),
        weights.ALL_TIMES,
        re.compile("都|每|总|所有|永远|全|只|以后|いつも|必ず|全部|だけ|毎"),
    ),
    (
        frozenset(_DUTY.split()),
        weights.DUTY,
        re.compile("要|得|应该|请|能|想|就|给我|帮我|吧|ください|べき|ほしい|たい"),
    ),
    (OTHER, weights.TO_OTHER, re.compile("你|您|あなた|君")),
    (SELF, weights.OF_SELF, re.compile("我|私|僕|俺")),
    (frozenset(_STORY.split()), weights.STORY, re.compile("了|过|昨|今天|明天|した|だった|昨日|今日")),
    (frozenset(_THIRD.split()), weights.THIRD_PERSON, re.compile("他|她|它|彼")),
    (frozenset(_CONDITION.split()), weights.CONDITION, re.compile("如果|要是|的时候|以前|之前|なら|たら|時")),
    (frozenset(_CHANGE.split()), weights.CHANGE, re.compile("现在|改|还是|又|今|もう")),
    (frozenset(_NAMING.split()), weights.NAMING, re.compile("叫|称呼|名|呼")),
)
_UNSPACED: Final = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")
_TOKEN: Final = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
FEW_SENTENCES: Final = 4
"""Sentences. What all of so few have in common still tells something."""
MOST_OF_A_CLASS: Final = 2
"""Words of one class that count in a sentence."""
_ASIDE: Final = re.compile(
    r"\W*(?:(?:oh|and|but|ok|okay|yes|no|right|so|hmm?|und|aber|gut|ach|et|y|e|и|а)\b\W*){0,3}(?:by the way|btw|one (?:more )?thing|another thing"
    r"|also|while (?:i|we)|before (?:you|i|we)|oh and|and (?:please|if|when|could)|please|could you|can (?:you|we)|don't|just so|noch (?:was|eine?)"
    r"|übrigens|ach ja|bitte|wichtig|und noch|au fait|sinon|autre chose|une chose|por cierto|(?:otra|una) cosa|ah y|a proposito|кстати"
    r"|и ещё|ещё одно|важно|à propos)|\W*(?:对了|还有|哦对|话说|另外|以后|ちなみに|それと|あと)",
    re.I,
)
_ASSENT: Final = re.compile(
    r"\W*(?:(?:oh|ah|yes|ja|si|sí|oui|да)\b\W*)?(?:understood|noted|of course|got it|certainly|completely|gladly|absolutely|sure|right|fair enough"
    r"|agreed|okay|ok|will do|done|very well|with pleasure|no problem|makes sense|clear|good|then|consider|promise|i'll|i will|i won't|you won't"
    r"|no more|thanks|thank you|(?:ist )?notiert|verstanden|verständlich|geht klar|gerne?|klar|natürlich|alles klar|in ordnung|mach ich|gut"
    r"|danke|kein problem|einverstanden|entendu|compris|bien sûr|d'accord|(?:c'est )?noté|très bien|parfait|entendido|claro|por supuesto"
    r"|de acuerdo|anotado|vale|perfecto|capito|certo|va bene|d'accordo|combinado|begrepen|natuurlijk|prima|goed|понял|поняла|хорошо|конечно"
    r"|договорились|принято|учту|ладно|rozumiem|oczywiście|dobrze|jasne)\b"
    r"|\W*(?:好|明白|记住|没问题|可以|行|知道|了解|收到|当然|わかりました|承知|もちろん|はい|알겠|물론)",
    re.I,
)
_CHANGES: Final = (
    "again", "back to", "take (?:it|that) back", "forget (?:what|that|about|the|it)", "no longer", "any ?more", "not need", "no need",
    "from (?:here|now) on", "go back", "now(?:adays)?", "changed my mind", "wieder", "doch", "nicht mehr", "ab (?:sofort|jetzt)", "vergiss",
    "anders gesagt", "à nouveau", "de nouveau", "ne .{1,20} plus", "oublie", "finalement", "de nuevo", "otra vez", "ya no", "olvida",
    "al final", "di nuovo", "non .{1,20} più", "dimentica", "de novo", "снова", "опять", "больше не", "забудь", "теперь",
)  # fmt: skip
"""Patterns of words for a change; each begins with plain letters."""
_REVOKES: Final = re.compile(rf"\b(?:{'|'.join(_CHANGES)})\b|现在|以后|改成|还是|不用再|やっぱり|もう", re.I)
_PLAIN: Final = re.compile(r"(?:\w(?![?*])| (?![?*]))+")
_OPENINGS: Final = tuple(
    (found[0], re.compile(rf"\b{change}\b"))
    for change in _CHANGES
    if (found := _PLAIN.match(change)) and change.isascii()
)
"""Each of these patterns with the letters that it begins with: to look for these in an ASCII text costs a tenth of a search for all."""


_CLASSES_OF: Final = {
    word: tuple(number for number, (words, _, _) in enumerate(_CLASSES) if word in words)
    for word in frozenset().union(*[words for words, _, _ in _CLASSES])
}


_UNSPACED_FUNCTION: Final = re.compile(
    "[我你他她它的了是在有不这那就都还也要能给以后现对说着吧啊呢吗和跟のはがをにもでと]"
)
"""Characters that no telling pair has: pronouns, particles and the like."""
_FUNCTION_STEMS: Final = frozenset(map(stem, _CLASSES_OF))
_LEAST_LETTERS: Final = 4
"""Letters of a telling word in a script with spaces."""


def telling(key: str) -> bool:
    """Return whether a word says what a wish is about, as `Word.key`: it is of none of the classes above, and not short."""
    if key.isascii() or not _UNSPACED.match(key):
        return len(key) >= _LEAST_LETTERS and key not in _FUNCTION_STEMS
    return len(key) > 1 and not _UNSPACED_FUNCTION.search(key)


class Heard(NamedTuple):
    """What a sentence says of wishes by itself, whatever stands around it: read once, with the sentence."""

    wish: float
    """Points that its words tell of a wish."""
    revokes: float
    """How much it sounds like taking a wish back: points above what any sentence has."""
    signs: bytes
    """For each class of words the number that the sentence has of them, at most `MOST_OF_A_CLASS`."""
    aside: bool
    """Whether it begins like an aside."""
    changes: bool
    """Whether it speaks of a change; see `may_revoke`."""


NOTHING_HEARD: Final = Heard(0.0, 0.0, bytes(len(_CLASSES)), aside=False, changes=False)


def heard(sentence: str) -> Heard:
    """Read what a sentence says of wishes."""
    learned, changes = points_of(sentence), may_revoke(sentence)
    revokes = max(learned.revokes + weights.REVOCATION_OFFSET + (weights.CHANGE_WORD_POINTS if changes else 0.0), 0.0)
    return Heard(learned.wish, revokes, signs(sentence), _ASIDE.match(sentence) is not None, changes)


def strength(sentence: Heard) -> float:
    """Return how much a sentence by itself sounds like a standing wish: 0 for a story, about 4 for most wishes."""
    return weighed(sentence, _ALIKE)


def signs(sentence: str) -> bytes:
    """Return for each class of words the number that a sentence has of them, at most `MOST_OF_A_CLASS`."""
    found = [0] * len(_CLASSES)
    low = sentence.lower().replace("’", "'")
    for token in _tokens(low):
        if token in _CLASSES_OF:
            for number in _CLASSES_OF[token]:
                found[number] += 1
    if not sentence.isascii():
        for number, (_, _, unspaced) in enumerate(_CLASSES):
            found[number] += len(unspaced.findall(sentence))
    return bytes([number if number < MOST_OF_A_CLASS else MOST_OF_A_CLASS for number in found])


_LETTERS: Final = bytes(code if code in b"abcdefghijklmnopqrstuvwxyz'" else ord(" ") for code in range(256))


def _tokens(low: str) -> list[str]:
    """Return what `_TOKEN` finds in a text of small letters; in ASCII at a third of its cost."""
    if not low.isascii():
        return _TOKEN.findall(low)
    tokens = low.encode().translate(_LETTERS).decode().split()
    if "'" not in low:
        return tokens
    return [part for token in tokens for part in (_TOKEN.findall(token) if "'" in token else (token,))]


def tells(among: Sequence[bytes]) -> list[float]:
    """Return for each class what one of its words tells in this conversation: its weight if no sentence has any, 0 if all have.

    A customer who begins each request with "could you" tells no wish by it. Without sentences all tell their weight. ``among`` has the `signs` of each.
    """
    total, of_all = len(among) + FEW_SENTENCES, b"".join(among)
    having = [len(among) - of_all[number :: len(_CLASSES)].count(0) for number in range(len(_CLASSES))]
    return [weight * (1 - number / total) ** 2 for (_, weight, _), number in zip(_CLASSES, having, strict=True)]


_ALIKE: Final = tells([])


def weighed(sentence: Heard, tells: Sequence[float]) -> float:
    """Return how much a sentence sounds like a standing wish, with what a word of each class `tells`."""
    return (weights.ASIDE if sentence.aside else 0.0) + fsum(map(mul, sentence.signs, tells))


def assents(reply: str) -> bool:
    """Return whether a reply begins by agreeing to a wish."""
    return _ASSENT.match(reply) is not None


def may_revoke(sentence: str) -> bool:
    """Return whether a sentence speaks of a change: it may revoke a wish with which it shares a telling word."""
    if not sentence.isascii():
        return _REVOKES.search(sentence) is not None
    low = sentence.lower()
    return any([_stands(change, opening, low) for opening, change in _OPENINGS if opening in low])


def _stands(pattern: re.Pattern[str], opening: str, text: str) -> bool:
    """Return whether a text has a pattern that begins with these letters."""
    at = text.find(opening)
    while at >= 0:
        if pattern.match(text, at):
            return True
        at = text.find(opening, at + 1)
    return False
