"""Words: what a token of text is worth as a fact, told from its shape alone.

Shapes and not lists: an order number, a path, a date or a name looks like one in most languages. Nothing here knows what
a conversation is about.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final


class Kind(IntEnum):
    """What a word looks like, the most telling last."""

    PLAIN = 0
    NUMBER = 1
    NAME = 2
    CODE = 3
    """Two to five capitals: JFK, EUR, TODO."""
    SYMBOL = 4
    """A path, an address, an identifier of a program."""
    DATE = 5
    IDENT = 6
    """Letters and digits mixed, or a long number: what only a look-up can restore."""


@dataclass(frozen=True, slots=True, eq=False)
class Word:
    """One word: its normal form (a rough stem where it is plain), its shape, and about how many tokens it takes."""

    key: str
    kind: Kind
    size: float


_BREAKS: Final = str.maketrans({char: " " for char in "()[]{}<>,;=\"'`*|!?…“”«»‘’„。，、！？：；（）「」¿¡؟،\t\n\r"})
_EDGES: Final = ".:-#$%&+/\\~^_€£¥"
_KNOWN: dict[str, tuple[Word, ...]] = {}
_MOST_KNOWN: Final = 200_000

_DATE: Final = re.compile(r"\d{1,4}[-/.:]\d{1,2}(?:[-/.:]\d{1,4})?(?:[tT ].*)?(?:am|pm|h|z)?", re.I)
_NUMBER: Final = re.compile(r"[-+]?\d[\d.,]*%?")
# Scripts written without spaces: each two neighbouring characters are one word.
_UNSPACED: Final = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_ENDINGS: Final = ("ings", "ing", "edly", "ed", "ies", "es", "s", "ly")


def words(text: str) -> Iterator[Word]:
    """The words of a text that can be facts, in order, repeated as often as they stand there."""
    for token in text.translate(_BREAKS).split():
        found = _KNOWN.get(token)
        if found is None:
            found = _learn(token)
        yield from found


def distinct(found: Iterable[Word]) -> tuple[Word, ...]:
    """Each word once, in the order in which it first stands."""
    return tuple({word.key: word for word in found}.values())


def _learn(token: str) -> tuple[Word, ...]:
    if len(_KNOWN) >= _MOST_KNOWN:
        _KNOWN.clear()
    found = _KNOWN[token] = tuple(_read(token))
    return found


def _read(token: str) -> Iterator[Word]:
    bare = token.strip(_EDGES)
    if not bare:
        return
    if not bare.isascii() and (run := _UNSPACED.search(bare)):
        yield from _unspaced(run[0])
        rest = _UNSPACED.sub(" ", bare)
        if rest.strip():
            yield from words(rest)
        return
    kind = _kind(bare)
    size = len(bare) / 4 if kind == Kind.PLAIN else len(bare) / 2.4
    if kind in (Kind.PLAIN, Kind.NAME):
        if len(bare) < 3 and bare.isascii():
            return
        yield Word(stem(bare), kind, max(size, 1.0))
    else:
        yield Word(bare.lower(), kind, max(size, 1.0))


def _unspaced(run: str) -> Iterator[Word]:
    for start in range(max(len(run) - 1, 1)):
        yield Word(run[start : start + 2], Kind.PLAIN, 1.2)


def _kind(bare: str) -> Kind:
    if bare.isalpha():
        if bare.isupper() and 2 <= len(bare) <= 5 and bare.isascii():
            return Kind.CODE
        if bare[0].isupper():
            return Kind.NAME if bare[1:].islower() or len(bare) == 1 else Kind.SYMBOL
        return Kind.PLAIN if bare.islower() or not bare.isascii() else Kind.SYMBOL
    if any(char.isdigit() for char in bare):
        if _DATE.fullmatch(bare):
            return Kind.DATE
        if _NUMBER.fullmatch(bare):
            return Kind.IDENT if len(bare) >= 7 and bare.isdigit() else Kind.NUMBER
        return Kind.IDENT
    if any(char in "_@/\\:." for char in bare):
        return Kind.SYMBOL
    return Kind.NAME if bare[0].isupper() else Kind.PLAIN


def stem(word: str) -> str:
    """A rough stem, so that ``adopted`` and ``adopting`` meet; good enough to search with, never shown."""
    low = word.lower()
    for ending in ("'s", "’s"):
        low = low.removesuffix(ending)
    if low.isascii():
        for ending in _ENDINGS:
            if low.endswith(ending) and len(low) - len(ending) >= 3:
                low = low[: -len(ending)]
                break
        low = low.removesuffix("e") if len(low) > 3 else low
    return low[:7]
