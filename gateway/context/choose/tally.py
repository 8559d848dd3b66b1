"""The words of a folded part, counted by what was done with them.

A conversation that grew continues its counts: only the lines that came and those that went are counted.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from itertools import chain
from typing import Final, NamedTuple, TypeVar

from gateway.context.choose.changes import frame, states
from gateway.context.choose.line import CALL, RECORD, SAID, MessageLines
from gateway.context.choose.words import CODE, IDENT, SYMBOL, Word

K = TypeVar("K")

_REFERS: Final = frozenset({IDENT, CODE, SYMBOL})
"""Shapes of words that name one thing. Dates and numbers are equal by chance."""
_SPEAKERS: Final = frozenset({"user", "assistant"})
_MOST_CHANGED: Final = 1 / 2
"""Share of the messages. Where more came and went, it is cheaper to count all lines."""


class Counts(NamedTuple):
    """Numbers of lines, mostly by word."""

    asked: dict[Word, int]
    """What the user said."""
    answered: dict[Word, int]
    """What others said."""
    called: dict[Word, int]
    returned: dict[Word, int]
    """Data of results: records and rows."""
    pasted: dict[Word, int]
    """Rows that a speaker wrote or pasted."""
    listed: dict[str, int]
    """Results whose records have an identifier."""
    stated: dict[str, int]
    """Statements of the user, by the key of a word that is no value; see `changes`."""


class Tally(NamedTuple):
    """The words of some messages' lines. It is never changed."""

    readings: Mapping[int, MessageLines]
    """The messages that were counted."""
    counts: Counts
    lines: dict[Word, int]
    """The number of lines that have a word."""
    spellings: dict[str, tuple[Word, ...]]
    """By fact the words that spell it: mostly one, so that tuples take half the memory of lists."""


def tally(readings: Mapping[int, MessageLines], earlier: Tally | None = None) -> Tally:
    """Count the lines of messages. An ``earlier`` tally is continued; the result is the same without it."""
    if earlier is not None:
        before = earlier.readings
        less = [reading for index, reading in before.items() if readings.get(index) != reading]
        more = [reading for index, reading in readings.items() if before.get(index) != reading]
        if len(less) + len(more) <= _MOST_CHANGED * len(readings):
            return _continued(earlier, readings, _count(less), _count(more))
    counts = _count(readings.values())
    lines = _lines(counts)
    spelled: dict[str, tuple[Word, ...]] = {}
    for word in lines:
        spelled[word.key] = (*spelled[word.key], word) if word.key in spelled else (word,)
    return Tally(readings, counts, lines, spelled)


def _continued(earlier: Tally, readings: Mapping[int, MessageLines], less: Counts, more: Counts) -> Tally:
    before = earlier.counts
    counts = Counts(
        _changed(before.asked, less.asked, more.asked),
        _changed(before.answered, less.answered, more.answered),
        _changed(before.called, less.called, more.called),
        _changed(before.returned, less.returned, more.returned),
        _changed(before.pasted, less.pasted, more.pasted),
        _changed(before.listed, less.listed, more.listed),
        _changed(before.stated, less.stated, more.stated),
    )
    fewer, further = _lines(less), _lines(more)
    lines = _changed(earlier.lines, fewer, further)
    spelled = dict(earlier.spellings)
    for word in further:
        if word not in earlier.lines:
            spelled[word.key] = (*spelled.get(word.key, ()), word)
    for word in fewer:
        if word not in lines:
            spelled[word.key] = tuple([other for other in spelled[word.key] if other is not word])
            if not spelled[word.key]:
                del spelled[word.key]
    return Tally(readings, counts, lines, spelled)


def _lines(counts: Counts) -> dict[Word, int]:
    found = dict(counts.returned)
    for each in (counts.pasted, counts.asked, counts.answered, counts.called):
        for word, number in each.items():
            found[word] = found.get(word, 0) + number
    return found


def _changed(counts: Mapping[K, int], less: Mapping[K, int], more: Mapping[K, int]) -> dict[K, int]:
    found = dict(counts)
    for key, number in more.items():
        found[key] = found.get(key, 0) + number
    for key, number in less.items():
        found[key] -= number
        if not found[key]:
            del found[key]
    return found


def _count(readings: Collection[MessageLines]) -> Counts:
    asked: list[tuple[Word, ...]] = []
    answered: list[tuple[Word, ...]] = []
    called: list[tuple[Word, ...]] = []
    returned: list[tuple[Word, ...]] = []
    pasted: list[tuple[Word, ...]] = []
    stated: list[list[str]] = []
    for reading in readings:
        user = reading.role == "user"
        said = asked if user else answered
        data = pasted if reading.role in _SPEAKERS else returned
        for line in reading.lines:
            if line.sort is SAID:
                said.append(line.words)
                if user and states(line):
                    stated.append(frame(line.words))
            else:
                (called if line.sort is CALL else data).append(line.words)
    joined = chain.from_iterable
    return Counts(
        Counter(joined(asked)),
        Counter(joined(answered)),
        Counter(joined(called)),
        Counter(joined(returned)),
        Counter(joined(pasted)),
        Counter(joined([_referring(reading) for reading in readings if reading.tool])),
        Counter(joined(stated)),
    )


def _referring(reading: MessageLines) -> set[str]:
    """Return the identifiers in the records of a result."""
    return {word.key for line in reading.lines if line.sort is RECORD for word in line.words if word.kind in _REFERS}
