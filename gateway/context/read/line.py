"""A line: the unit of choice of a fold. A sentence, a value of a record, a call, or a row of output."""

from collections.abc import Iterator
from enum import Enum
from math import sqrt
from typing import Final

import msgspec

from gateway.context.read.wishes import NO_WISH_CUES, WishCues
from gateway.context.read.words import Word

MOST_LINES: Final = 1200
"""Lines of one message that are considered, from its head and from its tail."""

MOST_LINE_CHARACTERS: Final = 360
"""Characters. A longer sentence or row is quoted in pieces."""
MOST_PROSE_CHARACTERS: Final = MOST_LINES * MOST_LINE_CHARACTERS
"""The most characters of a message that are split into sentences: as many as the most lines can have."""

GAP: Final = "… "
"""The mark before a text, if what comes before it is left out: words of the same message, rows of the same output, or the
message to which a reply belongs."""
FIRST_CALL: Final = 2
"""The group of a message's first call. Each further call has the next number."""
CLOSING: Final = "\"'”’»)}*_`"
"""Marks that may follow the end of a sentence."""


class LineKind(Enum):
    """The kind of a line, which decides its worth and its written form."""

    SENTENCE = "sentence"
    CALL = "call"
    RECORD = "record"
    OUTPUT = "output"


SENTENCE, CALL, RECORD, OUTPUT = LineKind
# Looked up in the class, a member of an enumeration costs a call in Python 3.11, and thousands of lines are asked.


class Line(msgspec.Struct, frozen=True):
    """One line of a message: its text and its facts."""

    text: str
    kind: LineKind
    words: tuple[Word, ...]
    size: float
    """Approximate tokens, by which lines are chosen. The final size is counted."""
    group: int = 0
    """The number of the line's group in its message: the values of one record, the sentences of a speaker."""
    label: str = ""
    """The text before a group, written once: the key of a list of records. Of a row in a program's reminder the name of its tag."""
    slot: str = ""
    """The identifier of a record and the key of the value. A later line with the same slot replaces the line."""
    binding: float = 0.0
    """Points of `cues.binding` of a user's sentence."""
    error: bool = False
    share: float = 1.0
    """Factor for the worth of its facts: below 1 for one of many similar lines, above 1 for a value of a small result. Of a user's sentences
    only those with 1 may be wishes: a message with too many of them is mostly pasted."""
    wish_cues: WishCues = NO_WISH_CUES
    """The wish cues of a user's sentence."""
    arguments: tuple[Word, ...] = ()
    """The words of a call that name something by themselves: see `calls.MOST_ARGUMENT_CHARACTERS`."""


class MessageLines(msgspec.Struct, frozen=True):
    """A message as lines, with its origin."""

    message: int
    """The index of the message."""
    role: str
    lines: tuple[Line, ...]
    tool: str = ""
    """The tool of a result, or its call as one line (`tool_in`)."""
    name: str = ""
    """The name that the client gave to the speaker."""


def tool_in(call: str) -> str:
    """Return the tool in the line of a call."""
    return call.partition("(")[0]


def make_line(  # noqa: PLR0917  # called for every line: keywords would cost
    text: str,
    kind: LineKind,
    words: tuple[Word, ...],
    group: int,
    share: float = 1.0,
    label: str = "",
    slot: str = "",
    binding: float = 0.0,
    error: bool = False,
    wish_cues: WishCues = NO_WISH_CUES,
    arguments: tuple[Word, ...] = (),
) -> Line:
    """Make a line with its approximate token count."""
    # Roughly: the tokens of plain text by its characters and its spaces. `Word.size` is what a word has beyond these.
    size = 0.8 + len(text) * 0.15 + text.count(" ") * 0.2
    for word in words:
        size += word.size
    return Line(text, kind, words, size, group, label, slot, binding, error, share, wish_cues, arguments)


def pieces(text: str, longest: int) -> Iterator[str]:
    """Cut a text that is longer than a line, at a space or the end of a row if there is one."""
    start = 0
    while len(text) - start > longest:
        middle, limit = start + longest // 2, start + longest
        space = max(text.rfind(" ", middle, limit), text.rfind("\n", middle, limit))
        end = space if space > 0 else limit
        yield text[start:end]
        start = end
    yield text[start:]


FULL_SHARE_LINES: Final = 60
"""Lines of a text, or values of a result, for which the share of each is 1. Chosen: a screen."""


def share_of_one_in(number: int, most: float = 1.0) -> float:
    """Return the factor for the worth of one of so many lines or values, at most ``most``: a row among thousands is seldom needed."""
    return min(most, sqrt(FULL_SHARE_LINES / max(number, 1)))


def head_and_tail(text: str) -> str:
    """Return the head and the tail of a huge text; any other text as it is."""
    half = MOST_PROSE_CHARACTERS // 2
    return text if len(text) <= MOST_PROSE_CHARACTERS else f"{text[:half]}\n{text[-half:]}"
