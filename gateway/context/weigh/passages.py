"""Passages: lines of one message that are quoted together."""

from collections.abc import Sequence
from typing import Final

from gateway.context.read.line import RECORD, Line

PASSAGE_TOKENS: Final = 70
"""The most tokens of a passage of prose."""
WHOLE_MESSAGE_FACTOR: Final = 1.3
"""A message of at most so many times `PASSAGE_TOKENS` is one passage."""

Passage = range
"""Positions of lines that are quoted together."""


def split_into_passages(lines: Sequence[Line], positions: range) -> list[Passage]:
    """Split the lines of a message: a record or a call alone, prose up to `PASSAGE_TOKENS`, a message that is hardly longer whole.
    ``positions`` are those of the message in ``lines``."""
    if sum([lines[position].size for position in positions]) <= PASSAGE_TOKENS * WHOLE_MESSAGE_FACTOR:
        return [positions]
    passages: list[Passage] = []
    start, size = positions.start, 0.0
    for position in positions:
        line = lines[position]
        begins_record = line.kind is RECORD and position > start and lines[position - 1].group != line.group
        if position > start and (begins_record or size + line.size > PASSAGE_TOKENS):
            passages.append(range(start, position))
            start, size = position, 0.0
        size += line.size
    return [*passages, range(start, positions.stop)]
