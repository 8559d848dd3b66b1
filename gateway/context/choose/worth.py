"""The worth of the lines of a folded part: how likely their facts are to be needed, considering their earlier use.

The numbers are rough odds, measured on recorded agents of several kinds: a value that a call has used is several times
as likely to be used again as one that was only in a result; one that the user named, four times.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from itertools import chain
from math import log
from sys import getsizeof
from typing import Any, Final, TypeVar

from gateway.context.choose import weights
from gateway.context.choose.changes import superseded
from gateway.context.choose.line import CALL, RECORD, SAID, MessageLines
from gateway.context.choose.speakers import Dialogue, dialogue_of
from gateway.context.choose.tally import Tally, tally
from gateway.context.choose.wished import StandingWishes, standing_wishes
from gateway.context.choose.words import Word

BRIEF: Final = 60
"""Tokens up to which a message is short."""

CALL_TOKENS_SHARE: Final = 0.2
"""Share of the lines' tokens. If calls and results have more, tools are called often. Nearly all recorded conversations of
customers have more (with 0.25, a hundredth less of what they need is found at a tenth of their size). A chat that calls a
tool in every fourth turn has a tenth."""
RESULTS_PER_USER_MESSAGE: Final = 0.5
"""If there are more results, tools are called often, even if calls and results are short."""

FAMILY_LETTERS: Final = 5
"""Letters that two words of one family share: compounds, and endings that the stem does not know."""
MOST_CHOICES: Final = 200
"""Cached choices from one folded part, one per question."""

T = TypeVar("T")


Passage = range
"""Positions of lines that are quoted together."""
MOST_OF_PASSAGE: Final = 70
"""Tokens; a message up to a third longer is one passage."""


def _uncounted(_: int) -> None:
    pass


def _bytes_of(value: object) -> int:
    """Return about how many bytes a choice takes."""
    return getsizeof(value) + (sum(map(_bytes_of, value)) if isinstance(value, tuple) else 0)


class LinePool:
    """The lines of a folded part, oldest first, and facts derived from them. A line's position is its index in
    ``lines``."""

    def __init__(self, readings: Iterable[MessageLines], first: int = -1, earlier: Tally | None = None) -> None:
        self.readings = {reading.message: reading for reading in readings if reading.lines}
        """By message, in order."""
        self.first = first
        """The index of the first user message."""
        self.lines = tuple(chain.from_iterable([reading.lines for reading in self.readings.values()]))
        self.message_of: list[int] = []
        """By position."""
        self.places: dict[int, range] = {}
        """By message, in order: the positions of its lines."""
        for index, reading in self.readings.items():
            start = len(self.message_of)
            self.message_of += [index] * len(reading.lines)
            self.places[index] = range(start, len(self.message_of))
        self.tally = tally(self.readings, earlier)
        """The counts of an earlier folded part of the conversation are continued."""
        self.grown: Callable[[int], None] = _uncounted
        """Told how many bytes are taken by what is chosen from these lines."""
        self._chosen: dict[object, Any] = {}
        self._chosen_bytes = 0
        self._passages: dict[int, list[Passage]] = {}

    def once(self, key: object, choose: Callable[[], T]) -> T:
        """Return a choice from these lines, cached under ``key``, which has everything the choice depends on."""
        found: T | None = self._chosen.get(key)
        if found is None:
            if len(self._chosen) >= MOST_CHOICES:
                self._chosen.clear()
                self.grown(-self._chosen_bytes)
                self._chosen_bytes = 0
            found = self._chosen[key] = choose()
            more = _bytes_of(key) + _bytes_of(found)
            self._chosen_bytes += more
            self.grown(more)
        return found

    @cached_property
    def values(self) -> tuple[dict[Word, float], dict[Word, float]]:
        """Return by word how likely its fact is to be needed: of what was said or called, and of data."""
        counts, rarity_of, used = self.tally.counts, self.rarity.get, self._used()
        # In speech all has been used at least once: what counts is how much more.
        more_of = {
            key: use / weights.NAMED_BY_ASSISTANT for key, use in used.items() if use > weights.NAMED_BY_ASSISTANT
        }.get
        said = {
            word: word.in_speech * (more_of(word.key, 1.0) * rarity_of(word.key, 1.0))
            for word in {**counts.by_user, **counts.by_others, **counts.in_calls}
        }
        several = [key for key in self._several if used.get(key, 1.0) < weights.IN_SEVERAL_RESULTS]
        use_of = {**used, **dict.fromkeys(several, weights.IN_SEVERAL_RESULTS)}.get
        return said, {word: word.in_data * use_of(word.key, 1.0) for word in {**counts.in_results, **counts.in_blocks}}

    @cached_property
    def _several(self) -> frozenset[str]:
        """Return the identifiers that records of several results have: what refers to a thing elsewhere."""
        return frozenset([key for key, number in self.tally.counts.results_by_identifier.items() if number > 1])

    @cached_property
    def _spoken(self) -> list[bool]:
        """Return by position whether the line is a call or speech, not data."""
        return [line.sort is SAID or line.sort is CALL for line in self.lines]

    @cached_property
    def _own(self) -> list[float]:
        """Return by position the worth of a line besides its facts."""
        worth: list[float] = []
        for reading in self.readings.values():
            user = reading.role == "user"
            told = weights.FIRST_USER_MESSAGE if reading.message == self.first else 0.0
            for line in reading.lines:
                own = weights.ERROR_LINE if line.error else 0.0
                if line.sort is CALL:
                    own += weights.CALL_LINE
                elif user:
                    own += (weights.BINDING_LINE * line.binding + told) * min(
                        line.size / weights.FULL_WORTH_TOKENS, 1.0
                    )
                worth.append(own)
        return worth

    @cached_property
    def _age(self) -> list[float]:
        """Return by position the share of its worth that an old line keeps."""
        number, oldest = len(self.lines), weights.OLDEST_LINE_SHARE
        return [oldest + (1 - oldest) * position / number for position in range(number)]

    @cached_property
    def most(self) -> list[float]:
        """Return for each line its highest possible worth per token: alone, and with its message already begun."""
        said, data = [values.__getitem__ for values in self.values]
        known = zip(self.lines, self._spoken, self._own, self._age, strict=True)
        # As `worth` says; a call for each line would cost a quarter of it.
        return [
            (sum(map(said if spoken else data, line.words)) * line.share + own) * age / line.size
            for line, spoken, own, age in known
        ]

    def worth(self, position: int, said: Mapping[Word, float], data: Mapping[Word, float]) -> float:
        """Return the worth of a line with the given worths of words, as in `values`."""
        _, _, found, _, _, _, _, _, _, share, _ = self.lines[position]
        worths = said if self._spoken[position] else data
        # Most lines of records are one word.
        facts = worths[found[0]] if len(found) == 1 else sum(map(worths.__getitem__, found))
        return (facts * share + self._own[position]) * self._age[position]

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
        """Split a message into passages: a record or a call alone, prose up to `MOST_OF_PASSAGE`, a short message
        whole."""
        found = self._passages.get(message)
        if found is None:
            found = self._passages[message] = self._cut(self.places[message])
        return found

    def _cut(self, places: range) -> list[Passage]:
        lines = self.lines
        if sum([lines[place].size for place in places]) <= MOST_OF_PASSAGE * 1.3:
            return [places]
        cut: list[Passage] = []
        start, size = places.start, 0.0
        for place in places:
            line = lines[place]
            record = line.sort is RECORD and place > start and lines[place - 1].group != line.group
            if place > start and (record or size + line.size > MOST_OF_PASSAGE):
                cut.append(range(start, place))
                start, size = place, 0.0
            size += line.size
        return [*cut, range(start, places.stop)]

    def size(self, passage: Passage) -> float:
        """Return the approximate tokens of a passage."""
        return sum([self.lines[place].size for place in passage])

    def family(self, beginning: str, most: int) -> list[str]:
        """Return the words that begin with these letters; of more than ``most`` those that appear first."""
        found = self._families.get(beginning, [])
        if len(found) <= most:
            return sorted(found)  # counts that are continued have another order than new ones
        keys = [word.key for line in self.lines for word in line.words if word.key.startswith(beginning)]
        return list(dict.fromkeys(keys))[:most]

    @cached_property
    def _families(self) -> dict[str, list[str]]:
        """Return by the first letters of a word all words that begin so."""
        found: dict[str, list[str]] = {}
        for key in self.spellings:
            if len(key) >= FAMILY_LETTERS:
                found.setdefault(key[:FAMILY_LETTERS], []).append(key)
        return found

    @cached_property
    def order(self) -> list[int]:
        """Return the messages that have lines, in order."""
        return list(self.places)

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
        """Return the roles whose messages have several names: rows of a group's members have their names."""
        names = {(reading.role, reading.name) for reading in self.readings.values() if reading.name}
        roles = [role for role, _ in names]
        return frozenset([role for role in roles if roles.count(role) > 1])

    @cached_property
    def has_many_calls(self) -> bool:
        """Return whether calls and results are a large part of the folded part. In a chat they are not: it calls tools only
        now and then."""
        user_messages = results = 0
        tokens = call_tokens = 0.0
        for reading in self.readings.values():
            size = sum([line.size for line in reading.lines])
            tokens += size
            user_messages += reading.role == "user"
            if reading.tool:
                results += 1
                call_tokens += size
            elif reading.role != "user":
                call_tokens += sum([line.size for line in reading.lines if line.sort is CALL])
        return call_tokens > CALL_TOKENS_SHARE * tokens or results > RESULTS_PER_USER_MESSAGE * user_messages

    @cached_property
    def dialogue(self) -> Dialogue:
        """Return the speakers, as the newest messages show them."""
        newest = reversed(self.readings.values())
        return dialogue_of((reading.role, line.text) for reading in newest for line in reading.lines)

    @cached_property
    def calls(self) -> dict[int, int]:
        """Return by message of a result with records the position of its call, if that stands before these in full."""
        found: dict[int, int] = {}
        made: dict[str, int] = {}
        for index, reading in self.readings.items():
            if reading.tool:
                if reading.tool in made and reading.lines[0].sort is RECORD:
                    found[index] = made[reading.tool]
            elif reading.lines[-1].sort is CALL:
                places = self.places[index]
                made.update((self.lines[place].text, place) for place in places if self.lines[place].sort is CALL)
        return found

    @cached_property
    def wishes(self) -> StandingWishes:
        """Return the user's standing wishes."""
        return standing_wishes(self)

    @cached_property
    def brief(self) -> frozenset[int]:
        """Return the indices of short messages, which are understood only as a whole."""
        return frozenset(
            index
            for index, reading in self.readings.items()
            if len(reading.lines) < BRIEF and sum([line.size for line in reading.lines]) <= BRIEF
        )

    def _used(self) -> dict[str, float]:
        """Return by fact its worth from earlier use."""
        counts = self.tally.counts
        used: dict[str, float] = {}
        for value, found in (
            (weights.NAMED_BY_ASSISTANT, counts.by_others),
            (weights.NAMED_BY_USER, counts.by_user),
            (weights.NAMED_IN_CALL, counts.in_calls),
        ):
            used.update(dict.fromkeys([word.key for word in found], value))
        return used

    @cached_property
    def rarity(self) -> dict[str, float]:
        """Return by ordinary word or name: 1 if one line has it, towards 0 if many have."""
        counts: dict[str, int] = {}
        for word, count in self.tally.lines.items():
            if word.ordinary:
                counts[word.key] = counts.get(word.key, 0) + count
        scale = log(len(self.lines) + 2)
        by_count = {count: max(1.0 - log(count) / scale, 0.0) ** 2 for count in set(counts.values())}
        return {key: by_count[count] for key, count in counts.items()}

    @cached_property
    def outdated(self) -> frozenset[int]:
        """Return lines that a newer one repeats or replaces."""
        texts = [(position, line.text) for position, line in enumerate(self.lines) if self._spoken[position]]
        newest = {text: position for position, text in texts}
        return self.replaced.union([position for position, text in texts if newest[text] != position])

    @cached_property
    def replaced(self) -> frozenset[int]:
        """Return lines that no longer hold: a newer value has replaced them."""
        seen: set[str] = set()
        old: set[int] = set()
        for position in range(len(self.lines) - 1, -1, -1):
            slot = self.lines[position].slot
            if slot:
                if slot in seen:
                    old.add(position)
                seen.add(slot)
        return frozenset(
            old | superseded(self.readings, self.places, self.rarity, self.spellings, self.tally.counts.statements)
        )
