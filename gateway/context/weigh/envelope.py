"""Envelopes: what a back end writes around every answer, whatever was asked: a request id, a version, a rate limit.

Results of several tools have such a field, and its values are hardly ever named.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import chain

from gateway.context import weights
from gateway.context.read.line import RECORD
from gateway.context.read.words import Word
from gateway.context.weigh.folded_lines import FoldedLines
from gateway.context.weigh.tally import Field, field_of


def envelope_of(pool: FoldedLines) -> frozenset[int]:
    """Return the positions of the lines of envelopes."""
    common = _common_fields(pool)
    positions = _positions_of(pool, common) if common else {}
    rarely_named = [each for each in positions.values() if _named_share(pool, each) <= weights.MOST_USED_OF_ENVELOPE]
    return frozenset(chain.from_iterable(rarely_named))


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


def words_of_envelope(pool: FoldedLines) -> set[Word]:
    """Return the words that only envelopes have."""
    if not pool.envelope:
        return set()
    counts = pool.tally.counts
    numbers = Counter(chain.from_iterable([pool.lines[position].words for position in pool.envelope]))
    return {
        word for word, number in numbers.items() if number == counts.in_results[word] and word not in counts.in_blocks
    }


def _named_share(pool: FoldedLines, positions: Sequence[int]) -> float:
    """Return the share of these lines that have a word which a message or a call has named."""
    named = pool.use_factors
    return sum([any([word.key in named for word in pool.lines[at].words]) for at in positions]) / len(positions)
