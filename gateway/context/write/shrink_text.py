"""Cut a text: the head and the tail stay, and in between the rows that report errors or bear on the question.

A text that fits is returned unchanged, so cutting twice gives the same bytes.
"""

from bisect import bisect_left
from collections import Counter as Counted
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Final

from gateway.context.choose.cues import errors_in, reports_error
from gateway.context.choose.words import lexicon_of
from gateway.context.count.counter import CountText
from gateway.context.write.gaps import FILLED, FILLED_GOAL, gap_size, marker, whole_before
from gateway.context.write.shrink_json import shrink_json

HEAD_SHARE: Final = 0.35
"""Share of the room for the beginning of a text; see `TAIL_SHARE`."""

TAIL_SHARE: Final = 0.4
"""Share of the tail. Chosen above one half: the ends of questions and logs matter more than their beginnings."""

GAP_TOKENS: Final = 10
"""Tokens of a marker."""

_LONGEST_ROW: Final = 400
"""Characters. A longer row is split. Chosen: about five lines on a screen."""


def shrink_text(
    text: str, tokens: int, count: CountText, asked: frozenset[str] = frozenset(), *, thorough: bool = True
) -> str:
    """Cut a text to at most so many tokens; ``asked`` are the keys of the words it is searched for.

    When the work must be bounded (``thorough`` is false), head and tail stand and nothing is searched.
    """
    whole = count(text)
    if whole <= tokens:
        return text
    pruned = shrink_json(text, tokens, whole, count) if thorough else None
    if pruned is not None and (not asked or count(pruned) * 2 >= tokens):
        return pruned
    rows = _rows(text) if thorough else []
    found = _found(text, rows, asked)
    density = len(text) / max(whole, 1)
    goal = float(tokens - GAP_TOKENS)
    shortest = marker(len(text))
    best, most = "", 0
    for _ in range(6):
        if goal <= 4:
            break
        cut = _keep(text, rows, int(goal * density), found)
        now = count(cut)
        again = now <= most
        if most < now <= tokens:
            best, most = cut, now
        if now <= tokens and (now >= FILLED * tokens or again):
            break
        # The text's density is a mean; after a miss in either direction the goal is measured anew.
        goal *= min(FILLED_GOAL * tokens / now, 2.0) if now <= tokens else min(0.9 if not best else 0.97, tokens / now)
    if best:
        return best
    return shortest if count(shortest) < whole else text[: whole_before(text, max(tokens, 1))]


@dataclass(frozen=True, slots=True)
class _Row:
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Found:
    """A row with the words of the question in it, and whether it reports an error."""

    row: _Row
    keys: frozenset[str]
    error: bool


def _rows(text: str) -> list[_Row]:
    """Return the rows of a text; a row that is too long to be kept or dropped as a whole is split."""
    rows: list[_Row] = []
    start = 0
    for line in text.splitlines(keepends=True):
        stop = start + len(line)
        while start < stop:
            edge = min(start + _LONGEST_ROW, stop)
            whole = whole_before(text, edge) if edge < stop else edge
            end = whole if whole > start else edge
            rows.append(_Row(start, end))
            start = end
    return rows


def _keep(text: str, rows: Sequence[_Row], characters: int, found: Sequence[_Found]) -> str:
    """Choose rows from the head, the tail and the middle, and join them with marked gaps; the rest goes to the tail."""
    head = _upto(text, rows, int(characters * HEAD_SHARE))
    tail = _upto(text, rows, int(characters * TAIL_SHARE), backwards=True)
    spans = [(0, head), (tail, len(text))]
    left = characters - head - (len(text) - tail)
    for row in _telling([one for one in found if one.row.start >= head and one.row.end <= tail]):
        size = row.end - row.start + 34
        if size <= left:
            left -= size
            spans.append((row.start, row.end))
    if left > 0:
        spans.append((_row_from(text, rows, tail - left, tail), tail))
    return _join(text, sorted(spans))


def _row_from(text: str, rows: Sequence[_Row], edge: int, stop: int) -> int:
    """Return the start of the first row after an edge, or the edge itself where no row begins before ``stop``."""
    first = bisect_left(rows, edge, key=lambda row: row.start)
    return rows[first].start if first < len(rows) and rows[first].start < stop else whole_before(text, edge)


def _upto(text: str, rows: Sequence[_Row], characters: int, *, backwards: bool = False) -> int:
    """Return the end of the head (or the start of the tail) for so many characters, at the end of a row if possible."""
    size = len(text)
    if backwards:
        edge = size - characters
        first = next((row.start for row in rows if row.start >= edge), size)
        return first if size - first >= characters // 2 else whole_before(text, edge)
    edge = 0
    for row in rows:
        if row.end > characters:
            break
        edge = row.end
    return edge if edge >= characters // 2 else whole_before(text, characters)


def _found(text: str, rows: Sequence[_Row], asked: frozenset[str]) -> list[_Found]:
    """Return the rows that report errors or have words of the question."""
    if not rows:
        return []  # nothing is searched: the text may have 60 MB
    errors, words = errors_in(text), lexicon_of(None)
    failed = reports_error(text, errors)
    if not asked and not failed:
        return []
    found: list[_Found] = []
    for row in rows:
        line = text[row.start : row.end]
        keys = asked.intersection([word.key for word in words(line)]) if asked else asked
        error = failed and reports_error(line, errors)
        if keys or error:
            found.append(_Found(row, keys, error))
    return found


def _telling(found: Sequence[_Found]) -> list[_Row]:
    """Return rows of the middle by what they tell, the best first, the newest of equals first."""
    # A word in many rows distinguishes none of them.
    common = Counted(key for one in found for key in one.keys)
    scored = [
        # Keys have no order, and neither may the rounding.
        (fsum([1 / common[key] for key in one.keys]) + (1.0 if one.error else 0.0), one.row.start, one.row)
        for one in found
    ]
    return [row for _, _, row in sorted(scored, key=lambda item: (-item[0], -item[1]))]


def _join(text: str, spans: Iterable[tuple[int, int]]) -> str:
    pieces: list[str] = []
    position = 0
    for start, end in spans:
        if end <= position:
            continue
        if start > position:
            before = "" if not pieces or pieces[-1].endswith("\n") else "\n"
            pieces.append(f"{before}{marker(gap_size(text, position, start))}\n")
        pieces.append(text[max(start, position) : end])
        position = max(position, end)
    return "".join(pieces)
