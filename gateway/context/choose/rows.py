"""Rows: chosen lines as they are written in a digest or in quotes.

A row has one speaker and one message. What stands side by side must have stood side by side, or a mark says that
something is left out between: a reply that answers another message, or code that lacks a row, would be misread.
"""

from collections.abc import Sequence
from typing import Final

from gateway.context import marks
from gateway.context.choose.line import CALL, CLOSING, OUTPUT, RECORD, SAID, Line
from gateway.context.choose.worth import LinePool

SPEAKERS: Final = {"user": "user: ", "assistant": "assistant: "}
GAP: Final = "… "
"""Before words of the same message, a row of the same output, or a reply, when something is left out before it."""
NEXT_ROW: Final = " / "
"""Between lines of an answer that stood in rows of their own and end without a full stop, such as items of a list."""
QUOTED_BLOCK: Final = {"user": "[pasted] ", "assistant": "[wrote] "}
"""Before rows of a block of code or output inside a message, by its speaker, when they stand alone."""
_OPEN_ENDS: Final = "%€$£°+-"
"""Marks with which a sentence does not end."""


def render(pool: LinePool, positions: Sequence[int]) -> str:
    """Write chosen lines in the order of the conversation, one row per message."""
    written: list[str] = []
    lines, message_of = pool.lines, pool.message_of
    last = -1
    called = ""
    for position in positions:
        line = lines[position]
        if last >= 0 and message_of[last] == message_of[position]:
            written.append(_continued(pool, last, position))
        else:
            written.append(f"\n{_opened(pool, last, position, called)}")
        called = line.text if line.sort is CALL else "" if line.sort is SAID else called
        last = position
    return "".join(written).lstrip("\n")


def _opened(pool: LinePool, last: int, position: int, called: str) -> str:
    """Return a line behind its speaker; a result behind its tool, unless its call is directly before it."""
    reading, line = pool.readings[pool.message_of[position]], pool.lines[position]
    speaker = SPEAKERS.get(reading.role)
    if line.sort is RECORD or line.sort is OUTPUT:
        if speaker:
            return f"{speaker}{QUOTED_BLOCK[reading.role]}{marks.escaped(line.text)}"
        label = f"{line.label}: " if line.label else ""
        tool = "" if called.startswith(reading.tool) and called else f"{reading.tool} "
        return marks.row(f"{tool}-> {label}{line.text}")
    if not speaker:
        return marks.row(line.text)
    return f"{speaker}{GAP if _replies_elsewhere(pool, last, position) else ''}{marks.escaped(line.text)}"


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
    if line.sort is OUTPUT:
        return f"\n{GAP if _lacks_rows(pool, last, position) else ''}{marks.row(line.text)}"
    if before.sort is OUTPUT:
        # The speaker's own words again, behind a block.
        speaker = SPEAKERS.get(pool.readings[pool.message_of[position]].role, "")
        return f"\n{speaker}{marks.escaped(line.text)}"
    if line.group == before.group:
        # The rows of a block need no mark: a line before them says what they are.
        next_to = position == last + 1 or pool.lines[position - 1].sort is OUTPUT
        listed = pool.readings[pool.message_of[position]].role != "user"
        return f"{_between(before, line, next_to=next_to, listed=listed)}{marks.escaped(line.text)}"
    head = f"{line.label}: " if line.label and line.label != before.label else ""
    return f"; {marks.escaped(head + line.text)}"


def _lacks_rows(pool: LinePool, last: int, position: int) -> bool:
    """Return whether rows of output are left out between two, and no number or time before both shows it."""
    before, line = pool.lines[last], pool.lines[position]
    numbered = before.text[:1].isdigit() and line.text[:1].isdigit()
    return position > last + 1 and before.sort is OUTPUT and not numbered


def _between(before: Line, line: Line, *, next_to: bool, listed: bool) -> str:
    """Return the mark between two lines of a group: of a sentence, of a list, or of one record."""
    if line.sort is not SAID:
        return " "
    if not next_to:
        return f" {GAP}"
    end = before.text.rstrip(CLOSING)[-1:]
    return NEXT_ROW if listed and (end.isalnum() or end in _OPEN_ENDS) else " "
