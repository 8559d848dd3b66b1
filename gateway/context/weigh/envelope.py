"""Envelopes: what a back end writes around every answer, whatever was asked: a request id, a version, a rate limit.

Results of several tools have such a field, and its values are hardly ever named.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import chain

from gateway.context import weights
from gateway.context.read.line import RECORD
from gateway.context.read.words import Word
from gateway.context.weigh.folded_lines import FoldedLines
from gateway.context.weigh.tally import Field, field_of


def envelope_of(pool: FoldedLines) -> frozenset[int]:
    """Return the positions of the lines of envelopes."""
    results = sum([bool(reading.tool) for reading in pool.readings.values()])
    results_by_field = pool.tally.counts.results_by_field
    number: Counter[Field] = Counter()
    for (field, _), with_field in results_by_field.items():
        number[field] += with_field
    tools = Counter([field for field, _ in results_by_field])
    least = weights.ENVELOPE_SHARE_OF_RESULTS * results
    common = {field for field in number if number[field] >= least and tools[field] >= weights.ENVELOPE_TOOLS}
    if not common:
        return frozenset()
    positions: dict[Field, list[int]] = {}
    for index, reading in pool.readings.items():
        if reading.tool:
            for position in pool.positions[index]:
                line = pool.lines[position]
                if line.kind is RECORD and (field := field_of(line)) in common:
                    positions.setdefault(field, []).append(position)
    rarely_named = [each for each in positions.values() if _named_share(pool, each) <= weights.MOST_USED_OF_ENVELOPE]
    return frozenset(chain.from_iterable(rarely_named))


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
