"""The search for one question: which lines of the left-out messages are quoted for it."""

from collections.abc import Collection, Mapping
from functools import partial
from math import inf
from typing import Final, NamedTuple

import msgspec

from gateway.context import frames
from gateway.context.choose import embedding, recall
from gateway.context.choose.relevance import Nearness, relevance
from gateway.context.cut.layout import Layout
from gateway.context.cut.source import Source
from gateway.context.read import lines
from gateway.context.read.line import MessageLines
from gateway.context.weigh.line_pool import LinePool
from gateway.context.weights import WISHES_SHARE_OF_QUOTES
from gateway.context.write.fill import QuotesToFill
from gateway.context.write.line_keys import LineKey, keys_of, line_keys, positions_of
from gateway.context.write.pools import pool_of
from gateway.context.write.readings import (
    FULLY_READ_CHARACTERS,
    ShownCalls,
    messages_by_relevance,
    number_skimmed,
    reading_of,
    readings_of_notes,
    words_of_pinned,
)
from gateway.wire.message import RESULT_ROLES, Message, text_of

OLD_CHARACTERS: Final = 80_000
"""Characters of old messages that are read in full for a question: those of the most relevant messages, of any age."""


class Query(NamedTuple):
    """A question to search for."""

    text: str
    most_tokens: int
    """Limit of its quotes, in tokens."""
    of_long_history: bool = False
    """Whether the folded part is many times the room. Then any number of lines with lower scores is quoted."""
    fact_tokens: float = inf
    """Most tokens of calls and records that fill the rest."""


class Quotes(NamedTuple):
    """The quotes for one question."""

    text: str
    tokens: int
    lines: frozenset[LineKey]


NO_QUOTES: Final = Quotes("", 0, frozenset())


class Search(msgspec.Struct, frozen=True):
    """The searches for the question of one layout, in the lines of its left-out messages."""

    source: Source
    layout: Layout
    pool: LinePool
    in_note: frozenset[int]
    """Positions in the pool of the note's lines."""

    def find(self, query: Query) -> Quotes:
        """Return quotes with the lines that are relevant to a question, without those in the note."""
        return self.pool.choices.get_or_make(("found", query, *self._key()), partial(self._find, query))

    def find_and_fill(self, query: Query, kept: Mapping[int, Message]) -> Quotes:
        """Return quotes with the lines that are relevant to the newest message, and fill the rest of its tokens.

        The rest is filled with wishes, then with less relevant lines if the folded part has many calls, then with calls and records. For an agent
        that works on its own, the other parts of the found pages and files come first. Lines that were cut out of kept messages may be
        quoted too. They are added last, because the model has not read them yet.
        """
        pool, still_kept = self._with_shortened(kept)
        key = ("filled", query, *self._key(), hash(still_kept))
        return pool.choices.get_or_make(key, partial(self._find_and_fill, pool, query, still_kept))

    def _key(self) -> tuple[object, ...]:
        """Return everything but the query and the pool on which found quotes depend."""
        layout, source = self.layout, self.source
        first = layout.cut_at_question.first_kept
        return source.counter.text, first, layout.set_aside, self.in_note, by_meaning(source)

    def _find(self, query: Query) -> Quotes:
        """Do the work of `find`."""
        pinned_words, layout = words_of_pinned(self.source), self.layout
        pool = _pool_to_search(self.source, layout, self.pool, query.text, pinned_words)
        in_note = self._note_in(pool)
        key = ("hidden", layout.cut_at_question.first_kept, layout.set_aside, in_note)
        hidden = pool.choices.get_or_make(key, partial(_hidden_lines, layout, pool, in_note))
        scores = relevance(pool, query.text, pinned_words, nearness_of(self.source))
        quoted = recall.choose(pool, scores, query.most_tokens, self.source.counter.text, hidden)
        return self._quotes(pool, quoted)

    def _find_and_fill(self, pool: LinePool, query: Query, still_kept: frozenset[LineKey]) -> Quotes:
        """Do the work of `find_and_fill`. ``pool`` has the lines of left-out and of shortened messages, ``still_kept`` those that the shortened
        messages still have."""
        pinned_words, count = words_of_pinned(self.source), self.source.counter.text
        pool = _pool_to_search(self.source, self.layout, pool, query.text, pinned_words)
        in_note = self._note_in(pool)
        shortened = frozenset(index for index in pool.positions if index not in self.pool.positions)
        hidden = _hidden_lines(self.layout, pool, in_note, shortened)
        hidden |= positions_of(pool, still_kept)
        scores = relevance(pool, query.text, pinned_words, nearness_of(self.source))
        most = query.most_tokens
        for_matches = most - int(WISHES_SHARE_OF_QUOTES * most)
        reach = recall.Reach.FAR if query.of_long_history else recall.Reach.NEAR
        quoted = recall.choose(pool, scores, for_matches, count, hidden, reach=reach)
        fill = QuotesToFill(pool, most, count, hidden)
        quoted = fill.with_wishes(quoted, in_note)
        if pool.has_many_calls:
            quoted = fill.with_less_relevant(quoted, scores, only_talk=True)
        if pool.autonomous:
            quoted = fill.with_rest_of_messages(quoted, scores)
            quoted = fill.with_less_relevant(quoted, scores)
        shown = pinned_words.union(word.key for position in {*quoted, *in_note} for word in pool.lines[position].words)
        quoted = fill.with_facts(quoted, shown, query.fact_tokens)
        if shortened:
            quoted = fill.with_newest(quoted)
        return self._quotes(pool, quoted)

    def _with_shortened(self, kept: Mapping[int, Message]) -> tuple[LinePool, frozenset[LineKey]]:
        """Return the lines of left-out messages and of shortened tool results, and the lines of the latter that are still
        kept."""
        source = self.source
        shortened = [
            index
            for index, message in kept.items()
            if message is not source.messages[index]
            and message.get("role") in RESULT_ROLES
            and index < self.layout.question[0]
        ]
        if not shortened or not source.thorough:
            return self.pool, frozenset()
        still_kept = [key for index in shortened for key in keys_of(index, lines.read(kept[index], source.memory))]
        pool = pool_of(source, sorted({*self.layout.left_out, *shortened}), frozenset(shortened))
        return pool, frozenset(still_kept)

    def _note_in(self, pool: LinePool) -> frozenset[int]:
        """Return the positions of the note's lines in a pool."""
        return self.in_note if pool is self.pool else positions_of(pool, line_keys(self.pool, self.in_note))

    def _quotes(self, pool: LinePool, quoted: Collection[int]) -> Quotes:
        """Write the quotes with the lines at these positions."""
        if not quoted:
            return NO_QUOTES
        text = recall.render(pool, sorted(quoted))
        return Quotes(text, self.source.counter.text(text) + frames.JOINT_TOKENS, line_keys(pool, quoted))


def by_meaning(source: Source) -> bool:
    """Return whether passages are also searched by meaning: the operator wants it, and the vectors are installed."""
    return nearness_of(source) is not None


def nearness_of(source: Source) -> Nearness | None:
    """Return the function that tells how near texts are to a question in meaning; None without a search by meaning."""
    vectors = embedding.load() if source.policy.semantic else None
    return partial(vectors.nearness, memory=source.memory) if vectors is not None else None


def _hidden_lines(
    layout: Layout, pool: LinePool, in_note: frozenset[int], shortened: frozenset[int] = frozenset()
) -> frozenset[int]:
    """Return the lines that may not be quoted: those in the note, and those of messages that were kept when the question was
    asked. ``shortened`` messages may be quoted."""
    folded = {index for unit in layout.units[: layout.cut_at_question.first_kept] for index in unit.indices}
    may_quote = folded | shortened | set(layout.set_aside)
    kept = [
        position
        for index, positions in pool.positions.items()
        if index >= 0 and index not in may_quote
        for position in positions
    ]
    # A short message is quoted whole or not at all, even if the note has a sentence of it.
    noted_messages = {pool.message_of[position] for position in in_note} & pool.short_messages
    partly_noted = {index for index in noted_messages if not in_note.issuperset(pool.positions[index])}
    return frozenset(position for position in in_note if pool.message_of[position] not in partly_noted).union(kept)


def _pool_to_search(
    source: Source, layout: Layout, pool: LinePool, query: str, pinned_words: Collection[str]
) -> LinePool:
    """Return the pool to search: ``pool``, if all its messages are read in full. If its old part is only skimmed, return a pool that
    has the most relevant old messages read in full, and no other old ones."""
    folded = layout.left_out
    skimmed = number_skimmed(source.messages, folded, FULLY_READ_CHARACTERS)
    if not skimmed:
        return pool
    left = OLD_CHARACTERS
    old: list[MessageLines] = []
    shown: ShownCalls = {}
    for index in messages_by_relevance(source, folded[:skimmed], query, pinned_words):
        left -= len(text_of(source.messages[index]))
        if left <= 0:
            break
        old.append(reading_of(source, index, lines.read, shown))
    was_skimmed = set(folded[:skimmed])
    newer = [reading for index, reading in pool.readings.items() if index >= 0 and index not in was_skimmed]
    readings = sorted([*old, *newer], key=lambda reading: reading.message)
    return LinePool(
        [*readings_of_notes(source.earlier_notes, source.memory), *readings], pool.first_user_message, pool.tally
    )
