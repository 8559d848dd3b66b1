"""The replacement of the folded part: a note (a digest, a summary, or a bare notice), and quotes for the questions."""

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from gateway.context import frames
from gateway.context.choose import digest, rows
from gateway.context.cut.cutting import folded_by
from gateway.context.cut.layout import Layout
from gateway.context.cut.source import Source
from gateway.context.cut.units import USER, Cut
from gateway.context.weigh.line_pool import LinePool
from gateway.context.write.allowance import tokens_before_digest
from gateway.context.write.current_question import CurrentQuestion
from gateway.context.write.line_keys import LineKey, line_keys, positions_of
from gateway.context.write.pools import pool_of
from gateway.context.write.quotes import quotes_of
from gateway.context.write.readings import words_of_pinned
from gateway.context.write.search import Search
from gateway.context.write.set_aside import digest_tokens_beside_quotes
from gateway.wire.message import PINNED_ROLES, Message

LEAST_FULL_FRAME_TOKENS: Final = 200
"""Tokens. A smaller digest gets `frames.BRIEF_DIGEST`: a longer opening line would take more than a tenth of it."""
LEAST_ROWS_TOKENS: Final = 8
"""Tokens of the rows in the smallest digest: one identifier with its key."""

OWN_MESSAGE_TOKENS: Final = 4
"""Tokens that a note takes besides its text as a message of its own: its role and its ends."""


class Replacement(msgspec.Struct, frozen=True):
    """The note, the quotes, and the lines in them. Positions are those of the pool's lines."""

    note: str
    quotes: str
    """The text of the quotes, which follow the current question; empty without any."""
    pool: LinePool
    in_note: frozenset[int]
    """Positions of the note's lines."""
    in_quotes: frozenset[int]
    """Positions of the quotes' lines. Lines that the pool does not have are left out."""
    quoted_lines: int
    """The number of quoted lines. The pool may have skimmed some of them."""
    stage: str
    """The kind of the note: ``digest``, ``summary``, or a bare ``note``."""


class Note(NamedTuple):
    """The text that replaces the folded part, without quotes."""

    text: str
    lines: frozenset[int] = frozenset()
    """Positions in the pool of its lines."""
    stage: str = "note"
    """``digest``, ``summary``, or a bare ``note`` if there is no room for either."""


class _WrittenDigest(NamedTuple):
    """The digest of an earlier cut, as it was written then."""

    text: str
    lines: frozenset[LineKey]
    messages: frozenset[int]
    """The indices of the messages from which they were chosen."""


def replacement_of(
    source: Source, question: CurrentQuestion, kept: Mapping[int, Message], spare: int = 0
) -> Replacement:
    """Write the note and the quotes for a layout and its question, in the room that the kept messages leave, less ``spare`` tokens."""
    layout = question.layout
    left = source.budget.room - sum(map(source.cost, kept.values())) - _tokens_around_note(source, kept) - spare
    size = _digest_tokens(source, question, left)
    earlier = _earlier_digest(source, layout, size)  # before the pool of all messages, which the next fold starts from
    pool = pool_of(source, layout.folded)
    note = (
        _summary_note(source, layout, pool, size, left)
        or (_continued_note(source, earlier, pool, size) if earlier else None)
        or _digest_note(source, pool, size)
    )
    if note.text == frames.NOTICE and not (layout.left_out or source.earlier_notes):
        note = Note("")  # every message is there: a shortened one has its own mark
    left -= source.counter.text(note.text)
    in_note = note.lines
    if layout.set_aside:
        note_lines = line_keys(pool, in_note)
        pool = pool_of(source, layout.left_out)
        in_note = positions_of(pool, note_lines)
    quoted = quotes_of(Search(source, layout, pool, in_note), question, kept, left)
    in_quotes = positions_of(pool, quoted.lines)
    return Replacement(note.text, quoted.text, pool, in_note, in_quotes, len(quoted.lines), note.stage)


def _digest_tokens(source: Source, question: CurrentQuestion, left: int) -> int:
    """Return the tokens of the digest, which shares ``left`` tokens with the quotes.

    A digest may fill a tight room, but it leaves some tokens free for quotes. If the current question may be about anything that was said,
    these are its own tokens. If not, they are those that the cut has kept free.
    """
    layout = question.layout
    size = min(layout.cut.digest_tokens, left)
    if layout.tight:
        for_question = tokens_before_digest(question)
        kept_free = max(layout.cut.quote_tokens, layout.cut_at_question.quote_tokens)
        size = min(size, left - for_question) if for_question else max(size, left - kept_free)
    return digest_tokens_beside_quotes(source, question, size, left)


def _tokens_around_note(source: Source, kept: Mapping[int, Message]) -> int:
    """Return the tokens of a note besides its text: of an empty row before the user's words, or of its own message."""
    first = next((index for index in sorted(kept) if kept[index].get("role") not in PINNED_ROLES), None)
    opening = kept[first] if first is not None else {}
    is_joined = opening.get("role") == "user" and isinstance(opening.get("content"), str)
    return frames.joint_tokens(source.counter.text) if is_joined else OWN_MESSAGE_TOKENS


def _digest_note(source: Source, pool: LinePool, size: int, *, skipped: int = 0) -> Note:
    """Return a note with the digest of a pool in ``size`` tokens, or a bare notice when there is no room.

    The pool may be the last part of a larger one: ``skipped`` is the number of lines before this part. The positions of the note's
    lines are those in the larger pool.
    """
    count = source.counter.text
    opening = frames.DIGEST if size >= LEAST_FULL_FRAME_TOKENS else frames.BRIEF_DIGEST
    size -= frames.frame_tokens(opening, count)
    if not pool.lines or size < LEAST_ROWS_TOKENS:
        return Note(frames.NOTICE)
    pinned_words = words_of_pinned(source)

    def choose() -> tuple[str, frozenset[int]]:
        chosen = digest.choose(pool, size, count, known=pinned_words)
        return rows.render(pool, chosen), frozenset(chosen)

    text, positions = pool.choices.get_or_make(("digest", size, count, pinned_words), choose)
    if not text:
        return Note(frames.NOTICE)
    return Note(frames.framed(opening, text), frozenset([position + skipped for position in positions]), "digest")


def _earlier_digest(source: Source, layout: Layout, size: int) -> _WrittenDigest | None:
    """Return the digest with which a digest of ``size`` tokens begins. None if all of it is written anew, or if ``size`` is less than the cut
    has given to it."""
    earlier = layout.cut.earlier_digest
    if earlier is None or source.summary is not None or size < layout.cut.digest_tokens:
        return None
    pool = pool_of(source, folded_by(Cut(earlier.first_kept), layout.units))
    note = _digest_note(source, pool, earlier.tokens)
    return _WrittenDigest(note.text, line_keys(pool, note.lines), frozenset(pool.positions)) if note.lines else None


def _continued_note(source: Source, earlier: _WrittenDigest, pool: LinePool, size: int) -> Note:
    """Return a note of ``size`` tokens that begins with an earlier digest, and goes on with a digest of the messages that were folded since."""
    count, pinned_words = source.counter.text, words_of_pinned(source)
    shown = positions_of(pool, earlier.lines)
    size -= count(earlier.text) + frames.joint_tokens(count) + frames.frame_tokens(frames.BRIEF_DIGEST, count)

    def choose() -> tuple[str, frozenset[int]]:
        chosen = digest.choose(pool, size, count, known=pinned_words, earlier=digest.Shown(shown, earlier.messages))
        return rows.render(pool, chosen), frozenset(chosen)

    key = ("continued digest", size, count, pinned_words, earlier.messages, shown)
    text, added = pool.choices.get_or_make(key, choose) if size >= LEAST_ROWS_TOKENS else ("", frozenset[int]())
    addition = f"\n\n{frames.framed(frames.BRIEF_DIGEST, text)}" if text else ""
    return Note(f"{earlier.text}{addition}", shown | added, "digest")


def _summary_note(source: Source, layout: Layout, pool: LinePool, size: int, left: int) -> Note | None:
    """Return a note with the summary, and with a digest of the folded part that it does not cover. Both have ``size`` tokens if the summary
    leaves some for a digest. None without a summary, or if it does not fit ``left`` tokens or covers messages that are kept."""
    summary = source.summary
    if summary is None or not summary.text.strip() or source.rung_limits.newest_only:
        return None
    covered = set(range(min(summary.covers, len(source.messages))))
    covered_but_kept = covered - set(layout.folded) - set(source.structure.pinned) - set(_question_of_cut_turn(layout))
    if summary.covers <= 0 or not layout.folded or covered_but_kept:
        return None
    text = frames.framed(frames.SUMMARY, frames.rows(summary.text.strip()))
    summary_tokens = source.counter.text(text) + frames.joint_tokens(source.counter.text)
    if summary_tokens > left:
        return None
    # A client that sends our note back sends our summary with it: its rows are not read as notes.
    summary_rows = frozenset(map(str.strip, text.split("\n")))
    notes = "\n".join(row for row in source.earlier_notes.split("\n") if row.strip() not in summary_rows)
    later = pool_of(replace(source, earlier_notes=notes), [index for index in layout.folded if index >= summary.covers])
    rest = _digest_note(source, later, size - summary_tokens, skipped=len(pool.lines) - len(later.lines))
    if rest.stage != "digest":
        return Note(text, stage="summary")
    return Note(f"{text}\n\n{rest.text}", rest.lines, "summary")


def _question_of_cut_turn(layout: Layout) -> tuple[int, ...]:
    """Return the user messages of the turn in which the cut is: they are kept, although they are before the cut."""
    turn = layout.units[layout.cut.first_kept].turn if layout.units else -1
    return next((unit.indices for unit in layout.units if unit.turn == turn and unit.kind is USER), ())
