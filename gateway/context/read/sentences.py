"""Split what a speaker writes into texts of lines: sentences, short ones joined, and the rows of an answer."""

import re
from collections.abc import Iterator
from itertools import chain
from typing import Final

from gateway.context.read.cues import binding
from gateway.context.read.line import MOST_LINE_CHARACTERS, pieces

JOINED_CHARACTERS: Final = 220
"""The most characters of a line of joined short sentences."""
SEPARATE_SENTENCE_CHARACTERS: Final = 80
"""A user's sentence with more characters is a separate line."""
LEAST_BINDING_POINTS: Final = 1.1
"""A user's sentence with more points of `cues.binding` is a separate line: it has more than one weak cue."""

_DIGIT: Final = re.compile(r"\d")
_SENTENCE_END: Final = re.compile(r"""[.!?…。！？；](?:(?<=[。！？；])|["'”’)\]]*\s+)""")
_ABBREVIATION: Final = re.compile(r"(?:^|[\s(\"'“‘])(?:(?:[^\W\d_]\.)*[^\W\d_]|[A-Z][a-z])$")
"""Text before a full stop that does not end a sentence: an initial, letters with stops (e.g., z.B.), a title (Dr., Nr.)."""
LONGEST_NUMBER: Final = 20
"""Characters of a number that begins a sentence (*2. Open the valve*). Longer texts are not looked at: a line may be one sentence of megabytes."""
ABBREVIATION_CHARACTERS: Final = 8
"""Characters before a full stop in which an abbreviation is looked for, with the character before it. Chosen: *z.B.*, *i.e.*, *Prof* and a
space are shorter."""


def split(line: str) -> Iterator[str]:
    """Return the sentences of a line. A small letter continues a sentence, unless most sentences of the text begin with
    one."""
    stops = list(_SENTENCE_END.finditer(line)) if _may_have_stops(line) else []
    begins_small = [line[stop.end() : stop.end() + 1].islower() for stop in stops]
    mostly_small = sum(begins_small) * 2 >= sum([stop.end() < len(line) for stop in stops])
    start = 0
    for stop, continues in zip(stops, begins_small, strict=True):
        mark, end = stop[0][0], stop.end()
        if continues and mark in ".…" and (not mostly_small or line[stop.start() - 1 : stop.start()].isdigit()):
            continue
        if mark == "." and (_is_number(line, start, stop.start()) or _is_abbreviated(line, start, stop.start())):
            continue
        yield line[start:end].strip()
        start = end
    if rest := line[start:].strip():
        yield rest


def _is_number(line: str, start: int, stop: int) -> bool:
    """Return whether a sentence has only its number before a full stop."""
    return stop - start <= LONGEST_NUMBER and line[start:stop].isdigit()


def _is_abbreviated(line: str, start: int, stop: int) -> bool:
    """Return whether a full stop belongs to an abbreviation in the sentence that begins at ``start``."""
    return _ABBREVIATION.search(line, max(start - 1, stop - ABBREVIATION_CHARACTERS, 0), stop) is not None


def _may_have_stops(line: str) -> bool:
    """Return whether a sentence may end inside a line or at its end. To look for three signs costs a tenth of the pattern."""
    return not line.isascii() or "." in line or "!" in line or "?" in line


def joined(line: str, *, user: bool) -> Iterator[str]:
    """Return the sentences of a line, short ones joined; a user's binding sentence, or one with a number, stays
    separate."""
    text, text_length = "", 0
    for sentence in chain.from_iterable(pieces(stop, MOST_LINE_CHARACTERS) for stop in split(line)):
        piece = sentence.strip()
        length = _length(piece)
        separate = user and (
            length > SEPARATE_SENTENCE_CHARACTERS
            or binding(piece) > LEAST_BINDING_POINTS
            or _DIGIT.search(piece) is not None
        )
        if text and (separate or text_length + length > JOINED_CHARACTERS):
            yield text
            text, text_length = "", 0
        text, text_length = f"{text} {piece}" if text else piece, text_length + length
        if separate:
            yield text
            text, text_length = "", 0
    if text:
        yield text


_DENSE_CHARACTERS: Final = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
DENSE_CHARACTER_LETTERS: Final = 3
"""Number of letters for which a character counts in Korean and in scripts without spaces."""


def _length(text: str) -> int:
    """Return the characters of a text. Those of dense scripts count as several letters."""
    return (
        len(text)
        if text.isascii()
        else len(text) + (DENSE_CHARACTER_LETTERS - 1) * len(_DENSE_CHARACTERS.findall(text))
    )


def of_user(text: str) -> Iterator[str]:
    """Return the sentences of a user."""
    for line in text.split("\n"):
        yield from joined(line.strip(), user=True)


_BULLET: Final = re.compile(r"\A[-*•#>]+\s+")
"""The mark of a list's item. Numbers are kept, because people refer to *the second one*."""
_BULLETS: Final = frozenset("-*•#>")
_BOLD: Final = re.compile(r"(?<![A-Za-z0-9_*`])\*\*(?=[^\s*])(.+?)(?<=[^\s*])\*\*(?![A-Za-z0-9_*])")
"""Words in bold. ``2**3``, ``**options`` and ``***`` are not bold, and underscores belong to names such as ``__init__``."""


def of_answer(text: str) -> Iterator[str]:
    """Return the lines of an answer; long ones are split into sentences. Layout marks are removed: they cost tokens and say
    nothing."""
    if "**" in text:
        text = _BOLD.sub(r"\1", text)
    if "`" in text:
        text = text.replace("`", "")
    for line in text.split("\n"):
        bare = line.strip()
        if bare[:1] in _BULLETS:
            bare = _BULLET.sub("", bare, 1)
        if len(bare) > JOINED_CHARACTERS:
            yield from joined(bare, user=False)
        elif bare:
            yield bare
