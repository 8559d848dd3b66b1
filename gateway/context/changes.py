"""Changed minds: older statements whose value a newer one in the same words has replaced.

Told by the sentence alone: two things said at different times that share their telling words and differ in a value of the same shape. Of
such a pair only the newer is worth quoting; the older would contradict it.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from gateway.context.lines import Line, Sort
from gateway.context.words import Kind, Word, words

if TYPE_CHECKING:
    from gateway.context.worth import Entry

COMMON: Final = 0.5
"""Of the ordinary words of the shorter statement, by rarity, so much must be shared."""
MOST_ALIKE: Final = 24
"""A word that stands in more statements than these tells none of them apart."""
_VALUES: Final = frozenset({Kind.NUMBER, Kind.CODE, Kind.SYMBOL, Kind.DATE, Kind.IDENT})


class _Statement:
    """A sentence taken apart: its values, and the words that say what they are values of."""

    __slots__ = ("frame", "message", "names", "position", "values")

    def __init__(self, position: int, message: int, line: Line) -> None:
        found = words(line.text)
        self.position = position
        self.message = message
        self.values = {word.key: _shape(word) for word in found if word.kind in _VALUES}
        self.names = {word.key for word in found[1:] if word.kind is Kind.NAME}
        self.frame = {word.key for word in found if word.kind is Kind.PLAIN} | self.names


def superseded(entries: Sequence["Entry"], rarity: Mapping[str, float]) -> set[int]:
    """The positions of statements that a newer statement of the user replaces."""
    said = [
        _Statement(position, entry.index, entry.line)
        for position, entry in enumerate(entries)
        if entry.line.sort is Sort.SAID and entry.line.size < _LONG
    ]
    where: dict[str, list[_Statement]] = {}
    for statement in said:
        if statement.values or statement.names:
            for key in statement.frame:
                where.setdefault(key, []).append(statement)
    gone: set[int] = set()
    for newer in reversed(said):
        if entries[newer.position].role != "user" or not (newer.values or newer.names):
            continue
        met: dict[int, _Statement] = {}
        for key in newer.frame:
            alike = where.get(key, ())
            if len(alike) <= MOST_ALIKE:
                met.update((older.position, older) for older in alike if older.message < newer.message)
        gone.update(position for position, older in met.items() if _replaces(newer, older, rarity))
    return gone


_LONG: Final = 70
"""Tokens; a longer passage makes more than one statement."""


def _replaces(newer: _Statement, older: _Statement, rarity: Mapping[str, float]) -> bool:
    lost = {shape for key, shape in older.values.items() if key not in newer.values}
    told = {shape for key, shape in newer.values.items() if key not in older.values}
    if lost & told:
        return len(older.values) <= _FEW and _share(newer.frame, older.frame, rarity) >= COMMON
    if older.values or newer.values or not (older.names - newer.names and newer.names - older.names):
        return False
    # Only a name differs: the rest must be nearly the same sentence.
    rest = older.frame - (older.names - newer.names), newer.frame - (newer.names - older.names)
    return len(rest[0] & rest[1]) >= _FEW and _share(*rest, rarity) >= _NEARLY


_FEW: Final = 3
_NEARLY: Final = 0.75


def _share(one: set[str], other: set[str], rarity: Mapping[str, float]) -> float:
    """How much of the smaller frame both share, rare words counting more."""
    common = sum(rarity.get(key, 1.0) for key in one & other)
    least = min(sum(rarity.get(key, 1.0) for key in one), sum(rarity.get(key, 1.0) for key in other))
    return common / least if least > 0 else 0.0


def _shape(word: Word) -> str:
    """What a value looks like, so that a date is not taken to replace an order number."""
    return word.kind.name if word.kind is not Kind.IDENT else f"{word.kind.name}{word.key[:1].isalpha()}"
