"""Count the words of a folded part by where they are: in the user's sentences, in calls, in results.

The counts of an earlier fold are continued: only added and removed messages are counted.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, starmap
from typing import Final, NamedTuple, TypeVar

from gateway.context.read.line import CALL, RECORD, SENTENCE, Line, MessageLines, tool_in
from gateway.context.read.records import names_record
from gateway.context.read.words import CODE, IDENT, SYMBOL, Word
from gateway.context.weigh.statements import describing_words, is_statement

Key = TypeVar("Key")

_IDENTIFYING_SHAPES: Final = frozenset({IDENT, CODE, SYMBOL})
"""Shapes of words that name one thing. Dates and numbers are equal by chance."""
_SPEAKERS: Final = frozenset({"user", "assistant"})
_BATCH: Final = 256
"""Lines that are counted together. A line has some ten words, and one of Chinese some hundred."""
_MOST_CHANGED_SHARE: Final = 1 / 2
"""Share of the messages. If more were added and removed, it is cheaper to count all lines."""


class Field(NamedTuple):
    """A field of records."""

    label: str
    """The key of the record."""
    key: str
    """The key of the value, of several the first. A value without one names its record."""


class LineCounts(NamedTuple):
    """Numbers of lines, most of them for each word."""

    by_user: dict[Word, int]
    """Sentences of the user."""
    by_others: dict[Word, int]
    """Sentences of others, mostly of the assistant."""
    in_calls: dict[Word, int]
    """Calls."""
    arguments: dict[Word, int]
    """Calls that have the word among their `Line.arguments`."""
    in_results: dict[Word, int]
    """Records and rows of results."""
    in_blocks: dict[Word, int]
    """Rows of blocks that a speaker wrote or pasted."""
    results_by_identifier: dict[str, int]
    """Number of results with the identifier in a record."""
    results_by_field: dict[tuple[Field, str], int]
    """Number of results of a tool with the field in a record, for each field and tool."""
    statements: dict[str, int]
    """Number of the user's statements with a word that is no value, for the key of each such word; see `describing_words`."""


class Tally(NamedTuple):
    """The words of some messages' lines. It is never changed."""

    readings: Mapping[int, MessageLines]
    """The messages that were counted."""
    counts: LineCounts
    lines: dict[Word, int]
    """The number of lines that have a word."""
    spellings: dict[str, tuple[Word, ...]]
    """For each fact the words that spell it, mostly one. Tuples take half the memory of lists."""


def tally(readings: Mapping[int, MessageLines], earlier: Tally | None = None) -> Tally:
    """Count the lines of messages. An ``earlier`` tally is continued; the result is the same without it."""
    if earlier is not None:
        before = earlier.readings
        removed = [reading for index, reading in before.items() if readings.get(index) != reading]
        added = [reading for index, reading in readings.items() if before.get(index) != reading]
        if len(removed) + len(added) <= _MOST_CHANGED_SHARE * len(readings):
            return _continued(earlier, readings, _count(removed), _count(added))
    counts = _count(readings.values())
    lines = _line_counts(counts)
    spelled: dict[str, tuple[Word, ...]] = {}
    for word in lines:
        spelled[word.key] = (*spelled[word.key], word) if word.key in spelled else (word,)
    return Tally(readings, counts, lines, spelled)


def _continued(earlier: Tally, readings: Mapping[int, MessageLines], removed: LineCounts, added: LineCounts) -> Tally:
    """Return the tally of an earlier one's messages without the ``removed`` and with the ``added`` ones."""
    counts = LineCounts._make(starmap(_changed, zip(earlier.counts, removed, added, strict=True)))
    fewer, further = _line_counts(removed), _line_counts(added)
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


def _line_counts(counts: LineCounts) -> dict[Word, int]:
    """Return for each word the number of lines that have it."""
    lines_by_word = dict(counts.in_results)
    for each in (counts.in_blocks, counts.by_user, counts.by_others, counts.in_calls):
        for word, number in each.items():
            lines_by_word[word] = lines_by_word.get(word, 0) + number
    return lines_by_word


def _changed(counts: Mapping[Key, int], removed: Mapping[Key, int], added: Mapping[Key, int]) -> dict[Key, int]:
    """Return counts with the added ones and without the removed ones. What is counted 0 times is left out."""
    changed = dict(counts)
    for key, number in added.items():
        changed[key] = changed.get(key, 0) + number
    for key, number in removed.items():
        changed[key] -= number
        if not changed[key]:
            del changed[key]
    return changed


def _count(readings: Collection[MessageLines]) -> LineCounts:
    """Count the lines of messages."""
    by_user: list[tuple[Word, ...]] = []
    by_others: list[tuple[Word, ...]] = []
    in_calls: list[tuple[Word, ...]] = []
    arguments: list[tuple[Word, ...]] = []
    in_results: list[tuple[Word, ...]] = []
    in_blocks: list[tuple[Word, ...]] = []
    statements: list[list[str]] = []
    for reading in readings:
        user = reading.role == "user"
        sentences = by_user if user else by_others
        data = in_blocks if reading.role in _SPEAKERS else in_results
        for line in reading.lines:
            if line.kind is SENTENCE:
                sentences.append(line.words)
                if user and is_statement(line):
                    statements.append(describing_words(line.words))
            else:
                (in_calls if line.kind is CALL else data).append(line.words)
                if line.arguments:
                    arguments.append(line.arguments)
    return LineCounts(
        _frequencies(by_user),
        _frequencies(by_others),
        _frequencies(in_calls),
        _frequencies(arguments),
        _frequencies(in_results),
        _frequencies(in_blocks),
        _frequencies([_identifiers_in_records(reading) for reading in readings if reading.tool]),
        _frequencies([_fields_in_records(reading) for reading in readings if reading.tool]),
        _frequencies(statements),
    )


def _frequencies(groups: Sequence[Iterable[Key]]) -> dict[Key, int]:
    """Return how often each member of the groups comes. Between two batches other threads can run: a million words take 0.2 s."""
    counts: Counter[Key] = Counter()
    for start in range(0, len(groups), _BATCH):
        counts.update(chain.from_iterable(groups[start : start + _BATCH]))
    return counts


def _identifiers_in_records(reading: MessageLines) -> set[str]:
    """Return the identifiers in the records of a result."""
    return {
        word.key
        for line in reading.lines
        if line.kind is RECORD
        for word in line.words
        if word.shape in _IDENTIFYING_SHAPES
    }


def _fields_in_records(reading: MessageLines) -> set[tuple[Field, str]]:
    """Return the fields in the records of a result, each with the result's tool. A value that names the whole result (*id*) is in no
    field."""
    tool = tool_in(reading.tool)
    fields = {field_of(line) for line in reading.lines if line.kind is RECORD}
    return {(field, tool) for field in fields if field.key and (field.label or not names_record(field.key))}


def field_of(line: Line) -> Field:
    """Return the field of a record's line."""
    key, written, _ = line.text.partition("=")
    return Field(line.label, key if written else "")
