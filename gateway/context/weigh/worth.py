"""The worth of lines: how likely a later call needs their facts. The weights are rough odds, measured on recorded agents of several kinds."""

from collections.abc import Mapping
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple

from gateway.context import weights
from gateway.context.read.line import CALL, SENTENCE, Line, MessageLines
from gateway.context.read.pasted import is_reminder
from gateway.context.read.words import SYMBOL, Word
from gateway.context.weigh.envelope import words_of_envelope
from gateway.context.weigh.folded_lines import FoldedLines


class WordOdds(NamedTuple):
    """For each word the odds that its fact is needed."""

    in_speech: Mapping[Word, float]
    """Of words in messages and calls."""
    in_data: Mapping[Word, float]


class Worth:
    """The worth of each line of a pool. A line is given by its position. This value does not refer to the pool, because the pool refers to it:
    Python frees a reference cycle late."""

    def __init__(self, lines: tuple[Line, ...], odds: WordOdds, own: list[float]) -> None:
        self.odds = odds
        self._lines = lines
        self._own = own
        """The worth of a line without its facts."""
        self._is_speech = [line.kind is SENTENCE or line.kind is CALL for line in lines]
        """Whether a line is a sentence or a call, not data."""
        number, oldest = len(lines), weights.OLDEST_LINE_SHARE
        self._age_factors = [oldest + (1 - oldest) * position / number for position in range(number)]
        """The share of its worth that a line keeps at its age."""

    @cached_property
    def bounds(self) -> list[float]:
        """Return the highest possible worth per token of each line: all its facts are new, and its message has begun."""
        speech_odds, data_odds = self.odds
        by_line = zip(self._lines, self._is_speech, self._own, self._age_factors, strict=True)
        # The formula of `of` again: a further call for each line would be a quarter of the cost.
        return [
            (_sum_of(line.words, speech_odds if is_speech else data_odds) * line.share + own) * age_factor / line.size
            for line, is_speech, own, age_factor in by_line
        ]

    def of(self, position: int, speech_odds: Mapping[Word, float], data_odds: Mapping[Word, float]) -> float:
        """Return the worth of a line with the given odds of words, as in `odds`."""
        line = self._lines[position]
        facts = _sum_of(line.words, speech_odds if self._is_speech[position] else data_odds)
        return (facts * line.share + self._own[position]) * self._age_factors[position]


def _sum_of(words: tuple[Word, ...], odds: Mapping[Word, float]) -> float:
    """Return the sum of the odds of words."""
    if len(words) > 1:
        found: tuple[float, ...] = itemgetter(*words)(odds)  # three quarters of the cost of `map`
        return sum(found)
    return odds[words[0]] if words else 0.0


def worth_of(pool: FoldedLines) -> Worth:
    """Return the worth of the lines of a pool."""
    own = [worth for reading in pool.readings.values() for worth in _own_worth(pool, reading)]
    return Worth(pool.lines, _word_odds(pool), own)


def _word_odds(pool: FoldedLines) -> WordOdds:
    """Return the odds of words by their shape, their rarity and their earlier use."""
    counts, rarity_of, use_factors = pool.tally.counts, pool.rarity.get, pool.use_factors
    # The odds in speech include one use: only further use counts.
    further_use_of = {
        key: use / weights.NAMED_BY_ASSISTANT for key, use in use_factors.items() if use > weights.NAMED_BY_ASSISTANT
    }.get
    in_speech = {
        word: word.in_speech * (further_use_of(word.key, 1.0) * rarity_of(word.key, 1.0))
        for word in {**counts.by_user, **counts.by_others, **counts.in_calls}
    }
    if pool.autonomous:
        # What a call names is a thing, even if it looks like any other word: a folder, a branch, a target of make.
        least = weights.IN_SPEECH[SYMBOL]
        for word in counts.arguments:
            in_speech[word] = max(word.in_speech, least) * further_use_of(word.key, 1.0)
    # An identifier in records of several results connects these records.
    in_several = [
        key
        for key, number in counts.results_by_identifier.items()
        if number > 1 and use_factors.get(key, 1.0) < weights.IN_SEVERAL_RESULTS
    ]
    use_factor_of = {**use_factors, **dict.fromkeys(in_several, weights.IN_SEVERAL_RESULTS)}.get
    in_data = {word: word.in_data * use_factor_of(word.key, 1.0) for word in {**counts.in_results, **counts.in_blocks}}
    for word in words_of_envelope(pool):
        in_data[word] *= weights.ENVELOPE
    return WordOdds(in_speech, in_data)


def _own_worth(pool: FoldedLines, reading: MessageLines) -> list[float]:
    """Return the worth of each line of a message without its facts."""
    user = reading.role == "user"
    is_first = user and reading.message == pool.first_user_message
    first_message_worth = weights.FIRST_USER_MESSAGE if is_first else 0.0
    sentence_worth = _sentence_worth(pool, reading)
    worths: list[float] = []
    errors: set[str] = set()
    for line in reading.lines:
        worth = 0.0
        if line.error and line.text not in errors:
            # Of equal rows the first one says it.
            worth = weights.ERROR_LINE
            errors.add(line.text)
        if line.kind is CALL:
            worth += weights.CALL_LINE
        elif user and (line.kind is SENTENCE or (is_first and is_reminder(line.label))):
            # The reminder at the beginning has the rules of the project, for the whole conversation: Claude Code puts them there.
            worth += (weights.BINDING_LINE * line.binding + first_message_worth + sentence_worth) * min(
                line.size / weights.FULL_WORTH_TOKENS, 1.0
            )
        elif sentence_worth and line.kind is SENTENCE:
            worth += sentence_worth * min(line.size / weights.FULL_WORTH_TOKENS, 1.0)
        worths.append(worth)
    return worths


def _sentence_worth(pool: FoldedLines, reading: MessageLines) -> float:
    """Return the worth of a message's sentences where an agent works on its own; 0 elsewhere, and for results."""
    if not pool.autonomous or reading.tool:
        return 0.0
    if reading.role == "user":
        return weights.TASK_SENTENCE
    return weights.STEP_SENTENCE if reading.lines[-1].kind is CALL else weights.REPORT_SENTENCE
