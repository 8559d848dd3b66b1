"""The note and the quotes: the text that replaces the folded part."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from gateway.context import marks
from gateway.context.choose import digest, lines
from gateway.context.choose.cues import asks, is_question
from gateway.context.choose.weights import QUOTED_UNASKED, STAYS
from gateway.context.choose.worth import LinePool
from gateway.context.cut.layout import Layout, Source
from gateway.context.write.readings import earlier_of, first_read, reading_of
from gateway.context.write.search import AROUND, Quote, Told, find, places_of
from gateway.wire.message import Message, text_of

SMALLEST_NOTE: Final = 24
"""Tokens. A smaller digest or quote says less than it costs."""


@dataclass(frozen=True, slots=True)
class Written:
    """The replacement of the folded part: the note, the quotes, and the lines in them."""

    note: str
    quotes: Mapping[int, str]
    """By the message they stand behind: the current question, and earlier questions since the cut."""
    pool: LinePool
    taken: frozenset[int]
    """Positions in the pool of the note's lines."""
    quoted: frozenset[int]
    """Positions in the pool of the quotes' lines, if the pool has them."""
    quoted_lines: int
    """The number of quoted lines; the pool may have skimmed some of them."""
    stage: str
    """The kind of the note: ``digest``, ``summary``, or a bare ``note``."""


def write(source: Source, layout: Layout, standing: Mapping[int, Message]) -> Written:
    """Write the note and the quotes for a layout, within the room left by the standing messages."""
    left = source.budget.room - sum(map(source.cost, standing.values())) - 4
    pool = pool_of(source, layout.folded)
    size = min(layout.cut.digest, left)
    text, taken, stage = _with_summary(source, layout, pool, size, left) or _digest(source, pool, 0, size)
    left -= source.counter.text(text) + 2
    quoted = _quotes(source, layout, pool, taken, left)
    # A cut that moved inside a turn has folded earlier questions too.
    quoted = {index: quote for index, quote in quoted.items() if index in standing}
    quotes = {index: quote.text for index, quote in quoted.items()}
    told = [line for quote in quoted.values() for line in quote.lines]
    return Written(text, quotes, pool, taken, places_of(pool, told), len(told), stage)


def _digest(source: Source, pool: LinePool, skipped: int, size: int) -> tuple[str, frozenset[int], str]:
    """Return the digest of a pool, with positions counted from ``skipped``, or a bare note when there is no room."""
    count = source.counter.text
    size -= count(marks.HEAD) + count(marks.END) + 2
    if not pool.lines or size < SMALLEST_NOTE:
        return marks.CUT, frozenset(), "note"
    known = frozenset().union(
        *[lines.facts(source.messages[index], source.memory) for index in source.conversation.pinned]
    )

    def written() -> tuple[str, frozenset[int]]:
        chosen = digest.choose(pool, size, count, known=known)
        return digest.render(pool, chosen), frozenset(chosen)

    text, chosen_set = pool.once((size, count, known), written)
    if not text:
        return marks.CUT, frozenset(), "note"
    return marks.framed(marks.HEAD, text), frozenset(place + skipped for place in chosen_set), "digest"


def _with_summary(
    source: Source, layout: Layout, pool: LinePool, size: int, left: int
) -> tuple[str, frozenset[int], str] | None:
    """Return the summary and a digest of the part it does not cover; None without one, or when it does not fit."""
    summary = source.summary
    if summary is None or not summary.text.strip() or source.rung.newest_only:
        return None
    pinned = set(source.conversation.pinned)
    stands = set(range(min(summary.covers, len(source.messages)))) - set(layout.folded) - pinned
    if summary.covers <= 0 or not layout.folded or stands - set(_asker(layout)):
        return None
    text = marks.framed(marks.SUMMARY, marks.rows(summary.text.strip()))
    taken = source.counter.text(text) + 2
    if taken > left:
        return None
    # A client that sends our note back sends our summary with it.
    told = frozenset(map(str.strip, text.split("\n")))
    earlier = "\n".join(row for row in source.earlier.split("\n") if row.strip() not in told)
    later = pool_of(replace(source, earlier=earlier), [index for index in layout.folded if index >= summary.covers])
    rest, lines_taken, stage = _digest(source, later, len(pool.lines) - len(later.lines), size - taken)
    return (f"{text}\n\n{rest}", lines_taken, "summary") if stage == "digest" else (text, frozenset(), "summary")


def _asker(layout: Layout) -> tuple[int, ...]:
    """Return the user messages of a turn that is cut inside: they stand although they precede the cut."""
    turn = layout.units[layout.cut.first].turn if layout.units else -1
    return next((unit.indices for unit in layout.units if unit.turn == turn and unit.step < 0), ())


LOOKED_AT: Final = 8
"""Questions since the cut, from the first on, whose quotes may stay: a new replica searches once for each of them."""


def _quotes(source: Source, layout: Layout, pool: LinePool, taken: frozenset[int], left: int) -> dict[int, Quote]:
    """Choose lines that bear on a question from the part folded when it was sent; earlier questions since the cut keep
    theirs.

    So a request begins like the one before it, as far as there is room: quotes beyond `STAYS` are dropped with the next
    question.
    """
    tokens = layout.quoted.quotes
    if not layout.asked or layout.quoted.first == 0 or tokens < SMALLEST_NOTE or source.rung.newest_only:
        return {}
    count = source.counter.text
    known = frozenset().union(
        *[lines.facts(source.messages[index], source.memory) for index in source.conversation.pinned]
    )
    quoted: dict[int, Quote] = {}
    spent = 0
    for number, indices in enumerate(layout.asked):
        if indices != layout.current and (number >= LOOKED_AT or spent + SMALLEST_NOTE > STAYS * tokens):
            continue
        query = text_of(source.messages[indices[-1]])[-QUERY:]
        most = min(tokens if asks(query) else int(tokens * QUOTED_UNASKED), tokens - spent)
        if indices == layout.current and is_question(query):
            newest = layout.units[-1].indices == indices
            free = left - spent - AROUND
            # As the newest message a question gets all free room; as its turn continues, what the turn can spare.
            if newest or layout.spare <= free:
                most = max(most, free if newest else layout.spare)
        told = frozenset[Told]().union(*[quote.lines for quote in quoted.values()])
        search = partial(find, source, layout, pool, taken, told, query, most, known)
        quote = pool.once((query, most, count, layout.quoted.first, taken, told), search)
        if quote.lines and (indices == layout.current or spent + quote.size <= STAYS * tokens):
            quoted[indices[0]] = quote
            spent += quote.size
    if spent > left:
        return {index: quoted[index] for index in layout.current[:1] if index in quoted}
    return quoted


QUERY: Final = 4000
"""Characters at the end of a question that are used for the search."""


def pool_of(source: Source, folded: Sequence[int]) -> LinePool:
    """Return the lines of the folded messages, each result with the name of its tool."""
    messages = source.messages
    first = next((index for index, message in enumerate(messages) if message.get("role") == "user"), -1)
    callers = source.conversation.callers
    told = [messages[index] for index in folded]
    asked = [messages[callers[index]] for index in folded if index in callers]
    # A message seen before is the same object, and the pool keeps those it was made of, so that no other takes their place.
    key = ("pool", tuple(map(id, told)), tuple(map(id, asked)), tuple(folded), first, source.earlier)
    found: tuple[object, LinePool] | None = source.memory.recall(key)
    if found is not None:
        return found[1]
    readings = list(earlier_of(source.earlier, source.memory))
    newer = first_read(messages, folded)
    for number, index in enumerate(folded):
        readings.append(reading_of(source, index, lines.read if number >= newer else lines.skim))
    pool = LinePool(readings, first)
    _, entry = source.memory.keep(key, ((told, asked), pool), bytes_of(pool))
    pool.grown = entry.grow
    return pool


POOL_LINE_BYTES: Final = 150
"""Bytes that a pool takes for each of its lines, beside the line: what is known of it by position."""
POOL_WORD_BYTES: Final = 50
"""Bytes that a pool takes for each word in a line: its place in the facts of its message, and the share of its own tables."""


def bytes_of(pool: LinePool) -> int:
    """Return about how many bytes a pool will take once it was chosen from."""
    return POOL_LINE_BYTES * len(pool.lines) + POOL_WORD_BYTES * sum([len(line.words) for line in pool.lines])
