"""The search for one question: which lines of the folded part are quoted behind it."""

from collections.abc import Collection, Iterable
from functools import partial
from typing import Final, NamedTuple

from gateway.context.choose import lines, lookup, recall
from gateway.context.choose.line import MessageLines
from gateway.context.choose.worth import LinePool
from gateway.context.cut.layout import Layout, Source
from gateway.context.write.readings import earlier_of, first_read, reading_of
from gateway.wire.message import text_of

AROUND: Final = 4
"""Tokens that may come in where quotes and a message meet."""
OLD_MESSAGES: Final = 40
"""Old messages that hold a question's rare words and are read in full, however old they are."""
BESIDE: Final = 2
"""Messages before and after each of these that are looked at with it."""
OLD_CHARACTERS: Final = 80_000
"""Characters of these that are read in full, the best first; beyond, messages are skimmed."""

Told = tuple[int, str]
"""A line: its message and its text."""


class Quote(NamedTuple):
    """What is quoted behind one question."""

    text: str
    size: int
    """Tokens that it takes."""
    lines: frozenset[Told]


def find(  # noqa: PLR0917  # as a search has
    source: Source,
    layout: Layout,
    pool: LinePool,
    taken: frozenset[int],
    told: frozenset[Told],
    query: str,
    most: int,
    known: frozenset[str],
) -> Quote:
    """Find what bears on a question beyond the lines that stand: those ``taken`` into the note, and those ``told`` before."""
    searched = _searched(source, layout, pool, query, known)
    if searched is pool:
        hidden = pool.once((layout.quoted.first, taken), partial(_hidden, layout, pool, taken))
    else:
        note = frozenset((pool.message_of[place], pool.lines[place].text) for place in taken)
        hidden = _hidden(layout, searched, places_of(searched, note))
    count = source.counter.text
    found = recall.excerpts(searched, query, most, count, hidden | places_of(searched, told), known)
    if not found:
        return Quote("", 0, frozenset())
    text = recall.render(searched, found)
    quoted = frozenset((searched.message_of[place], searched.lines[place].text) for place in found)
    return Quote(text, count(text) + AROUND, quoted)


def places_of(pool: LinePool, told: Iterable[Told]) -> frozenset[int]:
    """The positions of lines in a pool, of those that it has."""
    sought = frozenset(told)
    messages = {message for message, _ in sought}
    return frozenset(
        place
        for message in messages
        for place in pool.places.get(message, ())
        if (message, pool.lines[place].text) in sought
    )


def _hidden(layout: Layout, pool: LinePool, taken: frozenset[int]) -> frozenset[int]:
    """The lines that are not quoted: those in the digest, and those that still stood when the question was asked."""
    early = {index for unit in layout.units[: layout.quoted.first] for index in unit.indices}
    late = [place for index, places in pool.places.items() if index >= 0 and index not in early for place in places]
    # A short message is quoted whole or not at all, even where a sentence of it stands in the digest.
    taken_of = {pool.message_of[place] for place in taken} & pool.brief
    parts = {index for index in taken_of if not taken.issuperset(pool.places[index])}
    return frozenset(place for place in taken if pool.message_of[place] not in parts).union(late)


def _searched(source: Source, layout: Layout, pool: LinePool, query: str, known: Collection[str]) -> LinePool:
    """The pool to search: where its old part is only skimmed, a narrower one in which the messages that matter are read in full."""
    folded = layout.folded
    newer = first_read(source.messages, folded)
    if not newer:
        return pool
    texts = [text_of(source.messages[index]) for index in folded[:newer]]
    hits = lookup.holding(texts, query, known, OLD_MESSAGES)
    left = OLD_CHARACTERS
    old: dict[int, MessageLines] = {}
    for hit in hits:
        for number in sorted(range(max(hit - BESIDE, 0), min(hit + BESIDE + 1, newer)), key=lambda at: abs(at - hit)):
            if number not in old:
                left -= len(texts[number])
                read = lines.read if left > 0 else lines.skim
                old[number] = reading_of(source, folded[number], read)
    newest = [pool.readings[index] for index in folded[newer:] if index in pool.readings]
    return LinePool(
        [*earlier_of(source.earlier, source.memory), *(old[number] for number in sorted(old)), *newest], pool.first
    )
