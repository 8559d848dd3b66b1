"""The earlier use of a fact: the factor for how likely a later call needs it again.

A value that was an argument of a call is several times as likely to be used again as a value that was only in a result; a value that the
user named, four times. The calls of an agent that works on its own carry texts and pieces of code, too: these count like what it says.
"""

from collections.abc import Mapping

from gateway.context import weights
from gateway.context.read.words import IDENT, SYMBOL, is_address, is_file, is_file_name
from gateway.context.weigh.folded_lines import FoldedLines


def use_factors_of(pool: FoldedLines) -> Mapping[str, float]:
    """Return for each fact the factor for its earlier use, the highest if there are several."""
    counts = pool.tally.counts
    factors: dict[str, float] = {}
    for value, found in (
        (weights.NAMED_BY_ASSISTANT, (*counts.by_others, *(counts.in_calls if pool.autonomous else ()))),
        (weights.NAMED_BY_USER, counts.by_user),
        (weights.NAMED_IN_CALL, () if pool.autonomous else counts.in_calls),
    ):
        factors.update(dict.fromkeys([word.key for word in found], value))
    if pool.autonomous:
        for word in counts.arguments:
            is_read_once = word.shape is IDENT and not is_file_name(word.key)
            factors[word.key] = weights.IDENTIFIER_IN_CALL_OF_AUTONOMOUS if is_read_once else weights.NAMED_IN_CALL
        for key, factor in _found_in_results(pool).items():
            factors[key] = max(factor, factors.get(key, 1.0))
        # An agent writes to the same address again. The call that wrote has the address already, so its result needs it less.
        written_to = [word.key for word in counts.in_calls if is_address(word.key)]
        factors.update(dict.fromkeys(written_to, weights.NAMED_IN_CALL))
    return factors


def _found_in_results(pool: FoldedLines) -> dict[str, float]:
    """Return what an agent is likely to use of results, with its factor: addresses, because it answers mails that it reads, and
    files at the beginning of rows, because it opens what a search found. Results that have many are not considered."""
    words_of_results = pool.tally.counts.in_results
    addresses = {word for word in words_of_results if is_address(word.key)}
    files = {word for word in words_of_results if word.shape is SYMBOL and is_file(word.key)}
    found: dict[str, float] = {}
    for reading in pool.readings.values():
        if reading.tool:
            rows = [line.words for line in reading.lines]
            in_result = (
                (weights.ADDRESS_IN_RESULT, {word.key for row in rows for word in row if word in addresses}),
                (weights.FOUND_FILE, {row[0].key for row in rows if row and row[0] in files}),
            )
            for factor, keys in in_result:
                if len(keys) <= weights.MOST_FOUND_IN_RESULT:
                    found.update(dict.fromkeys(keys, factor))
    return found
