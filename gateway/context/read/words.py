"""Words: the tokens of a text that can be facts, and their odds by shape alone.

An order number, a path, a date or a name has a similar shape in most languages. This file knows no lists of words and no
subject of a conversation.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from functools import partial
from typing import Final, Self

from gateway.context.weights import IN_DATA, IN_SPEECH
from gateway.wire.memory import Memory, Recent


class Shape(IntEnum):
    """The shape of a word. The shapes that most probably carry a fact are last."""

    PLAIN = 0
    NUMBER = 1
    NAME = 2
    CODE = 3
    """Two to five capitals: JFK, EUR, TODO."""
    SYMBOL = 4
    """A path, an address, an identifier of a program."""
    DATE = 5
    IDENT = 6
    """An identifier: letters and digits mixed, a long number, or an e-mail address. Only a look-up can restore it."""


PLAIN, NUMBER, NAME, CODE, SYMBOL, DATE, IDENT = Shape
# A member that is looked up in its class costs a call in Python 3.11, and thousands of words are compared.


TOKEN_BYTES: Final = 400
"""Bytes of a cached token: its text, its word with the key, their tuple, their entry in a table (tracemalloc, CPython
3.11)."""
PAIR_BYTES: Final = 250
"""Bytes of a pair of characters in a script without spaces. A token has hundreds of them (tracemalloc, CPython 3.11)."""
TEXT_BYTES: Final = 220
"""Bytes of a cached short text, without its words."""
TOKENS_SHARE: Final = 1 / 8
"""Share of the memory's budget for tokens."""
TEXTS_SHARE: Final = 1 / 16
"""Share of the memory's budget for short texts."""
_IS_ORDINARY: Final = tuple([shape in (PLAIN, NAME) for shape in Shape])
"""For each shape whether its words are ordinary. It is a tuple because the hash of an enumeration's member is slow, and thousands of words are
looked up."""
_BY_SHAPE: Final = tuple(zip(IN_SPEECH, IN_DATA, _IS_ORDINARY, strict=True))


class Word(str):
    """One word. It is never changed. It is no dataclass, because its last three members follow from its shape, and thousands are
    made.

    As a text it is the token from which it was read. So words of the same token are equal, even if they were read at two times, and a fold
    does not depend on what a memory has forgotten.
    """

    __slots__ = ("in_data", "in_speech", "key", "ordinary", "shape", "size")

    def __new__(cls, token: str, key: str, shape: Shape, size: float) -> Self:
        """Make the word of a token with this shape."""
        word = str.__new__(cls, token)
        word.key = key
        word.shape = shape
        word.size = size
        word.in_speech, word.in_data, word.ordinary = _BY_SHAPE[shape]
        return word

    key: str
    """Its normal form: a rough stem of a plain word."""
    shape: Shape
    size: float
    """Its tokens beyond those of a plain text of its length."""
    in_speech: float
    in_data: float
    """Its odds as a fact (see `weights.IN_SPEECH`)."""
    ordinary: bool
    """Whether it is a plain word or a name, whose rarity decides its worth."""


_SEPARATORS: Final = bytes.maketrans(b"()[]{}<>,;=\"'`*|!?\t\n\r", b" " * 21)
_OTHER_SEPARATORS: Final = re.compile("[…“”«»‘’„。，、！？：；（）「」¿¡؟،]")
_EDGES: Final = ".:-#$%&+/\\~^_€£¥"
CACHED_CHARACTERS: Final = 48
"""The most characters of a text that is cached: values of records come again."""

# Tokens per character beyond those of a plain text, fitted to lines of recorded conversations.
_EXTRA_TOKENS: Final = (0.0, 0.35, 0.0, 0.23, 0.09, 0.4, 0.2)
_EXTRA_TOKENS_BEYOND_ASCII: Final = 0.12
"""The same for plain words and names with other letters than ASCII."""
_PAIR_TOKENS: Final = 0.5
"""The same for a pair of characters of a script without spaces, for the pair. Roughly: each character is in two pairs."""

_DATE: Final = re.compile(
    r"(?:\d{1,4}[-/:]\d{1,2}(?:[-/:]\d{1,4})?|\d{1,2}\.\d{1,2}\.\d{2,4})(?:t.*)?(?:am|pm|h|z)?(?:\+\d)?", re.I
)
_DIGIT: Final = re.compile(r"\d")
_OF_SYMBOLS: Final = re.compile(r"[_@/\\:.]")
_ADDRESS: Final = re.compile(r"[\w.+-]+@(?:[\w-]+\.)+[^\W\d_][\w-]*")
"""An e-mail address. The version of a package (``react@18.2.0``) ends in a number."""
_FILE_POSITION: Final = re.compile(r"((?!\d+\.)[^:]+\.[A-Za-z]\w{0,5}):(\d+)(?:$|:(.*))")
"""A row of a file, as searches and compilers write it (``file:row:word``), and the first word of the row. This word is not split at its own
colons: a token may have thousands of them."""
_FILE: Final = re.compile(r"[^:]*/[^:/]*\.[a-z]\w{0,5}")
"""The path of a file in a folder."""
_FILE_NAME: Final = re.compile(r"[^:@]*\.[a-z]\w{0,5}")
"""The name of a file, with or without its folder."""
_NUMBER: Final = re.compile(r"\d[\d.,]*%?")
# Scripts written without spaces, and Korean, whose words end in particles: each pair of neighbouring characters is one word.
_UNSPACED: Final = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff]+")
_ENDINGS: Final = ("ings", "ing", "edly", "ed", "ies", "es", "s", "ly")
_CYRILLIC: Final = re.compile(
    "(?<=...)(?:[аяыи]ми|[ое]го|[ое]му|[ыи]ми|[оеы]й|[оеая]м|[ыи]м|[ая]х|[ое]в|ий|[ая]я|[ое]е|[ыи]е|[ую]ю|[ое]ю|ть|л[аио]|[еи][тш]ь?|[уюая]т|[ыиаоеуяюйьл])$"
)
"""Endings of Russian nouns, adjectives and verbs (after Dolamic and Savoy, Indexing and stemming approaches for the Russian language, 2009)."""
_ARABIC_FORMS: Final = str.maketrans(
    {**dict.fromkeys("أإآٱ", "ا"), "ى": "ي", "ة": "ه", "ؤ": "و", "ئ": "ي", **dict.fromkeys("ـًٌٍَُِّْ")}
)
"""Forms of one letter, and marks that are seldom written."""
_ARABIC: Final = re.compile("^(?:[وف]?(?:ال|بال|كال|هال|عال|لل)|و)(?=..)|(?<=..)(?:ها|ان|ات|ون|ين|يه|ه|ي)$")
"""Words that are written together with the next one, and endings (*light10*: Larkey, Ballesteros and Connell, Light stemming for Arabic
information retrieval, 2007), with two spoken forms of the article."""


Words = Callable[[str], tuple[Word, ...]]

_NO_WORDS: Final[Iterator[Word]] = iter(())
"""What is cached for a token without words, as one in six is. Unlike an empty tuple it counts as true, so one look-up tells that the token is
known. It is used up, so it may be read any number of times."""


class Lexicon:
    """Reads texts as words. Tokens and short texts are cached, so equal words are mostly the same object: this makes comparing them fast."""

    __slots__ = ("_texts", "_tokens")

    def __init__(self, memory: Memory) -> None:
        self._tokens: Recent[str, Iterable[Word]] = Recent(memory, _bytes_of_token, TOKENS_SHARE)
        self._texts: Recent[str, tuple[Word, ...]] = Recent(
            memory, lambda text, found: TEXT_BYTES + 8 * len(found) + bytes_of_pairs(text, found), TEXTS_SHARE
        )

    def __call__(self, text: str) -> tuple[Word, ...]:
        """Return the words of a text that can be facts, each once, in the order in which they first appear."""
        if len(text) > CACHED_CHARACTERS:
            return self._distinct(text)
        found = self._texts.get(text)
        return self._texts.put(text, self._distinct(text)) if found is None else found

    def _distinct(self, text: str) -> tuple[Word, ...]:
        """Return the words of a text, each once; of equal keys the last one."""
        # Ten times as fast as to translate the text. The bytes of other characters than ASCII stay.
        plain = text.encode("utf-8", "surrogatepass").translate(_SEPARATORS).decode("utf-8", "surrogatepass")
        if not text.isascii():
            plain = _OTHER_SEPARATORS.sub(" ", plain)
        recent, known = self._tokens.young.get, self._known
        found = {word.key: word for token in plain.split() for word in recent(token) or known(token)}
        return tuple(found.values())

    def _known(self, token: str) -> Iterable[Word]:
        found = self._tokens.get(token)
        return self._tokens.put(token, self._read(token) or _NO_WORDS) if found is None else found

    def _read(self, token: str) -> tuple[Word, ...]:
        """Return the words of a token: mostly one; several in a script without spaces, and of a position in a file."""
        bare = token.strip(_EDGES)
        if not bare:
            return ()
        if not bare.isascii() and (run := _UNSPACED.search(bare)):
            return (*_unspaced(token, run[0]), *self(_UNSPACED.sub(" ", bare)))
        shape = _shape(bare)
        if shape is IDENT and ":" in bare and (position := _FILE_POSITION.fullmatch(bare)):
            parts = [part.strip(_EDGES) for part in position.groups("")]
            named = [(f"{token} {number}", part) for number, part in enumerate(parts) if part]
            return tuple([word for name, part in named for word in _word(name, part, _shape(part))])
        return _word(token, bare, shape)


def _bytes_of_token(token: str, found: Iterable[Word]) -> int:
    """Return the bytes that a cached token takes with its words."""
    return TOKEN_BYTES if token.isascii() else TOKEN_BYTES + bytes_of_pairs(token, found)


def bytes_of_pairs(text: str, found: Iterable[Word]) -> int:
    """Return the bytes that those words of a text take which are pairs of characters. Other texts do not share them, as they share words between
    spaces."""
    return 0 if text.isascii() else PAIR_BYTES * sum([word.size == _PAIR_TOKENS for word in found])


def lexicon_of(memory: Memory | None) -> Words:
    """Return the lexicon of a memory; without one, a lexicon that is used once."""
    return memory.part(Lexicon, partial(Lexicon, memory)) if memory is not None else Lexicon(Memory())


def words(text: str, memory: Memory | None = None) -> tuple[Word, ...]:
    """Return the words of a text that can be facts, each once, in the order in which they first appear."""
    return lexicon_of(memory)(text)


def _word(token: str, bare: str, shape: Shape) -> tuple[Word, ...]:
    """Return the word of a token with this shape; nothing for a short plain word. ``bare`` is the token without signs at its edges."""
    if not _IS_ORDINARY[shape]:
        return (Word(token, bare.lower(), shape, len(bare) * _EXTRA_TOKENS[shape]),)
    if not bare.isascii():
        return (Word(token, stem(bare), shape, len(bare) * _EXTRA_TOKENS_BEYOND_ASCII),)
    return (Word(token, stem(bare), shape, 0.0),) if len(bare) > 2 else ()


def _unspaced(token: str, run: str) -> Iterator[Word]:
    name = hash(token)  # a token may be a whole chapter, so its text is not repeated for each pair
    for start in range(max(len(run) - 1, 1)):
        yield Word(f"{name} {start}", run[start : start + 2], PLAIN, _PAIR_TOKENS)


def _shape(bare: str) -> Shape:
    """Return the shape of a token without signs at its edges."""
    if bare.isalpha():
        return _shape_of_letters(bare)
    # Most words with a digit end with a digit.
    if bare[-1].isdecimal() or _DIGIT.search(bare):
        if not bare[0].isdecimal():
            return IDENT
        if _DATE.fullmatch(bare):
            return DATE
        number = _NUMBER.fullmatch(bare)
        return NUMBER if number and not (len(bare) >= 7 and bare.isdigit()) else IDENT
    if _OF_SYMBOLS.search(bare):
        return IDENT if _ADDRESS.fullmatch(bare) else SYMBOL
    return NAME if bare[0].isupper() else PLAIN


def _shape_of_letters(bare: str) -> Shape:
    if bare.islower() or not bare.isascii():
        return NAME if bare[0].isupper() else PLAIN
    if bare.isupper() and 2 <= len(bare) <= 5:
        return CODE
    # A word with one capital at its beginning is a name; a word with capitals inside is a program's identifier.
    return NAME if bare[0].isupper() and (len(bare) == 1 or bare[1:].islower()) else SYMBOL


def is_address(key: str) -> bool:
    """Return whether a word, given by its key, is an e-mail address."""
    return "@" in key and _ADDRESS.fullmatch(key) is not None


def is_file(key: str) -> bool:
    """Return whether a word, given by its key, is the path of a file in a folder."""
    return _FILE.fullmatch(key) is not None


def is_file_name(key: str) -> bool:
    """Return whether a word, given by its key, is the name of a file, with or without its folder."""
    return _FILE_NAME.fullmatch(key) is not None


def stem(word: str) -> str:
    """Return a rough stem, so that ``adopted`` and ``adopting`` match; used for searching, never shown."""
    low = word.lower().removesuffix("'s").removesuffix("’s")
    if low.isascii():
        for ending in _ENDINGS if low.endswith(_ENDINGS) else ():
            if low.endswith(ending) and len(low) - len(ending) >= 3:
                low = low[: -len(ending)]
                break
        low = low.removesuffix("e") if len(low) > 3 else low
    elif "\u0400" <= low[0] <= "\u052f":
        low = _CYRILLIC.sub("", low.replace("ё", "е"))
    elif "\u0600" <= low[0] <= "\u06ff":
        low = _ARABIC.sub("", low.translate(_ARABIC_FORMS))
    return low[:7]
