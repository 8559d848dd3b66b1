"""The lines that are chosen so far, and what each other line would gain and cost beside them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from gateway.context.choose.naming import NamingLines
from gateway.context.read.line import RECORD, SENTENCE
from gateway.context.read.words import Word
from gateway.context.weigh.line_pool import LinePool

OPENING_TOKENS: Final = 3
"""Approximate tokens of the beginning of another message's line."""
SEPARATOR_TOKENS: Final = 1.5
"""Tokens that are counted for the mark between two lines of an answer. The mark has one. The rest favours lines that need no
mark."""
QUOTED_LINE_WORTH: Final = 0.5
"""Worth of any line that may be quoted, even if its facts are known."""


class ChosenLines:
    """The chosen lines of a pool, by their positions.

    A message with a chosen line is *open*: another of its lines needs no speaker or tool before it. Facts of chosen lines are *known*: they no
    longer count for other lines.

    With ``is_for_quotes`` the lines are for the quotes of a question: then no wish waits for its revocation, and no call is shown before its
    result. Without it they are for a digest. ``known`` are facts that are elsewhere in the request.
    """

    def __init__(self, pool: LinePool, known: Collection[str], *, is_for_quotes: bool) -> None:
        self.pool = pool
        self.lines = pool.lines
        self.worth = pool.worth
        self.is_for_quotes = is_for_quotes
        self._revocations: Mapping[int, int] = {} if is_for_quotes else pool.wishes.revocations
        """By the position of a wish that of the line that revokes it."""
        self.positions: list[int] = []
        """The chosen lines, in the order of choice."""
        self.choices: list[tuple[int, ...]] = []
        """The same, one entry for each choice: a line, after the lines that name its record."""
        self.used_tokens = 0.0
        self.taken: set[int] = set()
        """Lines that are not chosen any more: chosen ones, calls that are shown, and lines that stand elsewhere."""
        self.open_messages: set[int] = set()
        self.open_groups: set[tuple[int, int]] = set()
        """The records and rows with a chosen line, each by its message and its group."""
        self.naming_lines_of = NamingLines(pool, self.taken, self.open_groups).of
        self.known_words: set[Word] = set()
        self.speech_odds, self.data_odds = map(dict, self.worth.odds)
        """The odds that words are needed (`WordOdds`); 0 for known ones."""
        self._drop_odds_of([word for key in known for word in pool.spellings.get(key, ())])

    def gain(self, position: int) -> float:
        """Return the worth of a line with the facts that are known by now."""
        gain = self.worth.of(position, self.speech_odds, self.data_odds)
        return gain + QUOTED_LINE_WORTH if self.is_for_quotes else gain

    def cost(self, position: int) -> float:
        """Return the approximate tokens of a line, with the text before it and the lines that name its record."""
        line, message = self.lines[position], self.pool.message_of[position]
        if message not in self.open_messages:
            # A record directly behind its call does not name it again.
            needs_no_tool = line.kind is RECORD and message - 1 in self.open_messages
            opening = 1 + (OPENING_TOKENS if needs_no_tool else self.opening_tokens(message))
        elif (message, line.group) in self.open_groups:
            if line.kind is not SENTENCE or self.pool.readings[message].role == "user":
                return line.size
            opening = SEPARATOR_TOKENS
        else:
            opening = 2 if line.label else 1
        return opening + line.size + sum([self.lines[naming].size for naming in self.naming_lines_of(position)])

    def opening_tokens(self, message: int) -> float:
        """Return the tokens before the first line of a message: its speaker or its tool."""
        return 0.0 if message in self.open_messages else OPENING_TOKENS + len(self.pool.readings[message].tool) / 4

    def can_take(self, position: int) -> bool:
        """Return whether a line may be chosen: it is not taken, and if it is a revoked wish, its revocation is."""
        if position in self.taken:
            return False
        revocation = self._revocations.get(position)
        return revocation is None or revocation in self.taken

    def take_wishes(self, positions: Sequence[int], tokens: float) -> None:
        """Take wishes in the given order, as many as fit into so many tokens; a revoked wish only after its revocation."""
        for position in positions:
            cost = self.cost(position)
            if self.used_tokens + cost <= tokens and self.can_take(position):
                self._take(position, cost)
                self.choices.append((position,))

    def take_with_names(self, position: int, cost: float) -> None:
        """Take a line with the lines that name its record; ``cost`` covers both."""
        naming_lines = self.naming_lines_of(position)
        for naming in naming_lines:
            self._take(naming, 0.0)
        self._take(position, cost)
        self.choices.append((*naming_lines, position))

    def _take(self, position: int, cost: float) -> None:
        """Choose a line: open its message and its group, and mark its facts as known."""
        line, message = self.lines[position], self.pool.message_of[position]
        self.used_tokens += cost
        self.positions.append(position)
        self.taken.add(position)
        if message not in self.open_messages:
            self.open_messages.add(message)
            self._mark_call_shown(message)
        self.open_groups.add((message, line.group))
        self._mark_facts_known(line.words)

    def leave_out(self, messages: Iterable[int], shown: Iterable[int]) -> None:
        """Take no lines of these messages. The facts of the lines ``shown``, which stand elsewhere, are known."""
        for message in messages:
            self.taken.update(self.pool.positions.get(message, ()))
        for position in shown:
            self._mark_facts_known(self.lines[position].words)

    def call_to_show(self, message: int) -> int:
        """Return the position of the call that will be shown before the first line of a result; -1 if it is already
        chosen."""
        position = self.pool.call_of_result.get(message, -1)
        return position if position not in self.taken and not self.is_for_quotes else -1

    def _mark_call_shown(self, message: int) -> None:
        """Mark the call of a result as taken, and its facts as known: it is shown before the first line of the result."""
        position = self.pool.call_of_result.get(message, -1)
        if position >= 0 and position not in self.taken:
            self.taken.add(position)
            self._mark_facts_known(self.lines[position].words)

    def _mark_facts_known(self, words: Iterable[Word]) -> None:
        """Mark the facts of words as known, in any spelling."""
        self._drop_odds_of(self.spellings_of([word for word in words if word not in self.known_words]))

    def spellings_of(self, words: Iterable[Word]) -> list[Word]:
        """Return all spellings of words in the pool."""
        spellings = self.pool.spellings
        return [word for new in words for word in spellings[new.key]]

    def _drop_odds_of(self, words: Iterable[Word]) -> None:
        """Mark words as known, in this spelling only: their odds are 0 from now on."""
        known_words, speech_odds, data_odds = self.known_words, self.speech_odds, self.data_odds
        for word in words:
            known_words.add(word)
            speech_odds[word] = data_odds[word] = 0.0
