"""The standing wishes among the lines of a folded part, and the sentences that took wishes back."""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain
from math import fsum
from typing import Final, NamedTuple, Protocol

from gateway.context.choose import weights, wishes
from gateway.context.choose.line import SAID, Line, MessageLines
from gateway.context.choose.tally import Tally
from gateway.context.choose.words import NAME, Word, Words, lexicon_of, stem

OPENED: Final = 12
"""Tokens added to a line's size in comparisons: the beginning of its message, so that short lines get no advantage."""
FEW_WORDS: Final = 3
"""Words. A shorter line can seldom be distinguished by its words."""
REPLY: Final = 160
"""Characters of a reply that are searched for assent."""
MOST_CHANGES: Final = 200
"""Newest sentences of change that are compared with wishes. Chosen to bound the time."""


class FoldedLines(Protocol):
    """What the wishes of a folded part are found in: see `gateway.context.choose.worth.LinePool`."""

    readings: dict[int, MessageLines]
    lines: tuple[Line, ...]
    message_of: list[int]
    places: dict[int, range]
    tally: Tally

    @property
    def order(self) -> Sequence[int]: ...
    @property
    def rank(self) -> Mapping[int, int]: ...
    @property
    def has_many_calls(self) -> bool: ...
    @property
    def rarity(self) -> Mapping[str, float]: ...
    @property
    def gone(self) -> frozenset[int]: ...


class StandingWishes(NamedTuple):
    """The user's standing wishes by position. It does not hold the lines, which hold it: a circle would be freed late."""

    ranked: list[int]
    """The surest first; a revoked wish comes behind its revocation."""
    sure: list[int]
    """Those of them that are hardly anything else, in the same order."""
    revocations: dict[int, int]
    """By wish the sentence that may have taken it back: one without the other would mislead."""


def standing_wishes(pool: FoldedLines) -> StandingWishes:
    """Find the standing wishes of a folded part."""
    finder = _Finder(pool)
    found = finder.wished()
    revocations = {place: later for _, place in found if (later := finder.revoked_by(place))}

    def ranked(least: float) -> list[int]:
        places = [place for points, place in found if points >= least]
        pairs = [(revocations[place], place) if place in revocations else (place,) for place in places]
        return list(dict.fromkeys(chain.from_iterable(pairs)))

    return StandingWishes(ranked(finder.kind.least), ranked(finder.kind.sure), revocations)


class _Kind(NamedTuple):
    """How wishes are told in one kind of conversation."""

    cues: float
    """Factor for what closed classes of words tell."""
    learned: float
    """Points for each that its words tell."""
    least: float
    """Points of a wish, at least."""
    sure: float
    """Points of one that is hardly anything else."""


def _kind_of(pool: FoldedLines) -> _Kind:
    """Errands have the form of wishes: where tools are called, words tell more than form does."""
    if pool.has_many_calls:
        return _Kind(
            weights.CUES_WITH_CALLS,
            weights.LEARNED_WITH_CALLS,
            weights.LEAST_WISH_POINTS_WITH_CALLS,
            weights.SURE_WISH_POINTS_WITH_CALLS,
        )
    return _Kind(1.0, weights.LEARNED, weights.LEAST_WISH_POINTS, weights.LEAST_WISH_POINTS)


class _Finder:
    """One search for wishes."""

    def __init__(self, pool: FoldedLines) -> None:
        self._pool = pool
        self.kind = _kind_of(pool)
        self._asked = [reading for reading in pool.readings.values() if reading.role == "user"]
        self._words = lexicon_of(None)

    def wished(self) -> list[tuple[float, int]]:
        """Return the points and the positions of the user's standing wishes, the surest first."""
        replies = [self._reply(reading.message) for reading in self._asked]
        assents = [wishes.assents(reply.text) for reply in replies]
        # If the assistant agrees to everything, its assent says nothing.
        assent = weights.ASSENT_IN_REPLY * (1 - sum(assents) / max(len(assents), 1))
        gone = self._pool.gone
        said = [
            (position, line, reply, assent * assented)
            for reading, reply, assented in zip(self._asked, replies, assents, strict=True)
            for position, line in zip(self._pool.places[reading.message], reading.lines, strict=True)
            if line.sort is SAID and line.share == 1.0 and position not in gone
        ]
        # Errands have their form in common; in a chat hardly any class of words is so common, and those that are tell most.
        tells = wishes.tells([line.heard.signs for _, line, _, _ in said] if self._pool.has_many_calls else [])
        scored: list[tuple[float, int, float]] = []
        for position, line, reply, agreed in said:
            points = agreed + self._points(position, line, tells)
            # The cheap terms first: most sentences are no wish, whatever the others say.
            if points + _MOST_OF_REPLY < self.kind.least:
                continue
            points += reply.bearing(line)
            if points >= self.kind.least:
                points += weights.TOOL_WORDS * self._of_task(line)
            if points >= self.kind.least:
                # The least wish of any kind of conversation counts the same.
                above = points - self.kind.least + weights.LEAST_WISH_POINTS
                scored.append((-above / (line.size + OPENED) ** weights.WISH_SIZE_POWER, position, points))
        return [(points, position) for _, position, points in sorted(scored)]

    def _points(self, position: int, line: Line, tells: Sequence[float]) -> float:
        """Return how much a line is a wish, whatever its reply says, and without the words of tools."""
        heard, words = line.heard, line.words
        unusual = fsum(map(self._rare.__getitem__, words)) / (len(words) + FEW_WORDS)
        points = self.kind.cues * wishes.weighed(heard, tells) + self.kind.learned * heard.wish
        points += weights.REVOCATION_WEIGHT * heard.revokes + (
            weights.WISH_BINDING * line.binding + weights.RARE_WORDS * unusual
        )
        alone = len(self._pool.places[self._pool.message_of[position]]) == 1
        return points + weights.WHOLE_MESSAGE if alone else points

    @cached_property
    def _rare(self) -> dict[Word, float]:
        """Return the rarity of the user's words; 1 for one that is not ordinary."""
        rarity = self._pool.rarity
        return {word: rarity.get(word.key, 1.0) for word in self._pool.tally.counts.asked}

    def _of_task(self, line: Line) -> float:
        """Return which share of a line's telling words tools were called with or returned: what the conversation does is no wish."""
        telling = [word.key for word in line.words if not word.ordinary or wishes.telling(word.key)]
        return sum(map(self._of_tools, telling)) / (len(telling) + 1)

    def _of_tools(self, key: str) -> bool:
        """Return whether a word, in any spelling, is one that tools were called with or returned."""
        counts = self._pool.tally.counts
        return any([word in counts.called or word in counts.returned for word in self._pool.tally.spellings[key]])

    def _reply(self, message: int) -> "_Reply":
        """Return the beginning of the assistant's reply to a message."""
        rank = self._pool.rank[message] + 1
        after = self._pool.readings[self._pool.order[rank]] if rank < len(self._pool.order) else None
        answers = after is not None and after.role == "assistant"
        return _Reply(after.lines[0].text[:REPLY] if after is not None and answers else "", self._words)

    def revoked_by(self, position: int) -> int:
        """Return the newest later sentence of the user about a change that shares its words, or 0."""
        shared: dict[int, list[float]] = {}
        for word in self._pool.lines[position].words:
            for later in self._changes.get(word.key, ()):
                if self._pool.message_of[later] > self._pool.message_of[position]:
                    shared.setdefault(later, []).append(self._pool.rarity.get(word.key, 1.0))
        common, best = max([(fsum(values), later) for later, values in shared.items()], default=(0.0, 0))
        return best if common >= weights.LEAST_REVOKED_RARITY else 0

    @cached_property
    def _changes(self) -> dict[str, list[int]]:
        """Return by telling word the user's newest sentences about a change that have it, at most `MOST_CHANGES` of them."""
        found = [
            (position, line.words)
            for reading in self._asked
            for position, line in zip(self._pool.places[reading.message], reading.lines, strict=True)
            if line.sort is SAID
            and line.share == 1.0
            and line.heard.changes
            and wishes.strength(line.heard) >= weights.LEAST_REVOCATION_STRENGTH
        ]
        having: dict[str, list[int]] = {}
        for position, said in found[-MOST_CHANGES:]:
            for word in said:
                if wishes.telling(word.key):
                    having.setdefault(word.key, []).append(position)
        return having


class _Reply:
    """The beginning of the assistant's reply to a message, empty without one."""

    def __init__(self, text: str, words: Words) -> None:
        self.text = text
        self._words = words

    def bearing(self, line: Line) -> float:
        """Return the points of a line to which it replies by a name, or by its words."""
        if self.addresses(line):
            return weights.NAME_IN_REPLY
        return weights.WORD_IN_REPLY if self.takes_up(line) else 0.0

    def takes_up(self, line: Line) -> bool:
        """Return whether it begins with a short sentence that has a telling word of a line: "Ninety-five it is."."""
        taken = self._taken
        return bool(taken) and any([word.key in taken for word in line.words])

    def addresses(self, line: Line) -> bool:
        """Return whether a line gives a name with which it addresses the user: set apart by a comma or an end."""
        names = [word.key for word in line.words if word.kind is NAME]
        return bool(names) and not self._names.isdisjoint(names)

    @cached_property
    def _taken(self) -> frozenset[str]:
        first = _FIRST.match(self.text)
        said = self._words(first[0]) if first is not None else ()
        return frozenset([word.key for word in said if wishes.telling(word.key)])

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset([name for found in _VOCATIVE.findall(self.text[:80]) if len(name := stem(found)) > 1])


_MOST_OF_REPLY: Final = max(weights.NAME_IN_REPLY, weights.WORD_IN_REPLY)
"""Points that `_Reply.bearing` returns at most."""
_FIRST: Final = re.compile(r"[^.!?:。！？：\n]{1,40}(?:[.:。：]|$)")
_VOCATIVE: Final = re.compile(
    r"(?:^|[,!] |\b(?:Hello|Hi|Thanks|Hallo|Danke|Gern|Bonjour|Merci|Hola|Gracias|Ciao|Grazie) )([^\W\d_]+)(?=[,.!:])"
)
