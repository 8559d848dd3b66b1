"""Statements: short sentences with a value or a name, which a later sentence of the user may replace."""

from typing import Final

from gateway.context.read.line import SENTENCE, Line
from gateway.context.read.words import NAME, PLAIN, Word

STATEMENT_TOKENS: Final = 70
"""A line with more tokens has more than one statement."""


def is_statement(line: Line) -> bool:
    """Return whether a line is a short sentence with a value or a name."""
    plain = PLAIN
    return (
        line.kind is SENTENCE and line.size < STATEMENT_TOKENS and any([word.shape is not plain for word in line.words])
    )


def describing_words(words: tuple[Word, ...]) -> list[str]:
    """Return the words that are not values, without a name at the beginning: it may be any word."""
    plain, name = PLAIN, NAME
    return [
        word.key for position, word in enumerate(words) if word.shape is plain or (word.shape is name and position > 0)
    ]
