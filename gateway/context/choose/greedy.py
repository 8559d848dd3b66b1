"""Take lines by their worth: the next line is the one with the most new facts per token, until the room is full."""

import heapq
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from gateway.context.choose.line import RECORD, SAID, Line
from gateway.context.choose.records import names_record
from gateway.context.choose.words import IDENT, Word
from gateway.context.choose.worth import LinePool

OPENING_TOKENS: Final = 3
"""Approximate tokens of the beginning of another message's line."""
BETWEEN: Final = 1.5
"""Tokens counted for the mark between two lines of an answer. It has one; lines that need none come before."""
SOME: Final = 0.5
"""Worth of any line that bears on a question, even if its facts are known."""
NOTHING: Final = 1e-9
"""Worth of a line. Smaller gains are rounding errors."""
FIRST_OF_RECORD: Final = 12
"""Lines of a record among which its name is sought: it stands early."""
MOST_NAMES: Final = 2
"""Names of one record: a first and a last name."""
LONGEST_PROPERTY: Final = 20
"""Approximate tokens of a property in a list; a longer line is a sentence and says what it is about."""
MOST_SKIPPED: Final = 24
"""Lines in a row that are too long for the remaining room, after which the search ends."""
MOST_TOGETHER: Final = 24
"""Lines of a message that are weighed together before it is opened. Chosen: more lines seldom make the first cheaper."""

_Together = tuple[float, float, list[int]]
_NOTHING_FOUND: Final[_Together] = (0.0, 1.0, [])


class Greedy:
    """Lazy greedy choice: take the best line, or the best lines of a message that is not open yet; the facts they make
    known no longer count for the others."""

    def __init__(self, pool: LinePool, known: Collection[str], relevance: Mapping[int, float] | None) -> None:
        self.pool = pool
        self.lines = pool.lines
        self.relevance = relevance
        self.said, self.data = map(dict, pool.values)
        self.have: set[Word] = set()
        self._know([word for key in known for word in pool.spellings.get(key, ())])
        self.open: set[tuple[int, int]] = set()
        self.messages: set[int] = set()
        self.chosen: list[int] = []
        self.together: list[tuple[int, ...]] = []
        """The chosen lines in this order, each behind those that name its record."""
        self.taken: set[int] = set()
        self.owners: dict[tuple[int, int], tuple[int, ...]] = {}
        self.headings: dict[int, int] = {}
        """By position, the line above it that says what it is about; -1 where it needs none."""
        self.used = 0.0
        self.able = _able(pool, relevance)
        """By message, the lines that may be taken."""
        self.bound = pool.most if relevance is None else _most_relevant(pool, relevance)
        """By position. The worth of a line alone is an upper bound: it is computed again when its turn comes."""
        self.strong: dict[int, list[int]] = {}
        """By message, its lines that may be taken together."""
        self.found: dict[int, tuple[int, _Together]] = {}
        """By message, the lines worth most together, and how many lines were chosen when they were found."""
        self.heap = [
            (-max(self._bound_of_call(message), *map(self.bound.__getitem__, places)), ~rank)
            for rank, (message, places) in enumerate(self.able.items())
            if places
        ]
        """Lines of open messages by position, and all lines of another by the inverted rank of their message."""
        heapq.heapify(self.heap)

    def grow(self, tokens: float) -> None:
        """Choose lines up to about so many tokens."""
        heap = self.heap
        skipped: list[tuple[float, int]] = []
        while heap and self.used < tokens and len(skipped) <= MOST_SKIPPED:
            before, entry = heap[0]
            together: list[int] = []
            if entry < 0:
                gain, cost, together = self._together(self.pool.order[~entry])
            elif entry in self.taken or self._misleads(entry):
                gain = cost = 0.0
            else:
                gain, cost = self._gain(entry), self._cost(entry)
            if gain > NOTHING:
                now = -gain / cost
                if now > before and len(heap) > 1 and now > min(heap[1:3])[0]:
                    heapq.heapreplace(heap, (now, entry))
                    continue
                if entry >= 0 and self.used + cost > tokens:
                    skipped.append((now, entry))
                elif entry >= 0:
                    self._take_named(entry, cost)
            heapq.heappop(heap)
            if entry < 0:
                self._open(self.pool.order[~entry], together, tokens)
        for item in skipped:
            heapq.heappush(heap, item)

    def _gain(self, position: int) -> float:
        gain = self.pool.worth(position, self.said, self.data)
        return gain if self.relevance is None else (gain + SOME) * self.relevance[position]

    def _together(self, message: int) -> _Together:
        """Return the best lines of a message that is not open yet, which share its opening: their worth, their tokens, and
        they themselves."""
        at, found_before = self.found.get(message, (-1, _NOTHING_FOUND))
        if at == len(self.chosen):
            return found_before
        bound = self.bound
        places = self.strong.get(message)
        if places is None:
            places = sorted(self.able[message], key=bound.__getitem__, reverse=True)
            # Only values of records are listed behind each other: a row or a sentence has a line of its own.
            places = places[: MOST_TOGETHER if self.lines[places[0]].sort is RECORD else 1]
            self.strong[message] = places
        call = self._unshown_call(message)
        worth, tokens = self._gain(call) if call >= 0 else 0.0, self._opening(message)
        seen = set(self._spelled(self.lines[call].words)) if call >= 0 else set()
        gains = list(self._gains(places, 0.0, tokens, seen))
        groups: set[int] = set()
        found: list[int] = []
        for each, place in sorted(gains, key=lambda item: (-item[0], item[1])):
            line = self.lines[place]
            if seen.issuperset(line.words):
                continue
            gain, cost = each * line.size, line.size
            if line.group not in groups:
                cost += 1 + sum([self.lines[owner].size for owner in self._owners(place)])
            if found and gain * tokens <= worth * cost:
                break
            worth, tokens = worth + gain, tokens + cost
            found.append(place)
            seen.update(line.words)
            groups.add(line.group)
        self.found[message] = len(self.chosen), (worth, tokens, found)
        return worth, tokens, found

    def _gains(
        self, places: Iterable[int], worth: float, tokens: float, seen: set[Word]
    ) -> Iterator[tuple[float, int]]:
        """Yield the worth per token of lines, the highest bound first, up to those that could only lower what those before
        them are worth together; ``worth``, ``tokens`` and the words ``seen`` are those of their opening."""
        some = False
        for place in places:
            if some and self.bound[place] * tokens <= worth:
                return
            free = (
                place not in self.taken and not self._misleads(place) and not seen.issuperset(self.lines[place].words)
            )
            if free and (gain := self._gain(place)) > NOTHING:
                size = self.lines[place].size
                yield gain / size, place
                some = True
                if worth * size <= gain * tokens:
                    worth, tokens = worth + gain, tokens + size + 1

    def _open(self, message: int, together: Iterable[int], tokens: float) -> None:
        """Take lines of a message that are worth most together, as far as they fit; its others can be taken now."""
        for place in together:
            cost = self._cost(place)
            if place not in self.taken and self.used + cost <= tokens and self._gain(place) > NOTHING:
                self._take_named(place, cost)
        for place in self.able[message]:
            if place not in self.taken:
                heapq.heappush(self.heap, (-self.bound[place], place))

    def take(self, positions: Sequence[int], tokens: float) -> None:
        """Take wishes in the given order, as many as fit into so many tokens; a revoked one only behind its revocation."""
        for position in positions:
            cost = self._cost(position)
            if self.used + cost <= tokens and position not in self.taken and not self._misleads(position):
                self._take(position, cost)
                self.together.append((position,))

    def _misleads(self, position: int) -> bool:
        """Return whether a line is a wish that has been taken back by a sentence that is not chosen."""
        if self.relevance is not None:
            return False
        revocation = self.pool.wishes.revocations.get(position)
        return revocation is not None and revocation not in self.taken

    def _take_named(self, position: int, cost: float) -> None:
        """Take a line with the lines that name its record; ``cost`` covers both."""
        owners = self._owners(position)
        for owner in owners:
            self._take(owner, 0.0)
        self._take(position, cost)
        self.together.append((*owners, position))

    def _take(self, position: int, cost: float) -> None:
        line, message = self.lines[position], self.pool.message_of[position]
        self.used += cost
        self.chosen.append(position)
        self.taken.add(position)
        if message not in self.messages:
            self.messages.add(message)
            self._show_call(message)
        self.open.add((message, line.group))
        self._know_all(line.words)

    def _unshown_call(self, message: int) -> int:
        """Return the position of the call that would stand before the first line of a result; -1 where it is known."""
        place = self.pool.calls.get(message, -1)
        return place if place not in self.taken and self.relevance is None else -1

    def _bound_of_call(self, message: int) -> float:
        """Return the highest possible worth per token of what stands before the first line of a result."""
        call = self._unshown_call(message)
        return self._gain(call) / self._opening(message) if call >= 0 else 0.0

    def _show_call(self, message: int) -> None:
        """The call of a result stands before its first line: it need not be chosen, and its facts are known."""
        place = self.pool.calls.get(message, -1)
        if place >= 0 and place not in self.taken:
            self.taken.add(place)
            self._know_all(self.lines[place].words)

    def _know_all(self, words: Iterable[Word]) -> None:
        """The facts of a line are known, in any spelling."""
        self._know(self._spelled([word for word in words if word not in self.have]))

    def _spelled(self, words: Iterable[Word]) -> list[Word]:
        return [word for new in words for word in self.pool.spellings[new.key]]

    def _know(self, words: Iterable[Word]) -> None:
        """Known facts are worth nothing any more."""
        have, said, data = self.have, self.said, self.data
        for word in words:
            have.add(word)
            said[word] = data[word] = 0.0

    def _cost(self, position: int) -> float:
        line, message = self.lines[position], self.pool.message_of[position]
        if message not in self.messages:
            # A record directly behind its call does not name it again.
            named = line.sort is RECORD and message - 1 in self.messages
            opening = 1 + (OPENING_TOKENS if named else self._opening(message))
        elif (message, line.group) in self.open:
            if line.sort is not SAID or self.pool.readings[message].role == "user":
                return line.size
            opening = BETWEEN
        else:
            opening = 2 if line.label else 1
        return opening + line.size + sum([self.lines[owner].size for owner in self._owners(position)])

    def _opening(self, message: int) -> float:
        """Return the tokens before the first line of a message: its speaker or its tool."""
        return 0.0 if message in self.messages else OPENING_TOKENS + len(self.pool.readings[message].tool) / 4

    def _owners(self, position: int) -> tuple[int, ...]:
        """Return the lines that name the record of a line and are not chosen yet: a value alone says nothing."""
        line, message = self.lines[position], self.pool.message_of[position]
        if line.sort is SAID:
            heading = self._heading(message, position)
            return () if heading < 0 or heading in self.taken else (heading,)
        record = (message, line.group)
        # An identifier stands for itself; a price or a date does not.
        if line.sort is not RECORD or record in self.open or any([word.kind is IDENT for word in line.words]):
            return ()
        found = self.owners.get(record)
        if found is None:
            found = self.owners[record] = self._naming(message, position)
        return () if position in found else found

    def _heading(self, message: int, position: int) -> int:
        """Return the line above a property in a list of an answer (*Departure: 07:00*) that says of what; -1 for any other
        line."""
        found = self.headings.get(position)
        if found is None:
            found = self.headings[position] = self._heading_above(message, position)
        return found

    def _heading_above(self, message: int, position: int) -> int:
        lines = self.lines
        if self.pool.readings[message].role == "user" or not _property(lines[position]):
            return -1
        above = range(position - 1, max(position - FIRST_OF_RECORD, self.pool.places[message].start) - 1, -1)
        return next((place for place in above if lines[place].sort is SAID and not _property(lines[place])), -1)

    def _naming(self, message: int, position: int) -> tuple[int, ...]:
        """Return the first lines that name the record at a position: an identifier, or else names."""
        lines, group, places = self.lines, self.lines[position].group, self.pool.places[message]
        start = position
        while start > places.start and lines[start - 1].group == group:
            start -= 1
        names: list[int] = []
        for place in range(start, min(start + FIRST_OF_RECORD, places.stop)):
            line = lines[place]
            if line.group != group:
                break
            key, keyed, value = line.text.partition("=")
            if len(line.words) == 1 and line.words[0].kind is IDENT and (not keyed or names_record(key)):
                # The call that a result belongs to may have named the record.
                return () if (value or key) in self.pool.readings[message].tool else (place,)
            if keyed and key.endswith("name"):
                names.append(place)
        return tuple(names[:MOST_NAMES])


_PROPERTY: Final = re.compile(r"[^\W\d][^:.!?]{0,30}: \S")
"""A row of a list that names a property and its value."""


def _property(line: Line) -> bool:
    """Return whether a line of an answer is a property that does not say of what."""
    if line.size > LONGEST_PROPERTY or not _PROPERTY.match(line.text):
        return False
    return not any([word.kind is IDENT for word in line.words])


def _able(pool: LinePool, relevance: Mapping[int, float] | None) -> dict[int, list[int]]:
    """Return by message the lines that may be taken: with relevance only those that have some, else those that still hold."""
    if relevance is None:
        outdated = pool.outdated
        return {
            message: [place for place in places if place not in outdated] for message, places in pool.places.items()
        }
    replaced = pool.replaced
    return {
        message: [place for place in places if place in relevance and place not in replaced]
        for message, places in pool.places.items()
    }


def _most_relevant(pool: LinePool, relevance: Mapping[int, float]) -> list[float]:
    return [
        (most + SOME / line.size) * relevance.get(place, 0.0)
        for place, (most, line) in enumerate(zip(pool.most, pool.lines, strict=True))
    ]
