"""The pool of a folded part's lines, and the worth of each: how likely a later call needs its facts, considering their earlier use.

The weights are rough odds, measured on recorded agents of several kinds. A value that was an argument of a call is several
times as likely to be used again as a value that was only in a result; a value that the user named, four times.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from math import log
from sys import getsizeof
from typing import Any, Final, TypeVar

from gateway.context import weights
from gateway.context.cut.shares import AUTONOMOUS_RESULTS
from gateway.context.read.line import CALL, RECORD, SENTENCE, MessageLines
from gateway.context.read.words import SYMBOL, Word, is_address, is_file
from gateway.context.weigh.changes import replaced_positions
from gateway.context.weigh.speakers import Dialogue, dialogue_of
from gateway.context.weigh.standing_wishes import StandingWishes, standing_wishes
from gateway.context.weigh.tally import Field, Tally, field_of, tally

SHORT_MESSAGE_TOKENS: Final = 60
"""The most tokens of a short message."""

CALL_TOKENS_SHARE: Final = 0.2
"""Share of the lines' tokens. If calls and results have more, the folded part has many calls. Nearly all recorded conversations of
customers have more (with 0.25, a hundredth less of what they need is found at a tenth of their size, with
the rule of `calling.has_agent` a fortieth). A chat that calls a tool in every fourth turn has a tenth."""
RESULTS_PER_USER_MESSAGE: Final = 0.5
"""If there are more results, the folded part has many calls, even if calls and results are short."""

FAMILY_LETTERS: Final = 5
"""Number of first letters that the words of one family share: compounds, and endings that the stem does not know."""
MOST_CACHED_CHOICES: Final = 200
"""Cached choices from one folded part, one per question."""

T = TypeVar("T")


Passage = range
"""Positions of lines that are quoted together."""
PASSAGE_TOKENS: Final = 70
"""Tokens; a message up to a third longer is one passage."""


def _uncounted(_: int) -> None:
    """Ignore the bytes of a pool that is not in a memory."""


def _bytes_of(value: object) -> int:
    """Return about how many bytes a choice takes."""
    return getsizeof(value) + (sum(map(_bytes_of, value)) if isinstance(value, tuple) else 0)


class LinePool:
    """The lines of a folded part, oldest first, and facts derived from them. A line's position is its index in
    ``lines``."""

    def __init__(
        self, readings: Iterable[MessageLines], first_user_message: int = -1, earlier: Tally | None = None
    ) -> None:
        self.readings = {reading.message: reading for reading in readings if reading.lines}
        """By the index of a message, in order."""
        self.first_user_message = first_user_message
        """The index of the first user message; -1 without one."""
        self.lines = tuple(chain.from_iterable([reading.lines for reading in self.readings.values()]))
        self.message_of: list[int] = []
        """By position the index of the line's message."""
        self.positions: dict[int, range] = {}
        """By message, in order, the positions of its lines."""
        for index, reading in self.readings.items():
            start = len(self.message_of)
            self.message_of += [index] * len(reading.lines)
            self.positions[index] = range(start, len(self.message_of))
        self.tally = tally(self.readings, earlier)
        """It continues the counts of an earlier folded part of the conversation."""
        self.add_bytes: Callable[[int], None] = _uncounted
        """Called with the bytes by which the cached choices grow; negative if they shrink."""
        self._chosen: dict[object, Any] = {}
        self._chosen_bytes = 0
        self._passages: dict[int, list[Passage]] = {}

    def get_or_make(self, key: object, choose: Callable[[], T]) -> T:
        """Return a choice from these lines. It is cached under ``key``, which has everything that the choice depends on."""
        found: T | None = self._chosen.get(key)
        if found is None:
            if len(self._chosen) >= MOST_CACHED_CHOICES:
                self._chosen.clear()
                self.add_bytes(-self._chosen_bytes)
                self._chosen_bytes = 0
            found = self._chosen[key] = choose()
            more = _bytes_of(key) + _bytes_of(found)
            self._chosen_bytes += more
            self.add_bytes(more)
        return found

    @cached_property
    def word_odds(self) -> tuple[dict[Word, float], dict[Word, float]]:
        """Return by word the odds that its fact is needed: of words in messages and calls, and of words in data."""
        counts, rarity_of, use_factors = self.tally.counts, self.rarity.get, self._use_factors
        # The odds in speech include one use: only further use counts.
        further_use_of = {
            key: use / weights.NAMED_BY_ASSISTANT
            for key, use in use_factors.items()
            if use > weights.NAMED_BY_ASSISTANT
        }.get
        speech_odds = {
            word: word.in_speech * (further_use_of(word.key, 1.0) * rarity_of(word.key, 1.0))
            for word in {**counts.by_user, **counts.by_others, **counts.in_calls}
        }
        in_several = [key for key in self._in_several_results if use_factors.get(key, 1.0) < weights.IN_SEVERAL_RESULTS]
        use_factor_of = {**use_factors, **dict.fromkeys(in_several, weights.IN_SEVERAL_RESULTS)}.get
        data_odds = {
            word: word.in_data * use_factor_of(word.key, 1.0) for word in {**counts.in_results, **counts.in_blocks}
        }
        for word in self._envelope_words():
            data_odds[word] *= weights.ENVELOPE
        return speech_odds, data_odds

    @cached_property
    def envelope(self) -> frozenset[int]:
        """Return the positions of the lines that a back end writes around every answer, whatever was asked: a request id, a
        version, a rate limit. Results of several tools have such a field, and its values are hardly ever named."""
        results = sum([bool(reading.tool) for reading in self.readings.values()])
        results_by_field = self.tally.counts.results_by_field
        number: Counter[Field] = Counter()
        for (field, _), with_field in results_by_field.items():
            number[field] += with_field
        tools = Counter([field for field, _ in results_by_field])
        least = weights.ENVELOPE_SHARE_OF_RESULTS * results
        common = {field for field in number if number[field] >= least and tools[field] >= weights.ENVELOPE_TOOLS}
        if not common:
            return frozenset()
        positions: dict[Field, list[int]] = {}
        for index, reading in self.readings.items():
            if reading.tool:
                for position in self.positions[index]:
                    line = self.lines[position]
                    if line.kind is RECORD and (field := field_of(line)) in common:
                        positions.setdefault(field, []).append(position)
        rarely_named = [each for each in positions.values() if self._named_share(each) <= weights.MOST_USED_OF_ENVELOPE]
        return frozenset(chain.from_iterable(rarely_named))

    def _named_share(self, positions: Sequence[int]) -> float:
        """Return the share of these lines that have a word which a message or a call has named."""
        named = self._use_factors
        return sum([any([word.key in named for word in self.lines[at].words]) for at in positions]) / len(positions)

    def _envelope_words(self) -> set[Word]:
        """Return the words that only envelopes have."""
        if not self.envelope:
            return set()
        counts = self.tally.counts
        numbers = Counter(chain.from_iterable([self.lines[position].words for position in self.envelope]))
        return {
            word
            for word, number in numbers.items()
            if number == counts.in_results[word] and word not in counts.in_blocks
        }

    @cached_property
    def _in_several_results(self) -> frozenset[str]:
        """Return the identifiers in records of several results: they connect these records."""
        return frozenset([key for key, number in self.tally.counts.results_by_identifier.items() if number > 1])

    @cached_property
    def _is_speech(self) -> list[bool]:
        """Return by position whether the line is a sentence or a call, not data."""
        return [line.kind is SENTENCE or line.kind is CALL for line in self.lines]

    @cached_property
    def _own_worth(self) -> list[float]:
        """Return by position the worth of a line without its facts."""
        worth: list[float] = []
        for reading in self.readings.values():
            user = reading.role == "user"
            first_message_worth = weights.FIRST_USER_MESSAGE if reading.message == self.first_user_message else 0.0
            sentence_worth = self._sentence_worth(reading)
            for line in reading.lines:
                own_worth = weights.ERROR_LINE if line.error else 0.0
                if line.kind is CALL:
                    own_worth += weights.CALL_LINE
                elif user and line.kind is SENTENCE:
                    own_worth += (weights.BINDING_LINE * line.binding + first_message_worth + sentence_worth) * min(
                        line.size / weights.FULL_WORTH_TOKENS, 1.0
                    )
                elif sentence_worth and line.kind is SENTENCE:
                    own_worth += sentence_worth * min(line.size / weights.FULL_WORTH_TOKENS, 1.0)
                worth.append(own_worth)
        return worth

    def _sentence_worth(self, reading: MessageLines) -> float:
        """Return the worth of a message's sentences where an agent works on its own; 0 elsewhere, and for results."""
        if not self.autonomous or reading.tool:
            return 0.0
        if reading.role == "user":
            return weights.TASK_SENTENCE
        return weights.STEP_SENTENCE if reading.lines[-1].kind is CALL else weights.REPORT_SENTENCE

    @cached_property
    def _age_factors(self) -> list[float]:
        """Return by position the share of its worth that a line keeps at its age."""
        number, oldest = len(self.lines), weights.OLDEST_LINE_SHARE
        return [oldest + (1 - oldest) * position / number for position in range(number)]

    @cached_property
    def worth_bounds(self) -> list[float]:
        """Return by position the highest possible worth per token of a line: all its facts are new, and its message has
        begun."""
        speech_odds, data_odds = [values.__getitem__ for values in self.word_odds]
        by_line = zip(self.lines, self._is_speech, self._own_worth, self._age_factors, strict=True)
        # The formula of `worth` again: a call for each line would be a quarter of the cost.
        return [
            (sum(map(speech_odds if is_speech else data_odds, line.words)) * line.share + own_worth)
            * age_factor
            / line.size
            for line, is_speech, own_worth, age_factor in by_line
        ]

    def worth(self, position: int, speech_odds: Mapping[Word, float], data_odds: Mapping[Word, float]) -> float:
        """Return the worth of a line with the given odds of words, as in `word_odds`."""
        _, _, words, _, _, _, _, _, _, share, _ = self.lines[position]  # faster than two look-ups by name
        odds = speech_odds if self._is_speech[position] else data_odds
        # Most lines of records are one word.
        facts = odds[words[0]] if len(words) == 1 else sum(map(odds.__getitem__, words))
        return (facts * share + self._own_worth[position]) * self._age_factors[position]

    @property
    def spellings(self) -> Mapping[str, tuple[Word, ...]]:
        """Return by fact the words that spell it."""
        return self.tally.spellings

    def count(self, key: str) -> int:
        """Return the number of lines with a fact."""
        return sum([self.tally.lines[word] for word in self.spellings.get(key, ())])

    @cached_property
    def facts(self) -> dict[int, frozenset[Word]]:
        """Return by message all words of its lines."""
        return {
            index: frozenset(chain.from_iterable([line.words for line in reading.lines]))
            for index, reading in self.readings.items()
        }

    def passages(self, message: int) -> list[Passage]:
        """Split a message into passages: a record or a call alone, prose up to `PASSAGE_TOKENS`, a short message
        whole."""
        found = self._passages.get(message)
        if found is None:
            found = self._passages[message] = self._split_into_passages(self.positions[message])
        return found

    def _split_into_passages(self, positions: range) -> list[Passage]:
        lines = self.lines
        if sum([lines[position].size for position in positions]) <= PASSAGE_TOKENS * 1.3:
            return [positions]
        cut: list[Passage] = []
        start, size = positions.start, 0.0
        for position in positions:
            line = lines[position]
            record = line.kind is RECORD and position > start and lines[position - 1].group != line.group
            if position > start and (record or size + line.size > PASSAGE_TOKENS):
                cut.append(range(start, position))
                start, size = position, 0.0
            size += line.size
        return [*cut, range(start, positions.stop)]

    def size(self, passage: Passage) -> float:
        """Return the approximate tokens of a passage."""
        return sum([self.lines[position].size for position in passage])

    def family(self, beginning: str, most: int) -> list[str]:
        """Return the words that begin with these letters; of more than ``most`` those that appear first."""
        found = self._families.get(beginning, [])
        if len(found) <= most:
            return sorted(found)  # counts that are continued have another order than new ones
        keys = [word.key for line in self.lines for word in line.words if word.key.startswith(beginning)]
        return list(dict.fromkeys(keys))[:most]

    @cached_property
    def _families(self) -> dict[str, list[str]]:
        """Return by first letters, `FAMILY_LETTERS` of them, the words that begin with them."""
        found: dict[str, list[str]] = {}
        for key in self.spellings:
            if len(key) >= FAMILY_LETTERS:
                found.setdefault(key[:FAMILY_LETTERS], []).append(key)
        return found

    @cached_property
    def order(self) -> list[int]:
        """Return the messages that have lines, in order."""
        return list(self.positions)

    @cached_property
    def rank(self) -> dict[int, int]:
        """Return by message its index in `order`."""
        return {index: rank for rank, index in enumerate(self.order)}

    @cached_property
    def has_calls(self) -> bool:
        """Return whether a tool was called in the folded part."""
        return any([reading.tool for reading in self.readings.values()])

    @cached_property
    def roles_with_names(self) -> frozenset[str]:
        """Return the roles whose messages have several names. In a group, rows have the names of their speakers."""
        names = {(reading.role, reading.name) for reading in self.readings.values() if reading.name}
        roles = [role for role, _ in names]
        return frozenset([role for role in roles if roles.count(role) > 1])

    @cached_property
    def has_many_calls(self) -> bool:
        """Return whether calls and results are a large part of the folded part. In a chat they are not: it calls tools only
        now and then. This decides which lines are worth keeping, and changes only when the cut moves; how a room is shared is decided by the
        whole conversation (`gateway.context.cut.calling.has_agent`)."""
        readings = self.readings.values()
        user_messages = sum([reading.role == "user" for reading in readings])
        results = sum([bool(reading.tool) for reading in readings])
        if results > RESULTS_PER_USER_MESSAGE * user_messages:
            return True
        tokens = call_tokens = 0.0
        for reading in readings:
            size = sum([line.size for line in reading.lines])
            tokens += size
            if reading.tool:
                call_tokens += size
            elif reading.role != "user":
                call_tokens += sum([line.size for line in reading.lines if line.kind is CALL])
        return call_tokens > CALL_TOKENS_SHARE * tokens

    @cached_property
    def autonomous(self) -> bool:
        """Return whether the agent works on its own between two messages of the user: it has many results for each of them."""
        readings = self.readings.values()
        user_messages = sum([reading.role == "user" for reading in readings])
        return sum([bool(reading.tool) for reading in readings]) > AUTONOMOUS_RESULTS * user_messages

    @cached_property
    def messages_without_calls(self) -> list[int]:
        """Return the messages that are no results and end without a call: where an agent works on its own, its tasks and its
        reports."""
        return [
            index for index, reading in self.readings.items() if not reading.tool and reading.lines[-1].kind is not CALL
        ]

    @cached_property
    def dialogue(self) -> Dialogue:
        """Return the speakers, as the newest messages show them."""
        newest = reversed(self.readings.values())
        return dialogue_of((reading.role, line.text) for reading in newest for line in reading.lines)

    @cached_property
    def call_of_result(self) -> dict[int, int]:
        """Return by message of a result with records the position of its call, if the call's line is complete."""
        found: dict[int, int] = {}
        made: dict[str, int] = {}
        for index, reading in self.readings.items():
            if reading.tool:
                if reading.tool in made and reading.lines[0].kind is RECORD:
                    found[index] = made[reading.tool]
            elif reading.lines[-1].kind is CALL:
                positions = self.positions[index]
                made.update(
                    (self.lines[position].text, position) for position in positions if self.lines[position].kind is CALL
                )
        return found

    @cached_property
    def wishes(self) -> StandingWishes:
        """Return the user's standing wishes."""
        return standing_wishes(self)

    @cached_property
    def short_messages(self) -> frozenset[int]:
        """Return the indices of short messages. They can be understood only as a whole."""
        return frozenset(
            index
            for index, reading in self.readings.items()
            if len(reading.lines) < SHORT_MESSAGE_TOKENS
            and sum([line.size for line in reading.lines]) <= SHORT_MESSAGE_TOKENS
        )

    @cached_property
    def _use_factors(self) -> dict[str, float]:
        """Return by fact the factor for its earlier use, the highest if there are several."""
        counts = self.tally.counts
        use_factors: dict[str, float] = {}
        named_in_call = weights.NAMED_IN_CALL_OF_AUTONOMOUS if self.autonomous else weights.NAMED_IN_CALL
        for value, found in (
            (weights.NAMED_BY_ASSISTANT, counts.by_others),
            (weights.NAMED_BY_USER, counts.by_user),
            (named_in_call, counts.in_calls),
        ):
            use_factors.update(dict.fromkeys([word.key for word in found], value))
        if self.autonomous:
            for key, factor in self._found_in_results.items():
                use_factors[key] = max(factor, use_factors.get(key, 1.0))
            # To whom an agent wrote, it writes again. The call has the address already, so its result needs it less.
            written_to = [word.key for word in counts.in_calls if is_address(word.key)]
            use_factors.update(dict.fromkeys(written_to, weights.NAMED_IN_CALL))
        return use_factors

    @cached_property
    def _found_in_results(self) -> dict[str, float]:
        """Return what an agent is likely to use of results, with its factor: addresses, because it answers mails that it reads, and
        files at the beginning of rows, because it opens what a search found. Results that have many are not considered."""
        words_of_results = self.tally.counts.in_results
        addresses = {word for word in words_of_results if is_address(word.key)}
        files = {word for word in words_of_results if word.shape is SYMBOL and is_file(word.key)}
        found: dict[str, float] = {}
        for reading in self.readings.values():
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

    @cached_property
    def rarity(self) -> dict[str, float]:
        """Return by ordinary word or name its rarity: 1 if one line has it, near 0 if many have."""
        counts: dict[str, int] = {}
        for word, count in self.tally.lines.items():
            if word.ordinary:
                counts[word.key] = counts.get(word.key, 0) + count
        scale = log(len(self.lines) + 2)
        by_count = {count: max(1.0 - log(count) / scale, 0.0) ** 2 for count in set(counts.values())}
        return {key: by_count[count] for key, count in counts.items()}

    @cached_property
    def outdated(self) -> frozenset[int]:
        """Return the positions of the lines that a newer line repeats or replaces."""
        texts = [(position, line.text) for position, line in enumerate(self.lines) if self._is_speech[position]]
        newest = {text: position for position, text in texts}
        return self.replaced.union([position for position, text in texts if newest[text] != position])

    @cached_property
    def replaced(self) -> frozenset[int]:
        """Return the positions of the lines whose value a newer line replaces."""
        seen: set[str] = set()
        old: set[int] = set()
        for position in range(len(self.lines) - 1, -1, -1):
            slot = self.lines[position].slot
            if slot:
                if slot in seen:
                    old.add(position)
                seen.add(slot)
        return frozenset(
            old
            | replaced_positions(
                self.readings, self.positions, self.rarity, self.spellings, self.tally.counts.statements
            )
        )
