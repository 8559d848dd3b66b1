"""Rows: chosen lines as they are written in a digest or in quotes.

A row has one speaker and one message. What stands side by side must have stood side by side, or a mark says that
something is left out between: a reply that answers another message, or code that lacks a row, would be misread.
"""

from collections.abc import Sequence
from typing import Final

from gateway.context import marks
from gateway.context.choose.line import CALL, CLOSING, FIRST_CALL, GAP, OUTPUT, RECORD, SAID, Line, MessageLines
from gateway.context.choose.worth import LinePool

SPEAKERS: Final = frozenset({"user", "assistant"})
NEXT_ROW: Final = " / "
"""Between lines of an answer that stood in rows of their own and end without a full stop, such as items of a list."""
UNSHOWN: Final = " …"
"""Behind a call that had a result, of which nothing is shown."""
BRIEF_RESULT: Final = 3
"""Approximate tokens of a result that is shown behind its call in any case: the mark would hardly be shorter."""
CUT_OFF: Final = " …"
"""Behind a piece of a long value whose next piece is left out."""
QUOTED_BLOCK: Final = {"user": "[pasted] ", "assistant": "[wrote] "}
"""Before rows of a block of code or output inside a message, by its speaker, when they stand alone."""
_OPEN_ENDS: Final = "%€$£°+-"
"""Marks with which a sentence does not end."""


def render(pool: LinePool, positions: Sequence[int]) -> str:
    """Write chosen lines in the order of the conversation, one row per message."""
    written: list[str] = []
    lines, message_of = pool.lines, pool.message_of
    last = -1
    messages = {message_of[position] for position in positions}
    chosen = set(positions)
    for position in positions:
        line = lines[position]
        if last >= 0 and message_of[last] == message_of[position]:
            written.append(_continued(pool, last, position))
        else:
            written.append(_opened(pool, last, position))
        if line.sort is CALL and _result_of(pool, position) not in messages:
            written.append(_unshown(pool, _result_of(pool, position)))
        elif position + 1 not in chosen and _goes_on(pool, position):
            written.append(CUT_OFF)
        last = position
    return "".join(written).lstrip("\n")


def _goes_on(pool: LinePool, position: int) -> bool:
    """Return whether the line behind one is the next piece of the same long value."""
    following = pool.lines[position + 1 : position + 2]
    if not following or following[0].sort is not RECORD or not following[0].text.startswith(GAP):
        return False
    return pool.message_of[position] == pool.message_of[position + 1]


def _result_of(pool: LinePool, position: int) -> int:
    """Return the message that is the result of a call; the call's own where no result is among the lines."""
    line, message = pool.lines[position], pool.message_of[position]
    result = message + 1 + line.group - FIRST_CALL
    reading = pool.readings.get(result)
    return result if reading and reading.tool and line.text.startswith(reading.tool) else message


def _unshown(pool: LinePool, result: int) -> str:
    """Return what stands behind a call of whose result no line is chosen: the mark, or all of a very short result."""
    lines = pool.readings[result].lines
    brief = len(lines) == 1 and lines[0].size <= BRIEF_RESULT
    return f" -> {marks.escaped(lines[0].text)}" if brief else UNSHOWN


def _opened(pool: LinePool, last: int, position: int) -> str:
    """Return a line behind its speaker; a result behind its call, or else its tool; a call needs no speaker."""
    reading, line = pool.readings[pool.message_of[position]], pool.lines[position]
    speaker = _speaker(pool, reading)
    if line.sort is RECORD or line.sort is OUTPUT:
        if speaker:
            return f"\n{speaker}{QUOTED_BLOCK[reading.role]}{marks.escaped(line.text)}"
        label = f"{line.label}: " if line.label else ""
        if last >= 0 and pool.lines[last].sort is CALL and _result_of(pool, last) == pool.message_of[position]:
            return f" -> {label}{marks.escaped(line.text)}"
        return f"\n{marks.row(f'{reading.tool} -> {label}{line.text}')}"
    if not speaker or line.sort is CALL:
        return f"\n{marks.row(line.text)}"
    # A sentence of a user stands for itself, and wishes need the room; an item of an answer needs what is above it.
    lacks = reading.role != "user" and position != pool.places[pool.message_of[position]].start
    gap = GAP if lacks or _replies_elsewhere(pool, last, position) else ""
    return f"\n{speaker}{gap}{marks.escaped(line.text)}"


def _speaker(pool: LinePool, reading: MessageLines) -> str:
    """Return the beginning of a row: the role, and the name in a group. Empty for a tool result."""
    if reading.role not in SPEAKERS:
        return ""
    named = reading.name and reading.role in pool.roles_with_names
    return f"{reading.role} ({reading.name}): " if named else f"{reading.role}: "


def _replies_elsewhere(pool: LinePool, last: int, position: int) -> bool:
    """Return whether a line reads like a reply to the one before it, but is not the beginning of the next message."""
    if last < 0 or pool.lines[last].sort is not SAID or pool.lines[position].sort is not SAID:
        return False
    before, message = pool.message_of[last], pool.message_of[position]
    if pool.readings[before].role == pool.readings[message].role:
        return False
    return message - before != 1 or position != pool.places[message].start


def _continued(pool: LinePool, last: int, position: int) -> str:
    """Return a line of the same message behind the one before it."""
    before, line = pool.lines[last], pool.lines[position]
    if line.sort is CALL:
        return f"\n{marks.row(line.text)}"
    if line.sort is OUTPUT:
        return f"\n{GAP if _lacks_rows(pool, last, position) else ''}{marks.row(line.text)}"
    if before.sort is OUTPUT:
        # The speaker's own words again, behind a block.
        speaker = _speaker(pool, pool.readings[pool.message_of[position]])
        return f"\n{speaker}{marks.escaped(line.text)}"
    if line.group == before.group:
        # The rows of a block need no mark: a line before them says what they are.
        skipped = pool.lines[position - 1]
        next_to = position == last + 1 or skipped.sort is OUTPUT or (line.sort is RECORD and _keyed(skipped))
        listed = pool.readings[pool.message_of[position]].role != "user"
        text = line.text.removeprefix(GAP) if _goes_on(pool, last) else line.text
        return f"{_between(before, line, next_to=next_to, listed=listed)}{marks.escaped(text)}"
    head = f"{line.label}: " if line.label and line.label != before.label else ""
    # What follows is no longer under the key before.
    mark = NEXT_ROW if before.label and not line.label else "; "
    return f"{mark}{marks.escaped(head + line.text)}"


def _lacks_rows(pool: LinePool, last: int, position: int) -> bool:
    """Return whether rows of output are left out between two, and no number or time before both shows it."""
    before, line = pool.lines[last], pool.lines[position]
    numbered = before.text[:1].isdigit() and line.text[:1].isdigit()
    return position > last + 1 and before.sort is OUTPUT and not numbered


def _keyed(line: Line) -> bool:
    """Return whether a line shows its place in a record, or that something is left out before it."""
    return line.sort is not RECORD or "=" in line.text or line.text.startswith(GAP)


def _between(before: Line, line: Line, *, next_to: bool, listed: bool) -> str:
    """Return the mark between two lines of a group: of a sentence, of a list, or of one record."""
    if line.sort is not SAID:
        return " " if next_to or _keyed(before) or _keyed(line) else f" {GAP}"
    if not next_to:
        return f" {GAP}"
    end = before.text.rstrip(CLOSING)[-1:]
    return NEXT_ROW if listed and (end.isalnum() or end in _OPEN_ENDS) else " "
