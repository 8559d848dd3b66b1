"""What the lines of a folded part are worth, together: how likely their facts are to be needed, by who has used them.

The numbers are rough odds, measured on recorded agents of several kinds: a value that a call has used is several times as
likely to be used again as one that only stood in a result; one that the user named, four times.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
from itertools import chain
from math import log
from typing import Any, Final, NamedTuple, TypeVar

from gateway.context.changes import superseded
from gateway.context.lines import Line, Sort
from gateway.context.words import Word

USED: Final = 8.0
ASKED: Final = 4.0
ANSWERED: Final = 2.2
ERROR: Final = 1.0
BINDING: Final = 1.6
FIRST: Final = 2.0
"""The first user message says what it is all about."""
CALLED: Final = 0.5
"""A call is worth seeing even where its arguments are known: a model must not repeat what it did."""
LEAST_BINDING: Final = 0.5
BRIEF: Final = 60
"""Tokens up to which a message is short."""
OLDEST: Final = 0.6
"""What the oldest line is worth beside the same line among the newest."""

MOST_CHOICES: Final = 200
"""What was chosen from one folded part, for so many questions, is remembered."""

T = TypeVar("T")


class Entry(NamedTuple):
    """A line with where it came from."""

    message: int
    """The index of its message."""
    role: str
    line: Line
    tool: str = ""
    """The tool whose result it stands in."""


class Pool:
    """The lines of a folded part, oldest first, and what follows from them alone."""

    def __init__(self, entries: Sequence[Entry], first: int = -1) -> None:
        self.entries = tuple(entries)
        self.first = first
        """The index of the first user message."""
        self._chosen: dict[object, Any] = {}

    def once(self, key: object, choose: Callable[[], T]) -> T:
        """Choose from these lines, or remember what was chosen: ``key`` says all that it follows from."""
        found: T | None = self._chosen.get(key)
        if found is None:
            if len(self._chosen) >= MOST_CHOICES:
                self._chosen.clear()
            found = self._chosen[key] = choose()
        return found

    @cached_property
    def _factors(self) -> tuple[dict[str, float], dict[str, float]]:
        """By fact: what it is worth more, or less, than its shape says; in what was said, and in data."""
        in_data = self._used()
        in_speech = {key: max(value / ANSWERED, 1.0) for key, value in in_data.items()}
        for key, value in self.rarity.items():
            in_speech[key] = in_speech.get(key, 1.0) * value
        return in_speech, in_data

    def worth(self, position: int, known: Collection[str] = ()) -> float:
        """What a line is worth beside facts that are known."""
        entry = self.entries[position]
        line = entry.line
        in_speech, in_data = self._factors
        if line.sort is Sort.SAID or line.sort is Sort.CALL:
            factor = in_speech.get
            gain = sum([word.in_speech * factor(word.key, 1.0) for word in line.words if word.key not in known])
        else:
            factor = in_data.get
            gain = sum([word.in_data * factor(word.key, 1.0) for word in line.words if word.key not in known])
        age = OLDEST + (1 - OLDEST) * position / len(self.entries)
        return (gain * line.share + self._own(entry)) * age

    @cached_property
    def counts(self) -> dict[str, int]:
        """By fact: how many lines have it."""
        return _by_key(self._counted.items())

    @cached_property
    def facts(self) -> dict[int, frozenset[str]]:
        """By message: all facts in its lines."""
        return {
            index: frozenset([word.key for place in places for word in self.entries[place].line.words])
            for index, places in self.places.items()
        }

    @cached_property
    def _counted(self) -> Counter[Word]:
        return Counter(chain.from_iterable([entry.line.words for entry in self.entries]))

    @cached_property
    def places(self) -> dict[int, list[int]]:
        """By message, in order: the positions of its lines."""
        places: dict[int, list[int]] = {}
        for position, entry in enumerate(self.entries):
            places.setdefault(entry.message, []).append(position)
        return places

    @cached_property
    def order(self) -> list[int]:
        """The messages that have lines, in order."""
        return list(self.places)

    @cached_property
    def rank(self) -> dict[int, int]:
        """By message: its place in `order`."""
        return {index: rank for rank, index in enumerate(self.order)}

    @cached_property
    def most(self) -> list[float]:
        """For each line what it is worth a token at most: alone, and with its message already opened."""
        return [self.worth(position) / entry.line.size for position, entry in enumerate(self.entries)]

    @cached_property
    def bound(self) -> list[int]:
        """What the user said that is to hold, by position, the most binding and least common words per token first."""
        rare = self.rarity
        scored: list[tuple[float, int]] = []
        for position, entry in enumerate(self.entries):
            line = entry.line
            if line.binding > LEAST_BINDING and position not in self.gone:
                telling = sum(rare.get(word.key, 1.0) for word in line.words)
                scored.append((-line.binding * telling / (line.size + 6), position))
        return [position for _, position in sorted(scored)]

    @cached_property
    def brief(self) -> frozenset[int]:
        """The indices of short messages, which are understood as a whole or not at all."""
        return frozenset(
            index
            for index, places in self.places.items()
            if len(places) < BRIEF and sum([self.entries[place].line.size for place in places]) <= BRIEF
        )

    def _own(self, entry: Entry) -> float:
        line = entry.line
        own = ERROR if line.error else 0.0
        if line.sort is Sort.CALL:
            own += CALLED
        elif entry.role == "user":
            own += BINDING * line.binding
            if entry.message == self.first:
                own += FIRST
        return own

    def _used(self) -> dict[str, float]:
        """By fact: what it is worth because somebody has used it."""
        answered: list[Word] = []
        asked: list[Word] = []
        called: list[Word] = []
        for entry in self.entries:
            line = entry.line
            if line.sort is Sort.SAID:
                (asked if entry.role == "user" else answered).extend(line.words)
            elif line.sort is Sort.CALL:
                called.extend(line.words)
        used: dict[str, float] = {}
        for value, found in ((ANSWERED, answered), (ASKED, asked), (USED, called)):
            used.update(dict.fromkeys([word.key for word in set(found)], value))
        return used

    @cached_property
    def rarity(self) -> dict[str, float]:
        """By ordinary word or name: 1 where one line has it, towards 0 where many have."""
        counts = _by_key((word, count) for word, count in self._counted.items() if word.ordinary)
        scale = log(len(self.entries) + 2)
        by_count = {count: max(1.0 - log(count) / scale, 0.0) ** 2 for count in set(counts.values())}
        return {key: by_count[count] for key, count in counts.items()}

    @cached_property
    def gone(self) -> frozenset[int]:
        """Lines that a newer one repeats or replaces."""
        seen: set[str] = set()
        repeated: set[int] = set()
        for position in range(len(self.entries) - 1, -1, -1):
            line = self.entries[position].line
            if line.sort is Sort.SAID or line.sort is Sort.CALL:
                if line.text in seen:
                    repeated.add(position)
                seen.add(line.text)
        return self.replaced | repeated

    @cached_property
    def replaced(self) -> frozenset[int]:
        """Lines that no longer hold: a newer value has taken their place."""
        seen: set[str] = set()
        old: set[int] = set()
        for position in range(len(self.entries) - 1, -1, -1):
            slot = self.entries[position].line.slot
            if slot:
                if slot in seen:
                    old.add(position)
                seen.add(slot)
        return frozenset(old | superseded(self.entries, self.rarity))


def _by_key(counted: Iterable[tuple[Word, int]]) -> dict[str, int]:
    """Add counts up by fact: several spellings of a word share one."""
    counts: dict[str, int] = {}
    for word, count in counted:
        counts[word.key] = counts.get(word.key, 0) + count
    return counts
