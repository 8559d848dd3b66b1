"""A line: what a fold chooses from. A sentence, a value of a record, a call, or a row of output."""

from collections.abc import Iterator
from enum import Enum
from math import sqrt
from typing import Final, NamedTuple

from gateway.context.choose.words import Word

MOST: Final = 1200
"""Lines of one message that are looked at, from its head and from its tail."""


class Sort(Enum):
    """What kind of line it is, for its worth and for how it is written."""

    SAID = "said"
    CALL = "call"
    RECORD = "record"
    OUTPUT = "output"


class Line(NamedTuple):
    """One line of a message: what would be quoted and the facts in it."""

    text: str
    sort: Sort
    words: tuple[Word, ...]
    size: float
    """About how many tokens it takes. Which lines are worth their place is decided with it; what fits is counted."""
    group: int = 0
    """Lines of one group belong together: the values of one record, the sentences of one message."""
    label: str = ""
    """What stands once in front of a group: the key that a list of records stands under."""
    slot: str = ""
    """Where the value of a record stands; a later line with the same slot takes its place."""
    binding: float = 0.0
    """How much it sounds like something to be kept to, where a user said it."""
    error: bool = False
    share: float = 1.0
    """Below 1 where it is one of very many of its kind."""


class Reading(NamedTuple):
    """A message read as lines, with where it came from."""

    message: int
    """The index of the message."""
    role: str
    lines: tuple[Line, ...]
    tool: str = ""
    """The tool that gave it, where it is a result."""


def make(  # noqa: PLR0917  # called for every line: keywords would cost
    text: str,
    sort: Sort,
    words: tuple[Word, ...],
    group: int,
    share: float = 1.0,
    label: str = "",
    slot: str = "",
    binding: float = 0.0,
    error: bool = False,
) -> Line:
    """Make a line, and say about how many tokens it takes."""
    size = 0.8 + len(text) * 0.15 + text.count(" ") * 0.2
    for word in words:
        size += word.size
    # Twice as quick as calling the class, and there are thousands.
    return tuple.__new__(Line, (text, sort, words, size, group, label, slot, binding, error, share))


def pieces(text: str, longest: int) -> Iterator[str]:
    """Cut what is longer than a line can be, at a space or the end of a row where there is one."""
    start = 0
    while len(text) - start > longest:
        middle, limit = start + longest // 2, start + longest
        space = max(text.rfind(" ", middle, limit), text.rfind("\n", middle, limit))
        end = space if space > 0 else limit
        yield text[start:end]
        start = end
    yield text[start:]


def few_of_many(number: int) -> float:
    """How much less one of so many is worth: one row among thousands is seldom the one that is needed."""
    return min(1.0, sqrt(60 / max(number, 1)))
