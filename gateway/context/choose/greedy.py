"""Take lines by their worth: the next line is the one with the most new facts per token, until the room is full."""

import heapq
from collections.abc import Collection, Iterable, Sequence
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
LEAST_GAIN: Final = 1e-9
"""The least gain in worth by which a line is taken. Smaller gains are rounding errors."""
MOST_SKIPPED: Final = 24
"""Number of lines that are too long for the remaining room, after which the search ends."""
MOST_BUNDLE_LINES: Final = 24
"""The most lines of a message that are considered for its first bundle. Chosen: more lines seldom make the first cheaper."""

_Bundle = tuple[float, float, list[int]]
"""The worth, the tokens and the positions of lines of one message. They are taken together and share the tokens of the
message's opening."""
_NO_BUNDLE: Final[_Bundle] = (0.0, 1.0, [])


class Greedy:
    """A greedy choice: take the line with the highest worth per token, then the next one, and so on.

    The first line of a message costs more than the others, because the row begins with its speaker or its tool. So the first
    choice from a message is a *bundle*: of a result with records the values that are together worth most per token, of any other
    message its best line. From then on the message is *open*, and its other lines are chosen one by one. Facts of chosen lines are
    *known* and no longer count for other lines. Heaps are ordered by *priority*: the negative worth per token, because a heap has its
    least item first.

    ``for_quotes`` are the positions of the only lines that may be taken, for the quotes of a question: then no wish waits for its
    revocation, and no call is shown before its result. Without them all lines may be taken, for a digest.
    """

    def __init__(self, pool: LinePool, known: Collection[str], for_quotes: Collection[int] | None) -> None:
        self.pool = pool
        self.lines = pool.lines
        self.is_for_quotes = for_quotes is not None
        self.worth = pool.worth
        self.speech_odds, self.data_odds = map(dict, self.worth.odds)
        self.known_words: set[Word] = set()
        self._drop_odds_of([word for key in known for word in pool.spellings.get(key, ())])
        self.open_groups: set[tuple[int, int]] = set()
        self.open_messages: set[int] = set()
        self.chosen: list[int] = []
        self.choices: list[tuple[int, ...]] = []
        """The chosen lines in the order of choice, each behind the lines that name its record."""
        self.taken: set[int] = set()
        self.naming_lines_of = NamingLines(pool, self.taken, self.open_groups).of
        self.used_tokens = 0.0
        self.candidates = _candidates(pool, for_quotes)
        """By message the lines that may be taken."""
        self.bounds = self.worth.bounds if for_quotes is None else _bounds_for_quotes(pool, for_quotes)
        """By position the upper bound of a line's worth per token. The worth is computed again before the line is taken."""
        self.strongest: dict[int, list[int]] = {}
        """For each result with records the lines with the highest bounds, from which its bundle is made."""
        self.best_lines: dict[int, list[tuple[float, int]]] = {}
        """For any other message that is not open, the heap of its lines that may be worth something; its entries are those of ``heap``."""
        self.bundles: dict[int, tuple[int, _Bundle]] = {}
        """By message its best bundle, behind the number of lines that were chosen when it was computed."""
        bound_of_call = {message: self._bound_of_call(message) for message in pool.call_of_result}
        self.heap = [
            (-max(bound_of_call.get(message, 0.0), *map(self.bounds.__getitem__, positions)), ~rank)
            for rank, (message, positions) in enumerate(self.candidates.items())
            if positions
        ]
        """Priorities, each with the position of a line of an open message, or with the inverted rank of a message that is not open: positions
        are never negative, inverted ranks always are."""
        heapq.heapify(self.heap)

    def leave_out(self, messages: Collection[int], shown: Iterable[int]) -> None:
        """Take no lines of these messages. The facts of the lines ``shown``, which stand elsewhere, are known."""
        if not messages:
            return
        self.candidates = {
            message: [] if message in messages else positions for message, positions in self.candidates.items()
        }
        self.heap = [(bound, rank) for bound, rank in self.heap if self.candidates[self.pool.message_order[~rank]]]
        heapq.heapify(self.heap)
        for message in messages:
            self.taken.update(self.pool.positions.get(message, ()))
        for position in shown:
            self._mark_facts_known(self.lines[position].words)

    def grow(self, tokens: float) -> None:
        """Choose lines up to about so many tokens.

        An entry of the heap has the priority that was computed last. The worth may be less by now, because facts have become known. So
        the worth of the first entry is computed again. If another entry may be better, it goes back into the heap.
        """
        heap = self.heap
        skipped: list[tuple[float, int]] = []
        while heap and self.used_tokens < tokens and len(skipped) <= MOST_SKIPPED:
            old_priority, entry = heap[0]
            bundle: list[int] = []
            if entry < 0:
                next_priority = min(heap[1:3])[0] if len(heap) > 1 else 0.0
                gain, cost, bundle = self._best_bundle(self.pool.message_order[~entry], next_priority)
            elif entry in self.taken or self._lacks_revocation(entry):
                gain = cost = 0.0
            else:
                gain, cost = self._gain(entry), self._cost(entry)
            if gain > LEAST_GAIN:
                priority = -gain / cost
                if priority > old_priority and len(heap) > 1 and priority > min(heap[1:3])[0]:
                    heapq.heapreplace(heap, (priority, entry))
                    continue
                if entry >= 0 and self.used_tokens + cost > tokens:
                    skipped.append((priority, entry))
                elif entry >= 0:
                    self._take_with_names(entry, cost)
            heapq.heappop(heap)
            if entry < 0:
                self._open_message(self.pool.message_order[~entry], bundle, tokens)
        for item in skipped:
            heapq.heappush(heap, item)

    def _gain(self, position: int) -> float:
        """Return the worth of a line with the facts that are known by now."""
        gain = self.worth.of(position, self.speech_odds, self.data_odds)
        return gain + QUOTED_LINE_WORTH if self.is_for_quotes else gain

    def _best_bundle(self, message: int, next_priority: float) -> _Bundle:
        """Return the bundle with the highest worth per token of a message that is not open yet, or an upper bound of its worth if the next
        entry of the heap, which has ``next_priority``, is better even then."""
        positions = self.candidates[message]
        # Only values of records are listed behind each other: a row or a sentence has a line of its own.
        if positions and self.lines[positions[0]].kind is RECORD:
            return self._best_values(message)
        return self._best_line(message, next_priority)

    def _best_line(self, message: int, next_priority: float) -> _Bundle:
        """Return the line of a message that is worth most with the facts that are known by now.

        The line that was best at first may have lost its facts to lines of other messages. So the first line of the message's heap is
        computed again, until one stays first, or until none can be as good as the next entry of the outer heap.
        """
        best = self._lines_by_bound(message)
        while best:
            old_priority, position = best[0]
            if old_priority > next_priority:
                return -old_priority, 1.0, [position]
            can_be_taken = position not in self.taken and not self._lacks_revocation(position)
            gain, cost = self._gain(position) if can_be_taken else 0.0, self._cost(position)
            if gain <= LEAST_GAIN:
                heapq.heappop(best)
                continue
            if -gain / cost > old_priority:
                heapq.heapreplace(best, (-gain / cost, position))
            if best[0][1] == position:
                return gain, cost, [position]
        return _NO_BUNDLE

    def _lines_by_bound(self, message: int) -> list[tuple[float, int]]:
        """Return the heap of the lines of a message that is not open. At first it has upper bounds of their worth per token."""
        lines_by_bound = self.best_lines.get(message)
        if lines_by_bound is None:
            opening, lines, bounds = self._opening_tokens(message), self.lines, self.bounds
            sizes = [(position, lines[position].size) for position in self.candidates[message]]
            lines_by_bound = [(-bounds[position] * size / (opening + size), position) for position, size in sizes]
            heapq.heapify(lines_by_bound)
            self.best_lines[message] = lines_by_bound
        return lines_by_bound

    def _best_values(self, message: int) -> _Bundle:
        """Return the values of a result with records that are together worth most per token."""
        at, found_before = self.bundles.get(message, (-1, _NO_BUNDLE))
        if at == len(self.chosen):
            return found_before
        bounds = self.bounds
        positions = self.strongest.get(message)
        if positions is None:
            positions = sorted(self.candidates[message], key=bounds.__getitem__, reverse=True)
            self.strongest[message] = positions = positions[:MOST_BUNDLE_LINES]
        call = self._call_to_show(message)
        worth, tokens = self._gain(call) if call >= 0 else 0.0, self._opening_tokens(message)
        seen = set(self._spellings_of(self.lines[call].words)) if call >= 0 else set()
        gains = self._gains(positions, 0.0, tokens, seen)
        groups: set[int] = set()
        best_values: list[int] = []
        spellings = self.pool.spellings
        for number, (priority, position) in enumerate(gains, 1):
            line = self.lines[position]
            if best_values and seen.issuperset(line.words):
                continue
            gain, cost = -priority * line.size, line.size
            if line.group not in groups:
                cost += 1 + sum([self.lines[naming].size for naming in self.naming_lines_of(position)])
            if best_values and gain * tokens <= worth * cost:
                break
            worth, tokens = worth + gain, tokens + cost
            best_values.append(position)
            if number < len(gains):  # most bundles have one line, and no other asks what it has
                for word in line.words:  # equal words may be different objects
                    seen.update(spellings[word.key])
            groups.add(line.group)
        self.bundles[message] = len(self.chosen), (worth, tokens, best_values)
        return worth, tokens, best_values

    def _gains(self, positions: Iterable[int], worth: float, tokens: float, seen: set[Word]) -> list[tuple[float, int]]:
        """Return lines behind their priority, the best first, without lines that can only lower the worth per token of the bundle.

        ``positions`` have those with the highest bounds first. ``worth``, ``tokens`` and the words ``seen`` are those of the message's opening.
        """
        gains: list[tuple[float, int]] = []
        for position in positions:
            if gains and self.bounds[position] * tokens <= worth:
                break
            can_be_taken = (
                position not in self.taken
                and not self._lacks_revocation(position)
                and not seen.issuperset(self.lines[position].words)
            )
            if can_be_taken and (gain := self._gain(position)) > LEAST_GAIN:
                size = self.lines[position].size
                gains.append((-gain / size, position))
                if worth * size <= gain * tokens:
                    worth, tokens = worth + gain, tokens + size + 1
        gains.sort()
        return gains

    def _open_message(self, message: int, bundle: Iterable[int], tokens: float) -> None:
        """Take the lines of a bundle that fit. From now on the other lines of the message can be taken alone."""
        for position in bundle:
            cost = self._cost(position)
            if position not in self.taken and self.used_tokens + cost <= tokens and self._gain(position) > LEAST_GAIN:
                self._take_with_names(position, cost)
        best = self.best_lines.pop(message, None)
        # What left the heap of the message is worth nothing any more.
        left = self.candidates[message] if best is None else [position for _, position in best]
        for position in left:
            if position not in self.taken:
                heapq.heappush(self.heap, (-self.bounds[position], position))

    def take_wishes(self, positions: Sequence[int], tokens: float) -> None:
        """Take wishes in the given order, as many as fit into so many tokens; a revoked wish only after its revocation."""
        for position in positions:
            cost = self._cost(position)
            if (
                self.used_tokens + cost <= tokens
                and position not in self.taken
                and not self._lacks_revocation(position)
            ):
                self._take(position, cost)
                self.choices.append((position,))

    def _lacks_revocation(self, position: int) -> bool:
        """Return whether a line is a revoked wish and its revocation is not chosen."""
        if self.is_for_quotes:
            return False
        revocation = self.pool.wishes.revocations.get(position)
        return revocation is not None and revocation not in self.taken

    def _take_with_names(self, position: int, cost: float) -> None:
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
        self.chosen.append(position)
        self.taken.add(position)
        if message not in self.open_messages:
            self.open_messages.add(message)
            self._mark_call_shown(message)
        self.open_groups.add((message, line.group))
        self._mark_facts_known(line.words)

    def _call_to_show(self, message: int) -> int:
        """Return the position of the call that will be shown before the first line of a result; -1 if it is already
        chosen."""
        position = self.pool.call_of_result.get(message, -1)
        return position if position not in self.taken and not self.is_for_quotes else -1

    def _bound_of_call(self, message: int) -> float:
        """Return the highest possible worth per token of the call before the first line of a result."""
        call = self._call_to_show(message)
        return self._gain(call) / self._opening_tokens(message) if call >= 0 else 0.0

    def _mark_call_shown(self, message: int) -> None:
        """Mark the call of a result as taken, and its facts as known: it is shown before the first line of the result."""
        position = self.pool.call_of_result.get(message, -1)
        if position >= 0 and position not in self.taken:
            self.taken.add(position)
            self._mark_facts_known(self.lines[position].words)

    def _mark_facts_known(self, words: Iterable[Word]) -> None:
        """Mark the facts of words as known, in any spelling."""
        self._drop_odds_of(self._spellings_of([word for word in words if word not in self.known_words]))

    def _spellings_of(self, words: Iterable[Word]) -> list[Word]:
        spellings = self.pool.spellings
        return [word for new in words for word in spellings[new.key]]

    def _drop_odds_of(self, words: Iterable[Word]) -> None:
        """Mark words as known, in this spelling only: their odds are 0 from now on."""
        known_words, speech_odds, data_odds = self.known_words, self.speech_odds, self.data_odds
        for word in words:
            known_words.add(word)
            speech_odds[word] = data_odds[word] = 0.0

    def _cost(self, position: int) -> float:
        """Return the approximate tokens of a line, with the text before it and the lines that name its record."""
        line, message = self.lines[position], self.pool.message_of[position]
        if message not in self.open_messages:
            # A record directly behind its call does not name it again.
            needs_no_tool = line.kind is RECORD and message - 1 in self.open_messages
            opening = 1 + (OPENING_TOKENS if needs_no_tool else self._opening_tokens(message))
        elif (message, line.group) in self.open_groups:
            if line.kind is not SENTENCE or self.pool.readings[message].role == "user":
                return line.size
            opening = SEPARATOR_TOKENS
        else:
            opening = 2 if line.label else 1
        return opening + line.size + sum([self.lines[naming].size for naming in self.naming_lines_of(position)])

    def _opening_tokens(self, message: int) -> float:
        """Return the tokens before the first line of a message: its speaker or its tool."""
        return 0.0 if message in self.open_messages else OPENING_TOKENS + len(self.pool.readings[message].tool) / 4


def _candidates(pool: LinePool, for_quotes: Collection[int] | None) -> dict[int, list[int]]:
    """Return by message the lines that may be taken: only those that may be quoted, if these are given, else all that are not outdated. A header that a program
    writes before output is never taken."""
    if for_quotes is None:
        outdated = pool.outdated | pool.headers
        return {
            message: [position for position in positions if position not in outdated]
            for message, positions in pool.positions.items()
        }
    replaced = pool.replaced | pool.headers
    return {
        message: [position for position in positions if position in for_quotes and position not in replaced]
        for message, positions in pool.positions.items()
    }


def _bounds_for_quotes(pool: LinePool, for_quotes: Collection[int]) -> list[float]:
    return [
        bound + QUOTED_LINE_WORTH / line.size if position in for_quotes else 0.0
        for position, (bound, line) in enumerate(zip(pool.worth.bounds, pool.lines, strict=True))
    ]
