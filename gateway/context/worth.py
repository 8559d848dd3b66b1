"""What a line is worth: how likely its facts are to be needed later, by their shape and by who has used them.

The numbers are rough odds, measured on recorded agents of several kinds: a value that a call has used is six times as
likely to be used again as one that only stood in a result; one that the user named, four times.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Final

from gateway.context.lines import Line, Sort
from gateway.context.words import Kind, Word

IN_RECORD: Final = {
    Kind.IDENT: 0.5,
    Kind.DATE: 0.35,
    Kind.CODE: 0.3,
    Kind.SYMBOL: 0.25,
    Kind.NAME: 0.1,
    Kind.NUMBER: 0.05,
    Kind.PLAIN: 0.02,
}
IN_SPEECH: Final = {
    Kind.IDENT: 1.2,
    Kind.DATE: 0.8,
    Kind.CODE: 0.7,
    Kind.SYMBOL: 0.7,
    Kind.NAME: 0.6,
    Kind.NUMBER: 0.5,
    Kind.PLAIN: 0.3,
}
USED: Final = 6.0
ASKED: Final = 4.0
ANSWERED: Final = 2.2
ERROR: Final = 1.0
BINDING: Final = 1.6
FIRST: Final = 2.0
"""The first user message says what it is all about."""
CALLED: Final = 0.5
"""A call is worth seeing even where its arguments are known: a model must not repeat what it did."""
OLDEST: Final = 0.6
"""What the oldest line is worth beside the same line among the newest."""


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A line with where it came from."""

    index: int
    """Of its message."""
    role: str
    line: Line
    tool: str = ""
    """The tool whose result it stands in."""


def weights(pool: Sequence[Entry], known: frozenset[str], first: int) -> list[tuple[float, list[tuple[str, float]]]]:
    """For each line its own worth, and the worth of each fact in it that is not known anyway.

    ``first`` is the index of the first user message.
    """
    boost = _boosts(pool)
    rarity = _rarities(pool)
    total = max(len(pool), 1)
    out: list[tuple[float, list[tuple[str, float]]]] = []
    for position, entry in enumerate(pool):
        line = entry.line
        age = OLDEST + (1 - OLDEST) * position / total
        facts = [
            (word.key, _weight(word, line.sort, boost, rarity) * line.share * age)
            for word in line.words
            if word.key not in known
        ]
        out.append((_own(entry, first) * age, facts))
    return out


def _own(entry: Entry, first: int) -> float:
    line = entry.line
    own = ERROR if line.error else 0.0
    if line.sort == Sort.CALL:
        own += CALLED
    if entry.role == "user":
        own += BINDING * line.binding
        if entry.index == first:
            own += FIRST * line.share
    return own


def _weight(word: Word, sort: Sort, boost: dict[str, float], rarity: dict[str, float]) -> float:
    if sort in (Sort.SAID, Sort.CALL):
        base = IN_SPEECH[word.kind]
        if word.kind in (Kind.PLAIN, Kind.NAME):
            base *= rarity.get(word.key, 1.0)
        return base * max(boost.get(word.key, 1.0) / ANSWERED, 1.0)
    base = IN_RECORD[word.kind]
    if word.kind == Kind.PLAIN and sort == Sort.OUTPUT:
        base *= rarity.get(word.key, 1.0)
    return base * boost.get(word.key, 1.0)


def _boosts(pool: Sequence[Entry]) -> dict[str, float]:
    """By fact: who has used it."""
    boost: dict[str, float] = {}
    for entry in pool:
        sort = entry.line.sort
        if sort == Sort.SAID:
            value = ASKED if entry.role == "user" else ANSWERED
        elif sort == Sort.CALL:
            value = USED
        else:
            continue
        for word in entry.line.words:
            if boost.get(word.key, 1.0) < value:
                boost[word.key] = value
    return boost


def _rarities(pool: Sequence[Entry]) -> dict[str, float]:
    """By plain word or name: 1 where one line has it, towards 0 where many have."""
    counts: dict[str, int] = {}
    for entry in pool:
        for word in entry.line.words:
            if word.kind <= Kind.NAME:
                counts[word.key] = counts.get(word.key, 0) + 1
    scale = log(len(pool) + 2)
    return {key: max(1.0 - log(count) / scale, 0.0) ** 2 for key, count in counts.items()}
