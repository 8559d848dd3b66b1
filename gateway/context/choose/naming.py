"""The lines without which a line says nothing: the heading above a property, and the name of the record that a value belongs to."""

import re
from collections.abc import Set
from typing import Final

from gateway.context.read.line import RECORD, SENTENCE, Line
from gateway.context.read.records import names_record
from gateway.context.read.words import IDENT
from gateway.context.weigh.line_pool import LinePool

SEARCHED_LINES: Final = 12
"""Number of lines that are searched for the name of a record, from its first line on, or for a heading, upwards."""
MOST_NAMING_LINES: Final = 2
"""The most lines that name one record: a first and a last name."""
PROPERTY_TOKENS: Final = 20
"""Approximate tokens of a property in a list; a longer line is a sentence and says what it is about."""
_PROPERTY_ROW: Final = re.compile(r"[^\W\d][^:.!?]{0,30}: \S")
"""A row of a list that names a property and its value."""


class NamingLines:
    """The lines that must be chosen with each line of a pool. Those that are taken, and those of records that are open, are not needed."""

    def __init__(self, pool: LinePool, taken: Set[int], open_groups: Set[tuple[int, int]]) -> None:
        self._pool = pool
        self._lines = pool.lines
        self._taken = taken
        self._open_groups = open_groups
        self._naming_lines: dict[tuple[int, int], tuple[int, ...]] = {}
        """The lines that name each record, by its message and group."""
        self._headings: dict[int, int] = {}
        """For the position of a line, the position of its heading; -1 if it needs none."""

    def of(self, position: int) -> tuple[int, ...]:
        """Return the lines that must be chosen with a line and are not chosen yet: the heading of a property, or the name of a
        record. A value without them says nothing."""
        line, message = self._lines[position], self._pool.message_of[position]
        if line.kind is SENTENCE:
            heading = self._heading(message, position)
            return () if heading < 0 or heading in self._taken else (heading,)
        record = (message, line.group)
        # An identifier needs no name; a price or a date does.
        if line.kind is not RECORD or record in self._open_groups or any([word.shape is IDENT for word in line.words]):
            return ()
        names = self._naming_lines.get(record)
        if names is None:
            names = self._naming_lines[record] = self._names_of_record(message, position)
        return () if position in names else names

    def _heading(self, message: int, position: int) -> int:
        """Return the heading of a property in a list of an answer (*Departure: 07:00*); -1 for any other line."""
        heading = self._headings.get(position)
        if heading is None:
            heading = self._headings[position] = self._heading_above(message, position)
        return heading

    def _heading_above(self, message: int, position: int) -> int:
        """Return the nearest sentence above that is no property itself."""
        lines = self._lines
        if self._pool.readings[message].role == "user" or not _is_property(lines[position]):
            return -1
        above = range(position - 1, max(position - SEARCHED_LINES, self._pool.positions[message].start) - 1, -1)
        return next((at for at in above if lines[at].kind is SENTENCE and not _is_property(lines[at])), -1)

    def _names_of_record(self, message: int, position: int) -> tuple[int, ...]:
        """Return the lines that name the record at a position: its identifier, or else its names."""
        lines, group, positions = self._lines, self._lines[position].group, self._pool.positions[message]
        start = position
        while start > positions.start and lines[start - 1].group == group:
            start -= 1
        names: list[int] = []
        for at in range(start, min(start + SEARCHED_LINES, positions.stop)):
            line = lines[at]
            if line.group != group:
                break
            key, keyed, value = line.text.partition("=")
            if len(line.words) == 1 and line.words[0].shape is IDENT and (not keyed or names_record(key)):
                # The call that a result belongs to may have named the record.
                return () if (value or key) in self._pool.readings[message].tool else (at,)
            if keyed and key.endswith("name"):
                names.append(at)
        return tuple(names[:MOST_NAMING_LINES])


def _is_property(line: Line) -> bool:
    """Return whether a line of an answer is a property that needs a heading."""
    if line.size > PROPERTY_TOKENS or not _PROPERTY_ROW.match(line.text):
        return False
    return not any([word.shape is IDENT for word in line.words])
