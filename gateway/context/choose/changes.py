"""Changed minds: find older statements whose value was replaced by a newer statement in the same words.

Only sentences are compared: two statements from different times that share their telling words and differ in a value of
the same shape. Of such a pair only the newer is worth quoting, because the older contradicts it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from math import fsum
from typing import Final, NamedTuple

from gateway.context.choose.line import SAID, Line, MessageLines
from gateway.context.choose.weights import LEAST_COMMON_RARITY, LEAST_COMMON_SHARE, LEAST_COMMON_SHARE_BESIDE_NAMES
from gateway.context.choose.words import CODE, DATE, IDENT, NAME, NUMBER, PLAIN, SYMBOL, Word

MOST_ALIKE: Final = 8
"""Statements. A word in more statements than these distinguishes none of them."""
BESIDE: Final = 3
"""Words on each side of a value that describe it."""
_VALUES: Final = frozenset({NUMBER, CODE, SYMBOL, DATE, IDENT})


class _Parts(NamedTuple):
    """A sentence's values by shape, and the words that say what they are values of."""

    values: dict[str, str]
    shapes: frozenset[str]
    names: frozenset[str]
    frame: frozenset[str]
    near: frozenset[str]
    """The words next to a value: in a long sentence they describe the value."""


def _parts(found: tuple[Word, ...]) -> _Parts:
    values: dict[str, str] = {}
    names: list[str] = []
    beside: set[str] = set()
    for place, word in enumerate(found):
        kind = word.kind
        if kind in _VALUES:
            values[word.key] = _shape(word)
            beside.update([other.key for other in found[max(place - BESIDE, 0) : place + BESIDE]])
        elif kind is NAME and place:
            names.append(word.key)
    plain = frozenset(frame(found))
    return _Parts(values, frozenset(values.values()), frozenset(names), plain, plain & beside)


def frame(found: tuple[Word, ...]) -> list[str]:
    """Return the words that are not values; a name at the beginning may be any word."""
    plain, name = PLAIN, NAME
    return [word.key for place, word in enumerate(found) if word.kind is plain or (word.kind is name and place > 0)]


class _Statement:
    """A sentence and its place."""

    def __init__(self, position: int, message: int, found: tuple[Word, ...]) -> None:
        self.position = position
        self.message = message
        self.words = found

    @cached_property
    def parts(self) -> _Parts:
        """Computed at the first comparison: most statements never need it."""
        return _parts(self.words)


def superseded(
    readings: Mapping[int, MessageLines],
    places: Mapping[int, range],
    rarity: Mapping[str, float],
    spellings: Mapping[str, Sequence[Word]],
    stated: Mapping[str, int],
) -> set[int]:
    """Return the positions of the user's statements that a newer one replaces, and of answers that only repeat them.

    ``readings`` and ``places`` are by message; ``rarity``, ``spellings``, and the number of statements that have it in their
    `frame`, are by the key of a word.
    """
    few = frozenset([key for key, number in stated.items() if 1 < number <= MOST_ALIKE])
    statements = (
        _statements(readings, places, frozenset([word for key in few for word in spellings[key]])) if few else []
    )
    gone: set[int] = set()
    lost: dict[str, list[_Statement]] = {}
    for newer, older in _alike(statements, few):
        if older.position not in gone and _replaces(newer.parts, older.parts, rarity):
            gone.add(older.position)
            for key in older.parts.values.keys() - newer.parts.values.keys():
                lost.setdefault(key, []).append(newer)
    if not lost:
        return gone
    spelled = frozenset([word for key in lost for word in spellings[key]])
    return gone | _echoes(readings, places, rarity, lost, spelled)


def _statements(
    readings: Mapping[int, MessageLines], places: Mapping[int, range], having: frozenset[Word]
) -> list[_Statement]:
    """Return the user's statements that have one of these words."""
    return [
        _Statement(position, reading.message, line.words)
        for reading in readings.values()
        if reading.role == "user"
        for position, line in zip(places[reading.message], reading.lines, strict=True)
        if not having.isdisjoint(line.words) and states(line)
    ]


def _alike(statements: Iterable[_Statement], few: frozenset[str]) -> Iterator[tuple[_Statement, _Statement]]:
    """Yield each statement with each of an older message with which it shares one of these words, in their order."""
    having: dict[str, list[_Statement]] = {}
    for newer in statements:
        shared = [key for key in frame(newer.words) if key in few]
        for older in dict.fromkeys(chain.from_iterable([having.get(key, ()) for key in shared])):
            if older.message < newer.message:
                yield newer, older
        for key in shared:
            having.setdefault(key, []).append(newer)


def states(line: Line) -> bool:
    """Return whether a line, of a user, may state something that a later one replaces."""
    plain = PLAIN
    return line.sort is SAID and line.size < _LONG and any([word.kind is not plain for word in line.words])


def _echoes(
    readings: Mapping[int, MessageLines],
    places: Mapping[int, range],
    rarity: Mapping[str, float],
    lost: Mapping[str, list[_Statement]],
    spelled: frozenset[Word],
) -> set[int]:
    """Return the positions of answers from before a change that repeat the user's old statement."""
    found: set[int] = set()
    for reading in readings.values():
        if reading.role == "user":
            continue
        for position, line in zip(places[reading.message], reading.lines, strict=True):
            if spelled.isdisjoint(line.words) or not states(line):
                continue
            answer = _parts(line.words)
            changes = [newer for key in answer.values for newer in lost.get(key, ()) if newer.message > reading.message]
            if any(_replaces(newer.parts, answer, rarity) for newer in changes):
                found.add(position)
    return found


_LONG: Final = 70
"""Tokens; a longer passage makes more than one statement."""


def _replaces(newer: _Parts, older: _Parts, rarity: Mapping[str, float]) -> bool:
    if bool(older.values) != bool(newer.values):
        return False
    # Names that differ belong to the value: a street, a city.
    lost_names, new_names = older.names - newer.names, newer.names - older.names
    common, share = _shared(older.frame - lost_names, newer.frame - new_names, rarity)
    if older.values:
        beside, share_beside = _shared(older.near - lost_names, newer.near - new_names, rarity)
        if share_beside >= LEAST_COMMON_SHARE and beside >= LEAST_COMMON_RARITY:
            common, share = beside, share_beside
        if len(older.values) > _FEW or older.shapes.isdisjoint(newer.shapes):
            return False
        lost = {shape for key, shape in older.values.items() if key not in newer.values}
        new = {shape for key, shape in newer.values.items() if key not in older.values}
        return not lost.isdisjoint(new) and share >= LEAST_COMMON_SHARE and common >= LEAST_COMMON_RARITY
    # Only a name differs: the rest must be nearly the same sentence.
    return (
        bool(lost_names and new_names)
        and share >= LEAST_COMMON_SHARE_BESIDE_NAMES
        and common >= 2 * LEAST_COMMON_RARITY
    )


_FEW: Final = 3
"""Values. Chosen: a sentence with more values is a list, which a newer sentence seldom replaces."""


def _shared(one: frozenset[str], other: frozenset[str], rarity: Mapping[str, float]) -> tuple[float, float]:
    """Return how much both frames share, with more weight for rare words, and which part of the smaller one that is."""
    # Exact sums: a set has no order, and every replica must get the same result.
    common = fsum([rarity.get(key, 1.0) for key in one & other])
    least = min(fsum([rarity.get(key, 1.0) for key in one]), fsum([rarity.get(key, 1.0) for key in other]))
    return common, common / least if least > 0 else 0.0


def _shape(word: Word) -> str:
    """Return the shape of a value, so that a date never replaces an order number."""
    return word.kind.name if word.kind is not IDENT else f"{word.kind.name}{word.key[:1].isalpha()}"
