"""Self words: how often each of two speakers says *I*, *my* and the like.

A word of one language is another word in another: the Polish *i* means *and*, and *ma* means *has*. So only the words of one language count,
that of the conversation.
"""

import re
from collections import Counter
from typing import Final, NamedTuple

_LANGUAGES: Final = (
    ("i i'm i'd i'll i've me we we're we'd we'll us our", "my mine"),
    ("ich mich mir wir uns unser unsere unseren", "mein meine meinen meinem meiner"),
    ("je j'ai me moi nous notre nos", "mon ma mes"),
    ("yo me mí nosotros nos nuestro nuestra", "mi mis mío mía"),
    ("io mi me noi ci nostro nostra", "mio mia miei mie"),
    ("eu me mim nós nos nosso nossa", "meu minha meus minhas"),
    ("ik me mij wij we ons onze", "mijn"),
    ("jag jeg mig meg vi oss os vår vor", "min mitt mit mina mine"),
    ("ja mnie mi mną my nas nam nami nasz nasza nasze", "mój moja moje mojego mojej moim moich moją"),
    ("já mě mne mi mnou my nás nám náš naše", "můj moje mého mé mou mojí"),
    ("я меня мне мной мы нас нам наш", "мой моя моё мое мои моей моего мою"),
    ("я мене мені мною ми нас нам наш", "мій моя моє мої моєї мого мою"),
    ("ben beni bana biz bize bizim", "benim"),
    (
        "저 저는 저도 저를 저한테 저희 나 나는 나도 나를 나한테 난 날 우리 우리는",
        "제 제가 내 내가",
    ),
    ("मैं मुझे मैंने हम हमें हमारा", "मेरा मेरी मेरे"),
)
"""For each language the words like *I* and *we*, and the words like *my*. A chat in a language that is not here is never taken for one between people."""
_WORDS_OF_LANGUAGES: Final = tuple(
    (frozenset(f"{pronouns} {possessives}".split()), frozenset(possessives.split()))
    for pronouns, possessives in _LANGUAGES
)
POSSESSIVE: Final = frozenset().union(*[possessives for _, possessives in _WORDS_OF_LANGUAGES])
"""*My* and the like in all these languages."""
_UNSPACED: Final = re.compile("我|私|僕")
"""The same in scripts without spaces, where *my* begins with *I*."""
_WORD: Final = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")


class SelfWords(NamedTuple):
    """The number of words in a text that speak of its speaker."""

    all: int
    """*I*, *my* and the like."""
    possessive: int
    """*My* and the like. In scripts without spaces it is the same as ``all``."""


def self_words(text: str, other: str) -> tuple[SelfWords, SelfWords]:
    """Count the words by which each of two speakers speaks of itself, in the language in which they use the most different ones."""
    number, other_number = _number_by_word(text), _number_by_word(other)
    used = number.keys() | other_number.keys()
    words, possessives = max(_WORDS_OF_LANGUAGES, key=lambda language: len(language[0] & used))

    def counted(number: Counter[str], text: str) -> SelfWords:
        unspaced = 0 if text.isascii() else len(_UNSPACED.findall(text))
        return SelfWords(
            sum([number[word] for word in words]) + unspaced, sum([number[word] for word in possessives]) + unspaced
        )

    return counted(number, text), counted(other_number, other)


def _number_by_word(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text.lower().replace("’", "'")))
