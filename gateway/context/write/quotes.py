"""The note and the quotes: the text that replaces the folded part."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from gateway.context import marks
from gateway.context.choose import digest, lines, rows
from gateway.context.choose.worth import LinePool
from gateway.context.cut.layout import Layout, Source
from gateway.context.write.aside import digest_beside_quotes
from gateway.context.write.pools import pool_of
from gateway.context.write.questions import quotes_of
from gateway.context.write.search import keys_of, places_of
from gateway.wire.message import PINNED_ROLES, Message

BRIEF_BELOW: Final = 200
"""Tokens of a digest below which its head is the brief one: a longer frame would take more than a tenth."""
LEAST_ROWS: Final = 8
"""Tokens of the rows in a digest: one identifier with its key."""

BESIDE: Final = 2
"""Tokens that a note costs before a user's words, beside its own: an empty row."""
ALONE: Final = 4
"""The same as a message of its own: its role and its ends."""


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


class Note(NamedTuple):
    """What stands for the folded part, before any quotes."""

    text: str
    taken: frozenset[int] = frozenset()
    """Positions in the pool of its lines."""
    stage: str = "note"
    """``digest``, ``summary``, or a bare ``note`` where there is no room for either."""


def write(source: Source, layout: Layout, standing: Mapping[int, Message], spare: int = 0) -> Written:
    """Write the note and the quotes for a layout, within the room left by the standing messages, less so many tokens to ``spare``."""
    left = source.budget.room - sum(map(source.cost, standing.values())) - _around(source, standing) - spare
    pool = pool_of(source, layout.folded)
    size = min(layout.cut.digest_tokens, left)
    if layout.tight:
        size = max(size, left - max(layout.cut.quote_tokens, layout.cut_at_question.quote_tokens))
    size = digest_beside_quotes(source, layout, size, left)
    note = _with_summary(source, layout, pool, size, left) or _digest(source, pool, 0, size)
    taken = note.taken
    left -= source.counter.text(note.text) + 2
    if layout.set_aside:
        noted = keys_of(pool, taken)
        pool = pool_of(source, layout.left_out)
        taken = places_of(pool, noted)
    quoted = quotes_of(source, layout, standing, pool, taken, left)
    quotes = {index: quote.text for index, quote in quoted.items()}
    lines = [line for quote in quoted.values() for line in quote.lines]
    return Written(note.text, quotes, pool, taken, places_of(pool, lines), len(lines), note.stage)


def _around(source: Source, standing: Mapping[int, Message]) -> int:
    """Return the tokens around a note: an empty row before the user's words, or a message of its own."""
    first = next((index for index in sorted(standing) if standing[index].get("role") not in PINNED_ROLES), None)
    opening = standing[first] if first is not None else {}
    return BESIDE if opening.get("role") == "user" and isinstance(opening.get("content"), str) else ALONE


def _digest(source: Source, pool: LinePool, skipped: int, size: int) -> Note:
    """Return the digest of a pool, with positions counted from ``skipped``, or a bare note when there is no room."""
    count = source.counter.text
    head = marks.HEAD if size >= BRIEF_BELOW else marks.BRIEF
    size -= count(head) + count(marks.END) + 2
    if not pool.lines or size < LEAST_ROWS:
        return Note(marks.CUT)
    known = frozenset().union(
        *[lines.facts(source.messages[index], source.memory) for index in source.conversation.pinned]
    )

    def written() -> tuple[str, frozenset[int]]:
        chosen = digest.choose(pool, size, count, known=known)
        return rows.render(pool, chosen), frozenset(chosen)

    text, chosen_set = pool.once((size, count, known), written)
    if not text:
        return Note(marks.CUT)
    return Note(marks.framed(head, text), frozenset(place + skipped for place in chosen_set), "digest")


def _with_summary(source: Source, layout: Layout, pool: LinePool, size: int, left: int) -> Note | None:
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
    shown = frozenset(map(str.strip, text.split("\n")))
    earlier = "\n".join(row for row in source.earlier_notes.split("\n") if row.strip() not in shown)
    later = pool_of(
        replace(source, earlier_notes=earlier), [index for index in layout.folded if index >= summary.covers]
    )
    rest = _digest(source, later, len(pool.lines) - len(later.lines), size - taken)
    return (
        Note(f"{text}\n\n{rest.text}", rest.taken, "summary") if rest.stage == "digest" else Note(text, stage="summary")
    )


def _asker(layout: Layout) -> tuple[int, ...]:
    """Return the user messages of a turn that is cut inside: they stand although they precede the cut."""
    turn = layout.units[layout.cut.first_kept].turn if layout.units else -1
    return next((unit.indices for unit in layout.units if unit.turn == turn and unit.step < 0), ())
