"""The search for one question: which lines of the folded part are quoted behind it."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Final, NamedTuple

from gateway.context.choose import embedding, lines, lookup, recall, speakers
from gateway.context.choose.line import MessageLines
from gateway.context.choose.weights import MANY, WISHES_IN_QUOTES
from gateway.context.choose.worth import LinePool
from gateway.context.cut.layout import Layout, Source
from gateway.context.write import fill
from gateway.context.write.aside import is_far
from gateway.context.write.pools import pool_of
from gateway.context.write.readings import READ, earlier_of, first_read, reading_of
from gateway.wire.message import RESULT_ROLES, Message, text_of

AROUND: Final = 4
"""Tokens that may come in where quotes and a message meet."""
OLD_CHARACTERS: Final = 80_000
"""Characters of old messages that bear on a question and are read in full, the best first, however old they are."""


LineKey = tuple[int, str]
"""A line: its message and its text."""


class Quote(NamedTuple):
    """What is quoted behind one question."""

    text: str
    size: int
    """Tokens that it takes."""
    lines: frozenset[LineKey]


NO_QUOTE: Final = Quote("", 0, frozenset())


@dataclass(frozen=True, slots=True)
class Search:
    """The searches for the questions of one layout, in the lines of its folded part."""

    source: Source
    layout: Layout
    pool: LinePool
    taken: frozenset[int]
    """Positions of the lines in the note."""
    known: frozenset[str]
    """The words of pinned messages."""

    def find(self, query: str, most: int, quoted: frozenset[LineKey]) -> Quote:
        """Find the lines that bear on a question, in at most so many tokens, beyond the note and those ``quoted`` before."""
        key = (
            query,
            most,
            self.source.counter.text,
            self.layout.quoted.first,
            self.taken,
            quoted,
            by_meaning(self.source),
        )
        return self.pool.once(key, partial(self._find, query, most, quoted))

    def filled(self, query: str, most: int, quoted: frozenset[LineKey], standing: Mapping[int, Message]) -> Quote:
        """Find lines for the newest message, and fill the rest of its tokens with the calls and records that are worth most.

        Lines that were cut out of standing messages count like those of the folded part, and behind these any rest is filled:
        what they hold has not been read yet.
        """
        pool, shown = self._with_cut(standing)
        many = inf if is_far(self.layout) else MANY
        count, first = self.source.counter.text, self.layout.quoted.first
        key = ("filled", query, most, many, count, first, self.taken, quoted, hash(shown), by_meaning(self.source))
        return pool.once(key, partial(self._fill, pool, query, most, many, quoted, shown))

    def _find(self, query: str, most: int, quoted: frozenset[LineKey]) -> Quote:
        searched = _searched(self.source, self.layout, self.pool, query, self.known)
        if searched is self.pool:
            hide = partial(_hidden, self.layout, searched, self.taken)
            hidden = searched.once((self.layout.quoted.first, self.taken), hide)
        else:
            hidden = _hidden(self.layout, searched, places_of(searched, self._noted()))
        hidden |= places_of(searched, quoted)
        count = self.source.counter.text
        near = nearness_of(self.source)
        found = recall.excerpts(searched, query, most, count, hidden, self.known, nearness=near)
        return self._quote(searched, found)

    def _fill(  # noqa: PLR0917  # a search has that many sides
        self, pool: LinePool, query: str, most: int, many: float, quoted: frozenset[LineKey], shown: frozenset[LineKey]
    ) -> Quote:
        count = self.source.counter.text
        searched = _searched(self.source, self.layout, pool, query, self.known) if self.layout.gone else pool
        noted = places_of(searched, self._noted())
        cut = frozenset(index for index in searched.places if index not in self.pool.places)
        hidden = _hidden(self.layout, searched, noted, cut) | places_of(searched, quoted | shown)
        room = most - int(WISHES_IN_QUOTES * most)
        near = nearness_of(self.source)
        found = recall.excerpts(searched, query, room, count, hidden, self.known, many=many, nearness=near)
        found = fill.with_wishes(searched, found, most, count, hidden, noted)
        known = self.known.union(word.key for place in {*found, *noted} for word in searched.lines[place].words)
        found = fill.with_facts(searched, found, most, count, hidden, known)
        if cut:
            found = fill.with_newest(searched, found, most, count, hidden)
        return self._quote(searched, found)

    def _with_cut(self, standing: Mapping[int, Message]) -> tuple[LinePool, frozenset[LineKey]]:
        """Return the lines of the folded part and of cut standing messages, and the latter's lines that still stand."""
        source = self.source
        cut = [
            index
            for index, message in standing.items()
            if message is not source.messages[index]
            and message.get("role") in RESULT_ROLES
            and index < self.layout.current[0]
        ]
        if not cut or not source.thorough:
            return self.pool, frozenset()
        shown = frozenset((index, line.text) for index in cut for line in lines.read(standing[index], source.memory))
        return pool_of(source, sorted({*self.layout.gone, *cut}), frozenset(cut)), shown

    def _noted(self) -> frozenset[LineKey]:
        return keys_of(self.pool, self.taken)

    def _quote(self, pool: LinePool, found: Collection[int]) -> Quote:
        if not found:
            return NO_QUOTE
        text = recall.render(pool, sorted(found))
        quoted = frozenset((pool.message_of[place], pool.lines[place].text) for place in found)
        return Quote(text, self.source.counter.text(text) + AROUND, quoted)


def by_meaning(source: Source) -> bool:
    """Return whether passages are also searched by meaning: the operator wants it, and the vectors are there."""
    return source.policy.semantic and embedding.load() is not None


def nearness_of(source: Source) -> recall.Nearness | None:
    """Return how near texts are to a question in meaning, as a function; None where that is not to count."""
    vectors = embedding.load() if source.policy.semantic else None
    return partial(vectors.nearness, memory=source.memory) if vectors is not None else None


def keys_of(pool: LinePool, places: Iterable[int]) -> frozenset[LineKey]:
    """The lines at these positions of a pool."""
    return frozenset((pool.message_of[place], pool.lines[place].text) for place in places)


def places_of(pool: LinePool, quoted: Iterable[LineKey]) -> frozenset[int]:
    """The positions of lines in a pool, of those that it has."""
    sought = frozenset(quoted)
    messages = {message for message, _ in sought}
    return frozenset(
        place
        for message in messages
        for place in pool.places.get(message, ())
        if (message, pool.lines[place].text) in sought
    )


def _hidden(layout: Layout, pool: LinePool, taken: frozenset[int], cut: frozenset[int] = frozenset()) -> frozenset[int]:
    """The lines that are not quoted: those in the digest, and those that still stood when the question was asked.

    Messages that stand ``cut`` may be quoted.
    """
    early = {index for unit in layout.units[: layout.quoted.first] for index in unit.indices} | cut | set(layout.aside)
    late = [place for index, places in pool.places.items() if index >= 0 and index not in early for place in places]
    # A short message is quoted whole or not at all, even where a sentence of it stands in the digest.
    taken_of = {pool.message_of[place] for place in taken} & pool.brief
    parts = {index for index in taken_of if not taken.issuperset(pool.places[index])}
    return frozenset(place for place in taken if pool.message_of[place] not in parts).union(late)


def _searched(source: Source, layout: Layout, pool: LinePool, query: str, known: Collection[str]) -> LinePool:
    """The pool to search: where its old part is only skimmed, a narrower one in which the messages that matter are read in full."""
    folded = layout.gone
    newer = first_read(source.messages, folded, READ)
    if not newer:
        return pool
    texts = [text_of(source.messages[index]) for index in folded[:newer]]
    roles = [str(source.messages[index].get("role")) for index in folded[:newer]]
    left = OLD_CHARACTERS
    old: dict[int, MessageLines] = {}
    for number in lookup.bearing(
        texts,
        roles,
        query,
        known,
        speakers.likely(query, speakers.dialogue_of(zip(reversed(roles), reversed(texts), strict=True))),
    ):
        left -= len(texts[number])
        if left <= 0:
            break
        old[number] = reading_of(source, folded[number], lines.read)
    skimmed = set(folded[:newer])
    newest = [reading for index, reading in pool.readings.items() if index >= 0 and index not in skimmed]
    readings = sorted([*old.values(), *newest], key=lambda reading: reading.message)
    return LinePool([*earlier_of(source.earlier, source.memory), *readings], pool.first, pool.tally)
