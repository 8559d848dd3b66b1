"""Cues of standing wishes: how much a sentence sounds like a wish for all later turns, or like the revocation of one.

The words of a sentence show it. A wish has words for the other speaker (*you*), for all times (*always*), for duty (*must*) or
for things to avoid (*never*). It is often an aside, and the reply often begins with a word of assent. A story has words for the
past and for third persons. The words below are function words of some languages, such as pronouns and modal verbs. They belong
to no subject. A wish without them can still be found by the assistant's assent.
"""

import re
from collections.abc import Sequence
from math import fsum
from operator import mul
from typing import Final

import msgspec

from gateway.context import weights
from gateway.context.read.cues import OTHER, SELF, Sentence
from gateway.context.read.learned import points_of
from gateway.context.read.words import stem

_NEGATION: Final = (
    "no not never nothing none nobody nor neither without don't doesn't didn't can't cannot won't wouldn't shouldn't mustn't isn't aren't"
    " nicht nie niemals kein keine keinen keinem keiner nichts ohne ne pas jamais rien aucun aucune sans nunca nada ningún ninguna sin não"
    " sem non mai niente senza niet nooit geen zonder inte aldrig ikke aldri не нет никогда ничего без нельзя nie nigdy bez nic"
    " değil yok hiç asla không đừng chẳng chả cấm khỏi tidak nggak gak enggak jangan bukan tanpa δεν δε μην μη όχι ποτέ τίποτα κανείς κανένας"
    " κανέναν χωρίς ούτε nem soha sosem senki senkinek semmi semmit nincs nélkül nikdy nikomu nikdo žádný žádná žádné žádnou není nu"
    " niciodată nimic nimeni fără nici niciun nicio ні ніколи нічого ніхто нікому немає нема жодного ei älä ikinä koskaan mitään ilman"
    " kenellekään ingen intet ingenting uden uten inget inga utan לא אל אין בלי אף כלום نه هیچ هیچ‌وقت نباید بدون هیچی"
)
_ALL_TIMES: Final = (
    "always only ever every everything everyone everybody any anything anyone anybody all each whenever whatever whoever wherever usually"
    " throughout immer stets nur jede jeder jedes jeden jedem alle allen alles künftig grundsätzlich überhaupt toujours seulement chaque tout"
    " toute tous toutes désormais dorénavant siempre solo sólo cada todo toda todos todas sempre soltanto ogni tutto tutti só apenas altijd"
    " alleen alltid bara varje всегда только каждый каждую каждое все всё лишь zawsze tylko każdy wszystko"
    " hep daima sadece yalnızca bütün tüm herkes luôn mọi toàn chỉ mỗi selalu setiap semua cuma hanya tiap seluruh πάντα κάθε όλα όλοι όλες"
    " μόνο mindig minden mindenki mindenhol csak vždy vždycky každý každé každou všechno všichni všude jen jenom pouze mereu întotdeauna"
    " orice fiecare toate toți doar numai завжди кожен кожного всі лише тільки всюди щоразу aina kaikki vain vaan altid kun hver hvert alla"
    " endast תמיד כל רק הכול همیشه هر همه فقط"
)
_DUTY: Final = (
    "must should shall ought need needs have let please keep leave make prefer rather instead avoid remember stop want like okay may can could"
    " would will muss müssen musst soll sollen sollst sollte darf dürfen bitte lass lieber statt kannst könntest möchte will mag dois doit"
    " devez faut veux voudrais préfère plutôt peux pouvez évite debe debes debo quiero prefiero puedes podrías evita favor deve devi voglio"
    " preferisco puoi pode quero prefiro moet wil graag kun должен должна надо нужно можно хочу пожалуйста лучше muszę proszę chcę wolę"
    " lütfen lazım gerek olsun şart mutlaka kesinlikle istiyorum phải hãy nhớ nên cần xin muốn nhé harus tolong mohon wajib boleh perlu usah"
    " biar πρέπει ας θέλω παρακαλώ μπορείς χρειάζεται kell kérlek kérem legyen szeretném tessék muszáj szabad inkább musí musím prosím chci"
    " ať smí nesmí můžeš raději radši trebuie vreau rog poți треба мусить повинен прошу можна можеш краще хай нехай pitää täytyy saa pakko"
    " haluan kiitos mieluummin skal må vil gerne helst husk ska måste får vill tack צריך חייב חייבת רוצה בבקשה אפשר باید لطفا می‌خوام حتما"
)
_STORY: Final = (
    "was were had did been went came said told got took gave asked thought knew made found saw left sat ran yesterday ago last today tonight"
    " tomorrow war waren hatte hatten wurde wurden hat haben habe hab gestern heute morgen letzte vorhin gerade était étaient avait ai été"
    " hier aujourd'hui demain fue era estaba había ayer hoy mañana ha è era ieri oggi domani foi ontem hoje amanhã gisteren vandaag был была"
    " было были вчера сегодня завтра сказал сказала"
    " dün bugün yarın đã hôm kemarin tadi besok χτες χθες σήμερα αύριο ήταν είχε είχα volt voltam tegnap holnap lett byl byla bylo byli včera"
    " dnes zítra fost mâine azi був була було були вчора учора сьогодні oli olin eilen tänään huomenna havde blev hadde ble hade igår idag"
    " imorgon היה הייתי אתמול מחר היום بود دیروز فردا امروز شد"
)
_THIRD_PERSON: Final = (
    "he she they him her them his their er sie ihm ihn ihr ihre seine il elle ils elles lui leur él ella ellos ellas su sus lei lui loro ele"
    " ela eles hij zij ze haar hem он она они его её ее их ему ей им"
    " onu ona onun nó họ ấy mereka αυτός εκείνος ő neki jeho její ea він вона вони його її hän han hun hon honom henne הוא היא הם اون او"
)
_CONDITION: Final = (
    "if when before unless until once wenn falls bevor sobald solange bis si quand avant cuando antes hasta se quando prima fino als wanneer"
    " voordat если когда пока до прежде jeśli kiedy gdy"
    " eğer önce kadar nếu khi trước kalau jika sebelum αν όταν πριν μέχρι amikor mielőtt amíg előtt když pokud než dokud kdyby dacă când"
    " înainte până якщо коли доки поки перш jos kun ennen hvis når før när innan förrän אם לפני עד اگه اگر وقتی قبل"
)
_CHANGE: Final = (
    "again back anymore longer now forget after doch wieder mehr jetzt sofort vergiss finalement maintenant oublie encore ya ahora olvida"
    " vuelve adesso più dimentica agora mais теперь больше уже снова опять забудь"
    " artık yine tekrar şimdi yeniden lại nữa rồi thôi sekarang lagi sudah udah balik πια πάλι τώρα ξανά τελικά már megint újra mégis többé"
    " už zase teď znovu iar acum nou вже знову тепер більше taas enää nyt nykyään længere igjen nå lenger längre עכשיו שוב כבר دیگه دوباره"
    " الان"
)
_NAMING: Final = (
    "call called name everyone heiße nenn nennen heisse name appelle nom appelez llamo llama llámame nombre chiamo chiamami nome зовут зови"
    " adım derler hitap gọi tên xưng panggil nama λένε λέγε όνομα hívj hív szólíts říkej říkají jmenuju cheamă zice називай кличе звати kutsu"
    " kutsuu kald hedder kall heter kalla קוראים תקראי صدا"
)
_MORE_OTHER_WORDS: Final = (
    "seni sende senin bạn cậu kamu anda kau σου σε εσύ εσένα σας neked téged veled ön önnek ty tě tobě tebe vám îți ție tine ти тебе тобі"
    " вам вас твій sinä sinun sinulle sinut dig dine deg ditt dina אתה לך שלך تو شما"
)
_MORE_SELF_WORDS: Final = (
    "benim bana beni bende bizim bize tôi mình tớ saya aku gue kami εγώ μου μας εμένα én engem nekem velem nálunk já mě mně můj moje nám mie"
    " îmi mă meu mea мене мені мій моя мої ми нас нам minä minun minua minulle minut mä meillä meidän mig vores meg mitt oss אני לי שלי אותי"
    " אנחנו منو"
)
"""*I* and *my* of languages that `SELF` does not have. Questions are read with that, so these words change nothing in questions."""
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
    (OTHER | frozenset(_MORE_OTHER_WORDS.split()), weights.TO_OTHER, re.compile("你|您|あなた|君")),
    (SELF | frozenset(_MORE_SELF_WORDS.split()), weights.OF_SELF, re.compile("我|私|僕|俺")),
    (frozenset(_STORY.split()), weights.STORY, re.compile("了|过|昨|今天|明天|した|だった|昨日|今日")),
    (frozenset(_THIRD_PERSON.split()), weights.THIRD_PERSON, re.compile("他|她|它|彼")),
    (frozenset(_CONDITION.split()), weights.CONDITION, re.compile("如果|要是|的时候|以前|之前|なら|たら|時")),
    (frozenset(_CHANGE.split()), weights.CHANGE, re.compile("现在|改|还是|又|今|もう")),
    (frozenset(_NAMING.split()), weights.NAMING, re.compile("叫|称呼|名|呼")),
)
_UNSPACED: Final = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")
_TOKEN: Final = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
ADDED_SENTENCES: Final = 4
"""Number that is added to a conversation's sentences, so that a class keeps some weight where all of very few sentences have
it."""
MOST_OF_A_CLASS: Final = 2
"""The most words of one class that count in a sentence."""
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
_REVOKING_PHRASES: Final = (
    "again", "back to", "take (?:it|that) back", "forget (?:what|that|about|the|it)", "no longer", "any more", "anymore", "not need", "no need",
    "from (?:here|now) on", "go back", "now", "nowadays", "changed my mind", "wieder", "doch", "nicht mehr", "ab (?:sofort|jetzt)", "vergiss",
    "anders gesagt", "à nouveau", "de nouveau", "ne .{1,20} plus", "oublie", "finalement", "de nuevo", "otra vez", "ya no", "olvida",
    "al final", "di nuovo", "non .{1,20} più", "dimentica", "adesso", "ormai", "invece", "de novo", "agora", "j[áa] n[ãa]o", "n[ãa]o .{1,20} mais", "esquece", "voltou a", "снова", "опять", "больше не", "уже не", "забудь",
    "теперь", "отныне", "передумала?", "teraz", "już", "znowu", "znów", "jednak", "zapomnij", "weer", "niet meer", "toch", "vergeet", "voortaan",
    "igen", "inte längre", "glöm", "artık", "tekrar", "yine", "unut", "vazgeçtim", "[وف]?(?:هلأ|هلق|الآن|الان|خلص|انسى?|رجعت?|بطلت?|من اليوم)",
    "עכשיו", "שוב", "יותר לא", "अब", "फिर से", "भूल",
    "yeniden", "gerek kalmadı", "boş ver", "không .{1,20} nữa", "không cần", "khỏi", "quên", "đổi ý", "rồi", "hết", "lagi", "sudah", "udah", "lupakan",
    "nggak usah", "gak usah", "tidak usah", "nggak perlu", "tidak perlu", "πια", "πάλι", "ξανά", "ξέχνα", "τελικά", "τέρμα", "már", "újra", "megint",
    "mégis", "többé", "felejtsd", "mostantól", "ezentúl", "už", "zase", "znovu", "zapomeň", "nakonec", "odteď", "nu mai", "din nou", "iar", "uită",
    "de acum", "înapoi", "знову", "вже", "більше не", "тепер", "відтепер", "taas", "enää", "nykyään", "sittenkin", "unohda", "tästä lähtien",
    "længere", "ikke .{1,20} mere", "glem", "alligevel", "fra nu af", "igjen", "lenger", "likevel", "fra nå av", "längre", "numera", "ändå",
    "från och med nu", "כבר", "دیگه", "دوباره",
)  # fmt: skip
"""Patterns of phrases by which people take something back (*no longer*, *take that back*); each begins with a whole word. The words of
`_CHANGE` are only one of the classes of words of wishes."""
_REVOKING_PHRASE: Final = re.compile(
    rf"\b(?:{'|'.join(_REVOKING_PHRASES)})\b|现在|以后|改成|还是|不用再|やっぱり|もう|이제|다시|취소|앞으로|바꿨", re.I
)
_PLAIN: Final = re.compile(r"(?:\w(?![?*])| (?![?*]))+")


def _revoking_patterns() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """Return for each first word the patterns of ASCII letters, each behind the plain letters with which it begins. Searching for these
    letters costs a tenth of searching for the pattern."""
    found: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for change in _REVOKING_PHRASES:
        opening = _PLAIN.match(change)
        if opening and change.isascii():
            first_word = change.partition(" ")[0]
            found.setdefault(first_word, []).append((opening[0], re.compile(rf"\b{change}\b")))
    return found


_REVOKING_PATTERNS: Final = _revoking_patterns()


_CLASSES_OF_WORD: Final = {
    word: tuple(index for index, (words, _, _) in enumerate(_CLASSES) if word in words)
    for word in frozenset().union(*[words for words, _, _ in _CLASSES])
}


_UNSPACED_FUNCTION: Final = re.compile(
    "[我你他她它的了是在有不这那就都还也要能给以后现对说着吧啊呢吗和跟のはがをにもでと]"
)
"""Characters of function words: pronouns, particles and the like. In scripts without spaces a content word is a pair of
characters without any of them."""
_FUNCTION_STEMS: Final = frozenset(map(stem, _CLASSES_OF_WORD))
_LEAST_LETTERS: Final = 4
"""Letters of a content word in a script with spaces."""


def is_content_word(key: str) -> bool:
    """Return whether a word (as `Word.key`) can say what a wish is about: it is long enough and no function word."""
    if key.isascii() or not _UNSPACED.match(key):
        return len(key) >= _LEAST_LETTERS and key not in _FUNCTION_STEMS
    return len(key) > 1 and not _UNSPACED_FUNCTION.search(key)


class WishCues(msgspec.Struct, frozen=True):
    """The cues of a sentence alone, without its context. They are computed once, when the sentence is read."""

    wish: float
    """Learned points of a wish."""
    revocation: float
    """Points of a revocation; never negative."""
    class_counts: bytes
    """For each class the number of its words in the sentence, at most `MOST_OF_A_CLASS`."""
    strength: float
    """Points as a wish, with the full weight of each class: 0 for a story, about 4 for most wishes."""
    is_aside: bool
    """Whether the sentence begins like an aside."""
    has_revoking_phrase: bool
    """Whether the sentence has a phrase that revokes something; see the function `has_revoking_phrase`."""


NO_WISH_CUES: Final = WishCues(0.0, 0.0, bytes(len(_CLASSES)), 0.0, is_aside=False, has_revoking_phrase=False)


def wish_cues(sentence: Sentence) -> WishCues:
    """Return the cues of a sentence."""
    learned, is_revoking = points_of(sentence.text), has_revoking_phrase(sentence)
    revocation = max(
        learned.revocation + weights.REVOCATION_OFFSET + (weights.REVOKING_PHRASE_POINTS if is_revoking else 0.0), 0.0
    )
    counts, is_aside = class_counts(sentence), _ASIDE.match(sentence.text) is not None
    strength = cue_points(counts, _CLASS_WEIGHTS, is_aside=is_aside)
    return WishCues(learned.wish, revocation, counts, strength, is_aside, is_revoking)


def class_counts(sentence: Sentence) -> bytes:
    """Return for each class the number of its words in a sentence, at most `MOST_OF_A_CLASS`."""
    found = [0] * len(_CLASSES)
    for token in _words_of(sentence):
        if token in _CLASSES_OF_WORD:
            for index in _CLASSES_OF_WORD[token]:
                found[index] += 1
    if not sentence.text.isascii():
        for index, (_, _, unspaced) in enumerate(_CLASSES):
            found[index] += len(unspaced.findall(sentence.text))
    return bytes([count if count < MOST_OF_A_CLASS else MOST_OF_A_CLASS for count in found])


def _words_of(sentence: Sentence) -> list[str]:
    """Return the words of a sentence, each with at most one apostrophe, inside it."""
    if "'" not in sentence.low or not sentence.low.isascii():
        return sentence.tokens
    return [part for token in sentence.tokens for part in (_TOKEN.findall(token) if "'" in token else (token,))]


def class_weights(sentences: Sequence[bytes]) -> list[float]:
    """Return the weight of each class in a conversation: the full weight if no sentence has a word of it, 0 if all have.

    If a customer begins each request with *could you*, this is no evidence of a wish. ``sentences`` has the `class_counts`
    of each sentence. Without sentences, the weights are full.
    """
    total, joined = len(sentences) + ADDED_SENTENCES, b"".join(sentences)
    sentences_with = [len(sentences) - joined[index :: len(_CLASSES)].count(0) for index in range(len(_CLASSES))]
    return [weight * (1 - count / total) ** 2 for (_, weight, _), count in zip(_CLASSES, sentences_with, strict=True)]


_CLASS_WEIGHTS: Final = class_weights([])


def cue_points(class_counts: bytes, weight_of_class: Sequence[float], *, is_aside: bool) -> float:
    """Return the points of a sentence as a wish by its classes of words, with the given `class_weights`."""
    return (weights.ASIDE if is_aside else 0.0) + fsum(map(mul, class_counts, weight_of_class))


def is_assent(reply: str) -> bool:
    """Return whether a reply begins by agreeing to a wish."""
    return _ASSENT.match(reply) is not None


def has_revoking_phrase(sentence: Sentence) -> bool:
    """Return whether a sentence has one of `_REVOKING_PHRASES`: it may revoke a wish with which it shares a content word."""
    if not sentence.text.isascii():
        return _REVOKING_PHRASE.search(sentence.text) is not None
    low = sentence.low
    first_words = _REVOKING_PATTERNS.keys() & sentence.tokens
    if "'" in low:  # *again's* has the word *again*
        parts = [part for token in sentence.tokens if "'" in token for part in token.split("'")]
        first_words |= _REVOKING_PATTERNS.keys() & parts
    patterns = [pattern for word in first_words for pattern in _REVOKING_PATTERNS[word]]
    return any([_matches_at_opening(change, opening, low) for opening, change in patterns])


def _matches_at_opening(pattern: re.Pattern[str], opening: str, text: str) -> bool:
    """Return whether a text matches a pattern, which begins with the letters of ``opening``."""
    at = text.find(opening)
    while at >= 0:
        if pattern.match(text, at):
            return True
        at = text.find(opening, at + 1)
    return False
