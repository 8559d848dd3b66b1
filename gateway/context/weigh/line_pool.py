"""The pool of a folded part's lines: where they are, and what is known of them together."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import chain
from math import log
from typing import Final

from gateway.context.cut.agents import AUTONOMOUS_RESULTS
from gateway.context.read.line import CALL, RECORD, SENTENCE, MessageLines
from gateway.context.read.words import Word
from gateway.context.weigh.choice_cache import ChoiceCache
from gateway.context.weigh.common_arguments import common_arguments_of
from gateway.context.weigh.envelope import envelope_of, headers_of
from gateway.context.weigh.passages import Passage, split_into_passages
from gateway.context.weigh.replaced_statements import replaced_positions
from gateway.context.weigh.speakers import Dialogue, dialogue_of, is_told_by_assistant
from gateway.context.weigh.standing_wishes import StandingWishes, standing_wishes
from gateway.context.weigh.tally import Tally, tally
from gateway.context.weigh.use import use_factors_of
from gateway.context.weigh.worth import Worth, worth_of

SHORT_MESSAGE_TOKENS: Final = 60
"""The most tokens of a short message."""

CALL_TOKENS_SHARE: Final = 0.2
"""Share of the lines' tokens. If calls and results have more, the folded part has many calls. In nearly all recorded conversations of
customers they have more (with 0.25, a hundredth less of what they need is found at a tenth of their size, with
the rule of `agents.has_agent` a fortieth). A chat that calls a tool in every fourth turn has a tenth."""
RESULTS_PER_USER_MESSAGE: Final = 0.5
"""If there are more results, the folded part has many calls, even if calls and results are short."""

FAMILY_LETTERS: Final = 5
"""Number of first letters that the words of one family share: compounds, and endings that the stem does not know."""
MOST_FAMILY_WORDS: Final = 12
"""The most words of one family that are looked up. Chosen to bound the time."""


class LinePool:
    """The lines of a folded part, oldest first, and facts derived from them. A line's position is its index in
    ``lines``."""

    def __init__(
        self, readings: Iterable[MessageLines], first_user_message: int = -1, earlier: Tally | None = None
    ) -> None:
        self.readings = {reading.message: reading for reading in readings if reading.lines}
        """The messages, by their index, in order."""
        self.first_user_message = first_user_message
        """The index of the first user message; -1 without one."""
        self.lines = tuple(chain.from_iterable([reading.lines for reading in self.readings.values()]))
        self.message_of: list[int] = []
        """For each position the index of the line's message."""
        self.positions: dict[int, range] = {}
        """For each message, in order, the positions of its lines."""
        for index, reading in self.readings.items():
            start = len(self.message_of)
            self.message_of += [index] * len(reading.lines)
            self.positions[index] = range(start, len(self.message_of))
        self.tally = tally(self.readings, earlier)
        """It continues the counts of an earlier folded part of the conversation."""
        self.choices = ChoiceCache()
        """What was chosen from these lines."""
        self._passages: dict[int, list[Passage]] = {}

    @cached_property
    def worth(self) -> Worth:
        """Return what each line is worth."""
        return worth_of(self)

    @cached_property
    def use_factors(self) -> Mapping[str, float]:
        """Return for each fact the factor for its earlier use."""
        return use_factors_of(self)

    @cached_property
    def envelope(self) -> frozenset[int]:
        """Return the positions of the lines that a back end writes around every answer."""
        return envelope_of(self) | self.headers

    @cached_property
    def headers(self) -> frozenset[int]:
        """Return the positions of the rows that a program writes before the output of a tool. They are in the envelope, and no digest has them."""
        return headers_of(self)

    @cached_property
    def common_arguments(self) -> Mapping[str, frozenset[str]]:
        """Return for each tool the arguments that most of its calls have. Rows show them once."""
        return common_arguments_of(self)

    @property
    def spellings(self) -> Mapping[str, tuple[Word, ...]]:
        """Return for each fact the words that spell it."""
        return self.tally.spellings

    def lines_with(self, key: str) -> int:
        """Return the number of lines with a fact."""
        return sum([self.tally.lines[word] for word in self.spellings.get(key, ())])

    @cached_property
    def words_of(self) -> dict[int, frozenset[Word]]:
        """Return for each message all words of its lines."""
        return {
            index: frozenset(chain.from_iterable([line.words for line in reading.lines]))
            for index, reading in self.readings.items()
        }

    def passages(self, message: int) -> list[Passage]:
        """Return the passages of a message."""
        passages = self._passages.get(message)
        if passages is None:
            passages = self._passages[message] = split_into_passages(self.lines, self.positions[message])
        return passages

    def size(self, passage: Passage) -> float:
        """Return the approximate tokens of a passage."""
        return sum([self.lines[position].size for position in passage])

    def family_of(self, key: str) -> list[str]:
        """Return the words that begin like a word, with it if the pool has it: at most `MOST_FAMILY_WORDS`, those that appear first. A short word
        has no family."""
        if len(key) < FAMILY_LETTERS:
            return []
        beginning = key[:FAMILY_LETTERS]
        family = self._families.get(beginning, [])
        if len(family) <= MOST_FAMILY_WORDS:
            return sorted(family)  # counts that are continued have another order than new ones
        keys = [word.key for line in self.lines for word in line.words if word.key.startswith(beginning)]
        return list(dict.fromkeys(keys))[:MOST_FAMILY_WORDS]

    @cached_property
    def _families(self) -> dict[str, list[str]]:
        """Return for each beginning of `FAMILY_LETTERS` letters the words that have it."""
        families: dict[str, list[str]] = {}
        for key in self.spellings:
            if len(key) >= FAMILY_LETTERS:
                families.setdefault(key[:FAMILY_LETTERS], []).append(key)
        return families

    @cached_property
    def message_order(self) -> list[int]:
        """Return the indices of the messages that have lines, in their order. The index in this list is a message's *rank*."""
        return list(self.positions)

    @cached_property
    def rank(self) -> dict[int, int]:
        """Return the rank of each message: its index in `message_order`."""
        return {index: rank for rank, index in enumerate(self.message_order)}

    @cached_property
    def has_calls(self) -> bool:
        """Return whether a tool was called in the folded part."""
        return self._results > 0

    @cached_property
    def roles_with_names(self) -> frozenset[str]:
        """Return the roles whose messages have several names. In a group, rows have the names of their speakers."""
        names = {(reading.role, reading.name) for reading in self.readings.values() if reading.name}
        roles = [role for role, _ in names]
        return frozenset([role for role in roles if roles.count(role) > 1])

    @cached_property
    def has_many_calls(self) -> bool:
        """Return whether calls and results are a large part of the folded part. In a chat they are not: it calls tools only
        now and then.

        This decides which lines are worth keeping, and changes only when the cut moves. How a room is shared is decided by the whole conversation
        (`Layout.has_agent`), with other limits: see `CALL_TOKENS_SHARE`.
        """
        if self._results > RESULTS_PER_USER_MESSAGE * self._user_messages:
            return True
        tokens = call_tokens = 0.0
        for reading in self.readings.values():
            size = sum([line.size for line in reading.lines])
            tokens += size
            if reading.tool:
                call_tokens += size
            elif reading.role != "user":
                call_tokens += sum([line.size for line in reading.lines if line.kind is CALL])
        return call_tokens > CALL_TOKENS_SHARE * tokens

    @cached_property
    def autonomous(self) -> bool:
        """Return whether the agent works on its own between two messages of the user: the folded part has many results for each of them.
        `Layout.autonomous` says it of the whole conversation, and counts turns."""
        return self._results > AUTONOMOUS_RESULTS * self._user_messages

    @cached_property
    def _results(self) -> int:
        """Return the number of tool results."""
        return sum([bool(reading.tool) for reading in self.readings.values()])

    @cached_property
    def _user_messages(self) -> int:
        return sum([reading.role == "user" for reading in self.readings.values()])

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
        dialogue = dialogue_of((reading.role, line.text) for reading in newest for line in reading.lines)
        if self._results:
            return dialogue
        told = is_told_by_assistant(
            (reading.role, line.words) for reading in self.readings.values() for line in reading.lines
        )
        return dialogue._replace(told_by_assistant=told)

    @cached_property
    def call_of_result(self) -> dict[int, int]:
        """Return for each result with records the position of its call, if the call's line is complete."""
        calls_by_result: dict[int, int] = {}
        made: dict[str, int] = {}
        for index, reading in self.readings.items():
            if reading.tool:
                if reading.tool in made and reading.lines[0].kind is RECORD:
                    calls_by_result[index] = made[reading.tool]
            elif reading.lines[-1].kind is CALL:
                positions = self.positions[index]
                made.update(
                    (self.lines[position].text, position) for position in positions if self.lines[position].kind is CALL
                )
        return calls_by_result

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
    def rarity(self) -> dict[str, float]:
        """Return the rarity of each ordinary word or name: 1 if one line has it, near 0 if many have."""
        counts: dict[str, int] = {}
        for word, count in self.tally.lines.items():
            if word.ordinary:
                counts[word.key] = counts.get(word.key, 0) + count
        scale = log(len(self.lines) + 2)
        by_count = {count: max(1.0 - log(count) / scale, 0.0) ** 2 for count in set(counts.values())}
        return {key: by_count[count] for key, count in counts.items()}

    @cached_property
    def outdated(self) -> frozenset[int]:
        """Return the positions of the lines that a newer line repeats or replaces: those in `replaced`, and older ones with the same words."""
        texts = [
            (position, line.text)
            for position, line in enumerate(self.lines)
            if line.kind is SENTENCE or line.kind is CALL
        ]
        newest = {text: position for position, text in texts}
        return self.replaced.union([position for position, text in texts if newest[text] != position])

    @cached_property
    def replaced(self) -> frozenset[int]:
        """Return the positions of the lines whose value a newer line replaces: the same field of the same record, or a statement of the user
        (`replaced_statements`)."""
        seen: set[str] = set()
        old: set[int] = set()
        for position in range(len(self.lines) - 1, -1, -1):
            slot = self.lines[position].slot
            if slot:
                if slot in seen:
                    old.add(position)
                seen.add(slot)
        return frozenset(old | replaced_positions(self))
