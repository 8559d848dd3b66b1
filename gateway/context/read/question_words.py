"""Question words: the closed class of words by which a language asks, in some forty languages.

Many languages move such a word to the beginning of its clause (*which card was it*). There it asks, and further on it mostly joins clauses (*the
card which I lost*). Other languages leave it where the answer will be (*kart numarası neydi*, *thẻ nào*).
"""

import re
from typing import Final

_FIRST_WORDS: Final = (
    # English, German, Dutch
    "who whos whose whom what whats when whens where wheres whereabouts which why how hows"
    " wer wessen wem wen wo wohin woher wann warum wieso weshalb wie wieviel womit wozu wofür woran worauf worin wovon welche welcher welches welchen welchem"
    " wiens wat waar waarom waardoor waarmee waarover waarvoor wanneer welke welk hoe hoeveel hoelang"
    # Swedish, Danish, Norwegian
    " vem vems vad vart varifrån när varför hur vilken vilket vilka hvem hva hvad hvor hvornår når hvorfor hvordan hvilken hvilket hvilke"
    # French, Spanish, Portuguese, Italian, Romanian; many people leave the accents out
    " quoi quand où pourquoi lequel laquelle lesquels"
    " quién quiénes quien qué cuándo cuando dónde donde adónde cuánto cuánta cuántos cuántas cuanto cuanta cuantos cuantas cuál cuáles cual cuales cómo"
    " qui quem quando onde aonde quanto quanta quantos quantas qual quais cadê"
    " chi dove dov quanti quante quale quali când unde cât câte câți câtă"
    # Polish, Czech, Slovak, Russian, Ukrainian, Bulgarian, Serbian, Croatian
    " kto kogo komu co czego czemu czym kiedy gdzie dokąd skąd ile ilu jak jaki jaka jakie jakiego jakim jaką który która które której którego którym którą dlaczego czyj"
    " czyja czyje czy kdo koho čeho kdy kde odkud kolik jaký jaká jaké který která které kterou kterého kterém kterým proč čí čo kedy koľko ako aký aká aké ktorý ktorá ktoré prečo"
    " кто кого кому кем что чего чему чем когда где куда откуда сколько как какой какая какое какие каких какого какую каком какому который которая которое почему"
    " зачем чей чья чьё чьи почём хто що чого коли де куди звідки скільки який яка яке які яку яких чому навіщо чий кой коя кое кои какво каква какви кога къде колко"
    " защо дали tko koga što šta kada kad gdje gde koliko kako koji koja koje koju zašto čiji"
    # Greek, Finnish, Hungarian, Estonian, Hebrew, Arabic
    " ποιος ποια ποιο ποιον ποιους ποιων ποιανού ποιοι ποιες πότε πού πόσο πόσα πόσοι πόσες πώς γιατί"
    " kuka kenen ketä kenet kenelle keneltä mikä mitä minkä mistä missä mihin minne milloin paljonko montako kuinka miksi miten kumpi"
    " kik kiket kinek kivel kitől kinél kihez kiről mikor mikorra mikortól meddig miből miben mitől miért mely melyik melyiket milyen hova hová honnan mennyi mennyit"
    " mennyiért mennyibe hány hányan hányszor hányadik hogyan ano millal kuhu miks kuidas"
    " מי מה מתי איפה לאן מאיפה כמה איך למה מדוע איזה איזו"
    " مين ماذا شو ايش إيش أيش وش متى امتى إمتى إيمتى أين وين فين كم قديش كيف ازاي لماذا ليش ليه أي هل بكم بأي لأي شنو منو لمين"
)
_FIRST: Final = frozenset(_FIRST_WORDS.split())
"""Words that ask as the first or second word of a clause: *at which*, *seit wann*."""
_VERY_FIRST_WORDS: Final = "was var ki comment que qu che cosa como porque perché perchè"
_VERY_FIRST: Final = frozenset(_VERY_FIRST_WORDS.split())
"""Words that ask only as the first one, or behind a preposition. German *was*, Swedish *var* and French *comment* are other words in English and
Norwegian, and the others join clauses."""
_BEFORE_WORDS: Final = "a à da de di do con com em en in o para per por pour sur"
_BEFORE: Final = frozenset(_BEFORE_WORDS.split())
"""Prepositions and articles before these: *em que dia*, *in che data*, *o que*."""
_ANYWHERE_WORDS: Final = (
    # Spoken French, Russian, Greek, Turkish, Vietnamese, Indonesian, Swahili
    "combien quel quelle quels quelles ли τι kime kimi kimin kimden kimle kimler kimlerdi kimdi neyi neye neyle neydi neymiş neler nelerdi nerede nerde neredeydi nereye nereden nerden neresi neden niye niçin"
    " nasıl nasıldı hangi hangisi hangisini hangileri kaç kaça kaçta kaçtan kaçtı kaçıncı mıyım miyim muyum müyüm mıyız miyiz muyuz müyüz mısın misin musun müsün mıydı miydi muydu müydü mıydım miydim muydum müydüm"
    " gì nào đâu mấy sao hả nhiêu siapa apa kapan dimana kemana darimana berapa mengapa kenapa bagaimana gimana nani wapi ngapi"
    # Hindi, Bengali, Marathi, Tamil, Telugu, Persian, Urdu
    " कौन किस किसे किसका किसकी किसके किसने क्या कब कहाँ कहां कितना कितने कितनी कैसे कैसा क्यों कौनसा कौनसी কে কি কী কবে কখন কোথায় কত কেন কীভাবে কোন"
    " कोण काय कधी कुठे किती யார் என்ன எப்போது எங்கே எத்தனை எவ்வளவு ஏன் எப்படி எது ఎవరు ఏమి ఎప్పుడు ఎక్కడ ఎంత ఎందుకు ఎలా ఏది"
    # The same as people type them in Latin letters: Hindi and Urdu, Bengali, Persian, Arabic; Tagalog, Malay, Swahili, Yoruba, Pidgin
    " kya kyu kyun kyo kyon kiyun kab kabse kaha kahan kahaan kidhar kaun kaunsa kaunsi konsa konsi kisne kisko kiska kiski kiske kisse kisliye kitna kitne kitni kitnay kaise kaisa kaisi kaisay"
    " keno kobe kothay kothai kakhon kokhon koto kivabe chera chandta chetor koja kojast kodum kodoom shu shou shoo emta imta ezay ezzay leish leesh addeish adesh kifak kifik"
    " anong sino sinong kanino kaninong saan saang nasaan kailan bakit paano papaano magkano alin aling brp knp gmn dmn macammana bape lini gani wetin"
    " چه چی چیه چیست کجا کجاست چند چقدر چرا چطور کدام کدوم کون کیا کب کہاں کتنا کتنے کتنی کیوں کیسے"
)
_ANYWHERE: Final = frozenset(_ANYWHERE_WORDS.split())
_LAST_WORDS: Final = "quoi quand où comment pourquoi mı mi mu mü không hông chưa"
_LAST: Final = frozenset(_LAST_WORDS.split())
"""Words that ask as the last one: in spoken French (*c'était quand*), and particles of Turkish and Vietnamese."""
_UNSPACED: Final = re.compile(
    "(?:什么|什麼|谁|誰|怎么|怎麼)(?![都也怕])|啥|哪(?![里儿裡兒个個家种種天]?[都也])|(?<!好)[几幾][号號点點个個次岁歲天年月袋块塊本杯瓶家间間张張条條件种種位层層楼樓元斤米度分]|多少|多久|多大|到底|([\u4e00-\u9fff])[不没沒]\1|何[时時人日月年回個枚をがでにのとて]|[吗嗎呢][。…~～ ]*$"
    "|(?:いつ|どこ|だれ|なに)(?!も)|いつも?まで|どれ|どの|どんな|どっち|どちら|どなた|どう|いくら|いくつ|なぜ|なんで|なんだ|何だ|[すたいうる]っけ|[すたいるう]か[。… ]*$|は[。… ]*$"
    "|누구|누가|뭐|뭘|뭔|왜(?![가-힣])|무엇|무슨|언제|어디|어떻게|어떤|어느|얼마|며칠|몇"
    "|ใคร|อะไร|เมื่อไหร่|เมื่อไร|ไหน|กี่|เท่าไหร่|เท่าไร|ทำไม|อย่างไร|ยังไง|ไหม|มั้ย|หรือเปล่า"
)
"""Question words and particles in scripts without spaces, and Korean. *What* is *anything* before *also* (什么都), *where* is *anywhere* (哪都行)."""
_BESIDE_LETTERS: Final = (
    (frozenset({"ne", "kim"}), frozenset("ığş")),
    (frozenset({"mi", "mit", "hol"}), frozenset("őű")),
    (frozenset({"ai"}), frozenset("ăđơư" + "".join(map(chr, range(0x1EA0, 0x1EFA))))),
)
"""Words that ask in a text with letters of Turkish (*what*, *who*), Hungarian (*what*, *where*) or Vietnamese (*who*). In other texts they are
French, German, Spanish, Italian or a name."""
_WORD: Final = re.compile(r"(?:[^\W\d_]|[\u0900-\u0963\u0970-\u0dff]|(?<=\w)-(?=\w))+")
"""Letters; in the scripts of India also their vowel signs. A compound is one word: Russian *что-то* is *something*."""
_CLAUSE_END: Final = re.compile(r"[,;:.!…，。！；：、\n]|\s[-–—]+\s")


def has_question_word(text: str) -> bool:
    """Return whether a text has a question word anywhere."""
    low = text.lower()
    found = _WORD.findall(low)
    return (
        not _FIRST.isdisjoint(found)
        or not _VERY_FIRST.isdisjoint(found)
        or not _ANYWHERE.isdisjoint(found)
        or (not low.isascii() and _UNSPACED.search(low) is not None)
    )


def positions_of_question_words(text: str) -> list[int]:
    """Return the positions in a text of words that may begin a question or be inside one, in order."""
    low = text.lower()
    positions = [word.start() for word in _WORD.finditer(low) if word[0] in _FIRST or word[0] in _ANYWHERE]
    return positions if low.isascii() else sorted([*positions, *[word.start() for word in _UNSPACED.finditer(low)]])


def asks_by_word(text: str) -> bool:
    """Return whether a clause of a text has a question word at a position where its language asks with it."""
    low = text.lower()
    if not low.isascii() and (_UNSPACED.search(low) or _asks_beside_letters(low)):
        return True
    return any([_asks(_WORD.findall(clause)) for clause in _CLAUSE_END.split(low)])


def _asks_beside_letters(low: str) -> bool:
    """Return whether a text has a word and a letter of the same row of `_BESIDE_LETTERS`."""
    letters, found = frozenset(low), _WORD.findall(low)
    return any(
        [
            not (words.isdisjoint(found) or letters_of_language.isdisjoint(letters))
            for words, letters_of_language in _BESIDE_LETTERS
        ]
    )


def _asks(words: list[str]) -> bool:
    """Return whether a clause of these words asks."""
    if not words:
        return False
    first, second, *_ = [*words, ""]
    return (
        not _FIRST.isdisjoint((first, second))
        or first in _VERY_FIRST
        or (second in _VERY_FIRST and first in _BEFORE)
        or not _ANYWHERE.isdisjoint(words)
        or (bool(second) and words[-1] in _LAST)
    )
