"""Shorten a text: keep its head and tail and, in between, the rows that report errors or have words of the question.

A text that fits is returned unchanged, so shortening twice gives the same bytes.
"""

from bisect import bisect_left
from collections import Counter as Frequencies
from collections.abc import Iterable, Sequence
from math import fsum
from typing import Final

import msgspec

from gateway.context.count.counter import CountText
from gateway.context.read.errors import error_words_in, reports_error
from gateway.context.read.words import lexicon_of
from gateway.context.shrink.gaps import FILL_GOAL, LEAST_FILLED, MOST_OF_LAST_TRY, character_boundary, gap_size, marker
from gateway.context.shrink.json_value import shrink_json

HEAD_SHARE: Final = 0.35
"""Share of the kept characters for the head of a text; see `TAIL_SHARE`."""

TAIL_SHARE: Final = 0.4
"""Share for the tail. Chosen larger than the head's: the ends of questions and logs matter more than their beginnings."""

GAP_TOKENS: Final = 10
"""Tokens of a marker."""

GAP_CHARACTERS: Final = 34
"""Approximate characters of a marker with its line break."""

LEAST_GOAL_TOKENS: Final = 4
"""Tokens. With fewer besides the marker, the marker stands alone."""

MOST_TRIES: Final = 6
"""Most shortened texts that are made and counted. Chosen: nearly all fit after three."""

_LONGEST_ROW: Final = 400
"""Characters. A longer row is split. Chosen: about five lines on a screen."""


def shrink_text(
    text: str, tokens: int, count: CountText, question_words: frozenset[str] = frozenset(), *, thorough: bool = True
) -> str:
    """Shorten a text to at most so many tokens; rows with words of the question are kept first.

    ``question_words`` are the keys of these words. If ``thorough`` is false, the text is too long to be searched, and only its head
    and tail are kept.
    """
    size = count(text)
    if size <= tokens:
        return text
    pruned = shrink_json(text, tokens, size, count) if thorough else None
    if pruned is not None and (not question_words or count(pruned) * 2 >= tokens):
        return pruned
    rows = _rows(text) if thorough else []
    relevant = _relevant_rows(text, rows, question_words)
    characters_per_token = len(text) / max(size, 1)
    goal = float(tokens - GAP_TOKENS)
    best, best_size = "", 0
    for _ in range(MOST_TRIES):
        if goal <= LEAST_GOAL_TOKENS:
            break
        shorter = _shortened(text, rows, int(goal * characters_per_token), relevant)
        shorter_size = count(shorter)
        is_no_better = shorter_size <= best_size
        if best_size < shorter_size <= tokens:
            best, best_size = shorter, shorter_size
        if shorter_size <= tokens and (shorter_size >= LEAST_FILLED * tokens or is_no_better):
            break
        # The kept part has other tokens per character than the whole, so the goal is corrected by the result.
        if shorter_size <= tokens:
            goal *= FILL_GOAL * tokens / shorter_size
        else:
            goal *= min(MOST_OF_LAST_TRY, tokens / shorter_size)
    if best:
        return best
    marker_alone = marker(len(text))
    return marker_alone if count(marker_alone) < size else text[: character_boundary(text, max(tokens, 1))]


class _Row(msgspec.Struct, frozen=True):
    """A row of a text, by the positions of its first character and of the end."""

    start: int
    end: int


class _RelevantRow(msgspec.Struct, frozen=True):
    """A row with the words of the question in it, and whether it reports an error."""

    row: _Row
    keys: frozenset[str]
    is_error: bool


def _rows(text: str) -> list[_Row]:
    """Return the rows of a text; a row that is too long to be kept or dropped as a whole is split."""
    rows: list[_Row] = []
    start = 0
    for line in text.splitlines(keepends=True):
        stop = start + len(line)
        while start < stop:
            edge = min(start + _LONGEST_ROW, stop)
            boundary = character_boundary(text, edge) if edge < stop else edge
            end = boundary if boundary > start else edge
            rows.append(_Row(start, end))
            start = end
    return rows


def _shortened(text: str, rows: Sequence[_Row], characters: int, relevant: Sequence[_RelevantRow]) -> str:
    """Return about so many characters of a text: its head, its tail and the most relevant rows between, with marked gaps.
    The rest goes to the tail."""
    head = _head_end(text, rows, int(characters * HEAD_SHARE))
    tail = _tail_start(text, rows, int(characters * TAIL_SHARE))
    spans = [(0, head), (tail, len(text))]
    left = characters - head - (len(text) - tail)
    for row in _by_relevance([found for found in relevant if found.row.start >= head and found.row.end <= tail]):
        size = row.end - row.start + GAP_CHARACTERS
        if size <= left:
            left -= size
            spans.append((row.start, row.end))
    if left > 0:
        spans.append((_row_start(text, rows, tail - left, tail), tail))
    return _joined(text, sorted(spans))


def _row_start(text: str, rows: Sequence[_Row], position: int, stop: int) -> int:
    """Return the start of the first row at or after a position; the position itself if no row begins before ``stop``."""
    first = bisect_left(rows, position, key=lambda row: row.start)
    if first < len(rows) and rows[first].start < stop:
        return rows[first].start
    return character_boundary(text, position)


def _head_end(text: str, rows: Sequence[_Row], characters: int) -> int:
    """Return the end of a head of at most so many characters: at the end of a row, unless this halves it."""
    end = 0
    for row in rows:
        if row.end > characters:
            break
        end = row.end
    return end if end >= characters // 2 else character_boundary(text, characters)


def _tail_start(text: str, rows: Sequence[_Row], characters: int) -> int:
    """Return the start of a tail of at most so many characters: at the start of a row, unless this halves it."""
    size = len(text)
    position = size - characters
    start = next((row.start for row in rows if row.start >= position), size)
    return start if size - start >= characters // 2 else character_boundary(text, position)


def _relevant_rows(text: str, rows: Sequence[_Row], question_words: frozenset[str]) -> list[_RelevantRow]:
    """Return the rows that report errors or have words of the question."""
    if not rows:
        return []  # nothing is searched: the text may have 60 MB
    error_words, words = error_words_in(text), lexicon_of(None)
    has_error = reports_error(text, error_words)
    if not question_words and not has_error:
        return []
    relevant: list[_RelevantRow] = []
    for row in rows:
        line = text[row.start : row.end]
        keys = question_words.intersection([word.key for word in words(line)]) if question_words else question_words
        is_error = has_error and reports_error(line, error_words)
        if keys or is_error:
            relevant.append(_RelevantRow(row, keys, is_error))
    return relevant


def _by_relevance(relevant: Sequence[_RelevantRow]) -> list[_Row]:
    """Return the rows in order of their relevance, the best first, the last one of equals first."""
    # A word in many rows distinguishes none of them.
    rows_with = Frequencies(key for found in relevant for key in found.keys)
    scored = [
        # The keys come in any order; the exact sum does not depend on it.
        (
            fsum([1 / rows_with[key] for key in found.keys]) + (1.0 if found.is_error else 0.0),
            found.row.start,
            found.row,
        )
        for found in relevant
    ]
    return [row for _, _, row in sorted(scored, key=lambda item: (-item[0], -item[1]))]


def _joined(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return the spans of a text, in order, with a marker for each gap before or between them."""
    pieces: list[str] = []
    position = 0
    for start, end in spans:
        if end <= position:
            continue
        if start > position:
            line_break = "" if not pieces or pieces[-1].endswith("\n") else "\n"
            pieces.append(f"{line_break}{marker(gap_size(text, position, start))}\n")
        pieces.append(text[max(start, position) : end])
        position = max(position, end)
    return "".join(pieces)
