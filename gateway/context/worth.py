"""What the lines of a folded part are worth, together: how likely their facts are to be needed, by who has used them.

The numbers are rough odds, measured on recorded agents of several kinds: a value that a call has used is six times as
likely to be used again as one that only stood in a result; one that the user named, four times.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import log
from typing import Final

from gateway.context.changes import superseded
from gateway.context.lines import Line, Sort

USED: Final = 6.0
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


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A line with where it came from."""

    index: int
    """Of its message."""
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

    @cached_property
    def worth(self) -> list[tuple[float, list[tuple[str, float]]]]:
        """For each line its own worth, and the worth of each fact in it."""
        used = self._used()
        rare = self.rarity
        in_data = used
        in_speech = {key: max(value / ANSWERED, 1.0) for key, value in used.items()}
        for key, value in rare.items():
            in_speech[key] = in_speech.get(key, 1.0) * value
        total = max(len(self.entries), 1)
        out: list[tuple[float, list[tuple[str, float]]]] = []
        for position, entry in enumerate(self.entries):
            line = entry.line
            age = OLDEST + (1 - OLDEST) * position / total
            factor = in_speech if line.sort is Sort.SAID or line.sort is Sort.CALL else in_data
            out.append((self._own(entry) * age, [(key, base * factor.get(key, 1.0) * age) for key, base in line.facts]))
        return out

    @cached_property
    def bound(self) -> list[int]:
        """What the user said that is to hold, by position, the most binding and least common words per token first."""
        rare = self.rarity
        scored: list[tuple[float, int]] = []
        for position, entry in enumerate(self.entries):
            line = entry.line
            if line.binding > LEAST_BINDING and position not in self.gone:
                telling = sum(rare.get(key, 1.0) for key in line.keys)
                scored.append((-line.binding * telling / (line.size + 6), position))
        return [position for _, position in sorted(scored)]

    @cached_property
    def brief(self) -> frozenset[int]:
        """The indices of short messages, which are understood as a whole or not at all."""
        sizes: dict[int, float] = {}
        for entry in self.entries:
            sizes[entry.index] = sizes.get(entry.index, 0.0) + entry.line.size
        return frozenset(index for index, size in sizes.items() if size <= BRIEF)

    def _own(self, entry: Entry) -> float:
        line = entry.line
        own = ERROR if line.error else 0.0
        if line.sort is Sort.CALL:
            own += CALLED
        if entry.role == "user":
            own += BINDING * line.binding
            if entry.index == self.first:
                own += FIRST
        return own

    def _used(self) -> dict[str, float]:
        """By fact: what it is worth because somebody has used it."""
        used: dict[str, float] = {}
        said = [entry for entry in self.entries if entry.line.sort is Sort.SAID]
        for value, lines in (
            (ANSWERED, [entry.line for entry in said if entry.role != "user"]),
            (ASKED, [entry.line for entry in said if entry.role == "user"]),
            (USED, [entry.line for entry in self.entries if entry.line.sort is Sort.CALL]),
        ):
            used.update(dict.fromkeys(chain.from_iterable(line.keys for line in lines), value))
        return used

    @cached_property
    def rarity(self) -> dict[str, float]:
        """By ordinary word or name: 1 where one line has it, towards 0 where many have."""
        counts = Counter(chain.from_iterable(entry.line.plain for entry in self.entries))
        scale = log(len(self.entries) + 2)
        by_count = {count: max(1.0 - log(count) / scale, 0.0) ** 2 for count in set(counts.values())}
        return {key: by_count[count] for key, count in counts.items()}

    @cached_property
    def gone(self) -> frozenset[int]:
        """Lines that a newer line repeats, or whose place in a record a newer value has taken."""
        seen: set[str] = set()
        gone: set[int] = set()
        for position in range(len(self.entries) - 1, -1, -1):
            line = self.entries[position].line
            key = line.slot or (line.text if line.sort is Sort.SAID or line.sort is Sort.CALL else "")
            if key:
                if key in seen:
                    gone.add(position)
                seen.add(key)
        return frozenset(gone | superseded(self.entries, self.rarity))
