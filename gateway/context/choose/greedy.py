"""Take lines by their worth: the next line is the one with the most new facts per token, until the room is full."""

import heapq
from collections.abc import Collection, Iterable
from typing import Final

from gateway.context.choose.chosen_lines import QUOTED_LINE_WORTH, ChosenLines
from gateway.context.read.line import RECORD
from gateway.context.read.words import Word
from gateway.context.weigh.line_pool import LinePool

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
    message its best line. From then on the message is *open*, and its other lines are chosen one by one (`ChosenLines`). Heaps are ordered by
    *priority*: the negative worth per token, because a heap has its least item first.

    ``for_quotes`` are the positions of the only lines that may be taken, for the quotes of a question. Without them all lines may be taken,
    for a digest.
    """

    def __init__(self, pool: LinePool, known: Collection[str], for_quotes: Collection[int] | None) -> None:
        self.pool = pool
        self.lines = pool.lines
        self.chosen = ChosenLines(pool, known, is_for_quotes=for_quotes is not None)
        self.candidates = _candidates(pool, for_quotes)
        """By message the lines that may be taken."""
        self.bounds = pool.worth.bounds if for_quotes is None else _bounds_for_quotes(pool, for_quotes)
        """By position the upper bound of a line's worth per token. The worth is computed again before the line is taken."""
        self.strongest: dict[int, list[int]] = {}
        """For each result with records the lines with the highest bounds, from which its bundle is made."""
        self.best_lines: dict[int, list[tuple[float, int]]] = {}
        """For any other message that is not open, the heap of its lines that may be worth something; its entries are those of ``heap``."""
        self.bundles: dict[int, tuple[int, _Bundle]] = {}
        """By message the number of lines that were chosen when its best bundle was computed, and this bundle."""
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
        self.chosen.leave_out(messages, shown)

    def grow(self, tokens: float) -> None:
        """Choose lines up to about so many tokens.

        An entry of the heap has the priority that was computed last. The worth may be less by now, because facts have become known. So
        the worth of the first entry is computed again. If another entry may be better, it goes back into the heap.
        """
        heap, chosen = self.heap, self.chosen
        skipped: list[tuple[float, int]] = []
        while heap and chosen.used_tokens < tokens and len(skipped) <= MOST_SKIPPED:
            old_priority, entry = heap[0]
            bundle: list[int] = []
            if entry < 0:
                next_priority = min(heap[1:3])[0] if len(heap) > 1 else 0.0
                gain, cost, bundle = self._best_bundle(self.pool.message_order[~entry], next_priority)
            elif chosen.can_take(entry):
                gain, cost = chosen.gain(entry), chosen.cost(entry)
            else:
                gain = cost = 0.0
            if gain > LEAST_GAIN:
                priority = -gain / cost
                if priority > old_priority and len(heap) > 1 and priority > min(heap[1:3])[0]:
                    heapq.heapreplace(heap, (priority, entry))
                    continue
                if entry >= 0 and chosen.used_tokens + cost > tokens:
                    skipped.append((priority, entry))
                elif entry >= 0:
                    chosen.take_with_names(entry, cost)
            heapq.heappop(heap)
            if entry < 0:
                self._open_message(self.pool.message_order[~entry], bundle, tokens)
        for item in skipped:
            heapq.heappush(heap, item)

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
        best, chosen = self._lines_by_bound(message), self.chosen
        while best:
            old_priority, position = best[0]
            if old_priority > next_priority:
                return -old_priority, 1.0, [position]
            gain, cost = chosen.gain(position) if chosen.can_take(position) else 0.0, chosen.cost(position)
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
            opening, lines, bounds = self.chosen.opening_tokens(message), self.lines, self.bounds
            sizes = [(position, lines[position].size) for position in self.candidates[message]]
            lines_by_bound = [(-bounds[position] * size / (opening + size), position) for position, size in sizes]
            heapq.heapify(lines_by_bound)
            self.best_lines[message] = lines_by_bound
        return lines_by_bound

    def _best_values(self, message: int) -> _Bundle:
        """Return the values of a result with records that are together worth most per token."""
        chosen, bounds = self.chosen, self.bounds
        number_chosen, found_before = self.bundles.get(message, (-1, _NO_BUNDLE))
        if number_chosen == len(chosen.positions):
            return found_before
        positions = self.strongest.get(message)
        if positions is None:
            positions = sorted(self.candidates[message], key=bounds.__getitem__, reverse=True)
            self.strongest[message] = positions = positions[:MOST_BUNDLE_LINES]
        call = chosen.call_to_show(message)
        worth, tokens = chosen.gain(call) if call >= 0 else 0.0, chosen.opening_tokens(message)
        seen = set(chosen.spellings_of(self.lines[call].words)) if call >= 0 else set()
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
                cost += 1 + sum([self.lines[naming].size for naming in chosen.naming_lines_of(position)])
            if best_values and gain * tokens <= worth * cost:
                break
            worth, tokens = worth + gain, tokens + cost
            best_values.append(position)
            if number < len(gains):  # most bundles have one line, and no other asks what it has
                for word in line.words:  # equal words may be different objects
                    seen.update(spellings[word.key])
            groups.add(line.group)
        self.bundles[message] = len(chosen.positions), (worth, tokens, best_values)
        return worth, tokens, best_values

    def _gains(self, positions: Iterable[int], worth: float, tokens: float, seen: set[Word]) -> list[tuple[float, int]]:
        """Return lines behind their priority, the best first, without lines that can only lower the worth per token of the bundle.

        ``positions`` have those with the highest bounds first. ``worth``, ``tokens`` and the words ``seen`` are those of the message's opening.
        """
        gains: list[tuple[float, int]] = []
        chosen = self.chosen
        for position in positions:
            if gains and self.bounds[position] * tokens <= worth:
                break
            is_new = chosen.can_take(position) and not seen.issuperset(self.lines[position].words)
            if is_new and (gain := chosen.gain(position)) > LEAST_GAIN:
                size = self.lines[position].size
                gains.append((-gain / size, position))
                if worth * size <= gain * tokens:
                    worth, tokens = worth + gain, tokens + size + 1
        gains.sort()
        return gains

    def _open_message(self, message: int, bundle: Iterable[int], tokens: float) -> None:
        """Take the lines of a bundle that fit. From now on the other lines of the message can be taken alone."""
        chosen = self.chosen
        for position in bundle:
            cost = chosen.cost(position)
            fits = position not in chosen.taken and chosen.used_tokens + cost <= tokens
            if fits and chosen.gain(position) > LEAST_GAIN:
                chosen.take_with_names(position, cost)
        best = self.best_lines.pop(message, None)
        # What left the heap of the message is worth nothing any more.
        left = self.candidates[message] if best is None else [position for _, position in best]
        for position in left:
            if position not in chosen.taken:
                heapq.heappush(self.heap, (-self.bounds[position], position))

    def _bound_of_call(self, message: int) -> float:
        """Return the highest possible worth per token of the call before the first line of a result."""
        call = self.chosen.call_to_show(message)
        return self.chosen.gain(call) / self.chosen.opening_tokens(message) if call >= 0 else 0.0


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
