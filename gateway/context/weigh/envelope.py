"""Envelopes: what a back end writes around every answer, whatever was asked: a request id, a version, a rate limit.

Results of several tools have such a field, and its values are hardly ever named. Before output, a program may write rows of its own: the
number of a piece, the time that a command took, and then a row that opens the output (``Output:``).
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import Final

from gateway.context import weights
from gateway.context.read.line import OUTPUT, RECORD, MessageLines, tool_in
from gateway.context.read.words import Word
from gateway.context.weigh.folded_lines import FoldedLines
from gateway.context.weigh.tally import Field, field_of


def envelope_of(pool: FoldedLines) -> frozenset[int]:
    """Return the positions of the lines of envelopes in records."""
    common = _common_fields(pool)
    positions = _positions_of(pool, common) if common else {}
    return _rarely_named(pool, [(each, _words_at(pool, each)) for each in positions.values()])


def headers_of(pool: FoldedLines) -> frozenset[int]:
    """Return the positions of the rows that a program writes before the output of a tool."""
    return _rarely_named(pool, [(each, _numbers_at(pool, each)) for each in _header_rows(pool).values()])


def _rarely_named(pool: FoldedLines, groups: Iterable[tuple[list[int], list[list[str]]]]) -> frozenset[int]:
    """Return the positions of the groups of lines with words that are hardly ever named."""
    rarely = [each for each, words in groups if _named_share(pool, words) <= weights.MOST_USED_OF_ENVELOPE]
    return frozenset(chain.from_iterable(rarely))


def _common_fields(pool: FoldedLines) -> set[Field]:
    """Return the fields that many results of several tools have."""
    results_with: Counter[Field] = Counter()
    tools_with: Counter[Field] = Counter()
    for (field, _), results in pool.tally.counts.results_by_field.items():
        results_with[field] += results
        tools_with[field] += 1
    results = sum([bool(reading.tool) for reading in pool.readings.values()])
    least = weights.ENVELOPE_SHARE_OF_RESULTS * results
    return {
        field for field in results_with if results_with[field] >= least and tools_with[field] >= weights.ENVELOPE_TOOLS
    }


def _positions_of(pool: FoldedLines, fields: Collection[Field]) -> dict[Field, list[int]]:
    """Return for each of these fields the positions of its lines in results."""
    positions: dict[Field, list[int]] = {}
    for index, reading in pool.readings.items():
        if reading.tool:
            for position, line in zip(pool.positions[index], reading.lines, strict=True):
                if line.kind is RECORD and (field := field_of(line)) in fields:
                    positions.setdefault(field, []).append(position)
    return positions


MOST_HEADER_ROWS: Final = 8
"""The most rows that a program writes before output. Chosen: the longest that is known has five."""
LEAST_NAMING_NUMBER: Final = 4
"""The least characters of a number that names something. Chosen: shorter ones are equal by chance."""
_NUMBER: Final = re.compile(r"-?\b(?:[a-f]{0,40}+[0-9][0-9a-f]*+|[a-f]{6,40}+)\b")
"""A number, or a word in hexadecimal digits."""
_OPENS: Final = (":", ">")
"""The end of a row that opens the output behind it."""
_FAILED: Final = re.compile(r"\b(?:exit|code|status|return)[^0-9\n]{0,30}+0*+[1-9]", re.I)
"""The exit code of a command that failed."""

_Form = tuple[str, str]
"""A tool, and a row of its results without numbers."""


def _header_rows(pool: FoldedLines) -> dict[_Form, list[int]]:
    """Return the positions of rows that a program writes before the output of a tool, by their form. A row that says that a command failed is
    none of them."""
    headers = {index: rows for index, reading in pool.readings.items() if (rows := _header_of(reading))}
    results = Counter([tool_in(reading.tool) for reading in pool.readings.values() if reading.tool])
    results_with = Counter(chain.from_iterable([set(rows) for rows in headers.values()]))
    positions: dict[_Form, list[int]] = {}
    for index, rows in headers.items():
        for form, position in zip(rows, pool.positions[index], strict=False):
            number = results_with[form]
            common = (
                number >= weights.ENVELOPE_SHARE_OF_RESULTS * results[form[0]] and number >= weights.ENVELOPE_HEADERS
            )
            if common and not _FAILED.search(pool.lines[position].text):
                positions.setdefault(form, []).append(position)
    return positions


def _header_of(reading: MessageLines) -> list[_Form]:
    """Return the forms of the first rows of a result, to the one that opens the output behind it; of a result of one row, the form of this row.

    Most other results have no row that opens an output. Then no form is made of their rows.
    """
    if len(reading.lines) == 1 and reading.tool and reading.lines[0].kind is OUTPUT:
        return [(tool_in(reading.tool), _without_words_of_call(reading.lines[0].text, reading.tool))]
    if not reading.tool or not any([line.text.endswith(_OPENS) for line in reading.lines[:MOST_HEADER_ROWS]]):
        return []
    forms: list[_Form] = []
    tool = tool_in(reading.tool)
    for line in reading.lines[:MOST_HEADER_ROWS]:
        if line.kind is not OUTPUT:
            return []
        forms.append((tool, _NUMBER.sub("#", line.text)))
        if line.text.endswith(_OPENS) and "#" not in forms[-1][1]:
            return forms
    return []


def _without_words_of_call(row: str, call: str) -> str:
    """Return the only row of a result without the words that its call has. Results that are equal without these say no more than that the call was
    made: *The file a.py has been updated.*"""
    return " ".join(["#" if word in call else word for word in row.split()])


def words_of_envelope(pool: FoldedLines) -> set[Word]:
    """Return the words that only envelopes have."""
    if not pool.envelope:
        return set()
    counts = pool.tally.counts
    numbers = Counter(chain.from_iterable([pool.lines[position].words for position in pool.envelope]))
    return {
        word for word, number in numbers.items() if number == counts.in_results[word] and word not in counts.in_blocks
    }


def _words_at(pool: FoldedLines, positions: Sequence[int]) -> list[list[str]]:
    """Return the words of each of these lines."""
    return [[word.key for word in pool.lines[at].words] for at in positions]


def _numbers_at(pool: FoldedLines, positions: Sequence[int]) -> list[list[str]]:
    """Return the numbers of each of these lines that are long enough to name something. The other words of a header are the same in each."""
    return [
        [key for key in line if len(key) >= LEAST_NAMING_NUMBER and _NUMBER.search(key)]
        for line in _words_at(pool, positions)
    ]


def _named_share(pool: FoldedLines, lines: Sequence[Sequence[str]]) -> float:
    """Return the share of lines that have one of their words named in a message or a call."""
    named = pool.use_factors
    return sum([any([word in named for word in line]) for line in lines]) / len(lines)
