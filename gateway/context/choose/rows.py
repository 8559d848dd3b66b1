"""Write chosen lines as the rows of a digest or of quotes.

A row has one speaker and one message. If something is left out between two texts, a mark says so. Without it, a reply would
seem to answer the wrong message, and code that lacks a row would be misread.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import zip_longest
from typing import Final

from gateway.context import frames
from gateway.context.read.line import (
    CALL,
    CLOSING,
    FIRST_CALL,
    GAP,
    OUTPUT,
    RECORD,
    SENTENCE,
    Line,
    MessageLines,
    tool_in,
)
from gateway.context.weigh.common_arguments import without_arguments
from gateway.context.weigh.line_pool import LinePool

ROW_OPENING_TOKENS: Final = 4.0
"""Approximate tokens with which a row begins: its speaker, or the tool of a result. For relevance they are added to the size of every
passage, too, so that very short passages get no advantage."""
SPEAKERS: Final = frozenset({"user", "assistant"})
NEXT_ROW: Final = " / "
"""Between lines of an answer that were separate rows and end without a full stop, such as items of a list."""
RESULT_LEFT_OUT: Final = " …"
"""Behind a call whose result is not shown."""
SHOWN_RESULT_TOKENS: Final = 3
"""The most approximate tokens of a result that is always shown behind its call: the mark would hardly be shorter."""
CUT_OFF: Final = " …"
"""Behind a piece of a long value whose next piece is left out."""
QUOTED_BLOCK: Final = {"user": "[pasted] ", "assistant": "[wrote] "}
"""For each speaker the text before rows of a block of code or output, if no other line of the message precedes them."""
_OPEN_ENDS: Final = "%€$£°+-"
"""Marks with which a sentence does not end."""


def render(pool: LinePool, positions: Sequence[int]) -> str:
    """Write chosen lines in the order of the conversation, one row per message."""
    written: list[str] = []
    lines, message_of = pool.lines, pool.message_of
    last = -1
    messages = {message_of[position] for position in positions}
    chosen = set(positions)
    kept = _without_repeated_calls(pool, positions, messages)
    calls = _calls_without_common_arguments(pool, kept)
    for position in kept:
        line = lines[position]
        if last >= 0 and message_of[last] == message_of[position]:
            written.append(_next_of_message(pool, last, position, calls.get(position)))
        else:
            written.append(_first_of_message(pool, last, position, calls.get(position)))
        if line.kind is CALL and _result_of(pool, position) not in messages:
            written.append(_end_of_call(pool, _result_of(pool, position)))
        elif position + 1 not in chosen and _continues_in_next_line(pool, position):
            written.append(CUT_OFF)
        last = position
    return "".join(written).lstrip("\n")


def _without_repeated_calls(pool: LinePool, positions: Sequence[int], messages: Collection[int]) -> list[int]:
    """Return the positions without the calls that the row of their result repeats. A call that stands directly before its result
    is not repeated. ``messages`` are those of all positions."""
    kept: list[int] = []
    following = [pool.message_of[position] for position in positions[1:]]
    for position, message in zip_longest(positions, following):
        line = pool.lines[position]
        result = _result_of(pool, position) if line.kind is CALL else -1
        if message == result or result not in messages or pool.readings[result].tool != line.text:
            kept.append(position)
    return kept


def _calls_without_common_arguments(pool: LinePool, positions: Sequence[int]) -> Mapping[int, str]:
    """Return how calls are shown, by the position of the call or of a line of its result, where that is not as they were read: an argument
    that most calls of a tool have is shown in the first one."""
    calls: dict[int, str] = {}
    if not pool.common_arguments:
        return calls
    tools_shown: set[str] = set()
    last = -1
    for position in positions:
        line, message = pool.lines[position], pool.message_of[position]
        call = line.text if line.kind is CALL else pool.readings[message].tool if message != last else ""
        last = message
        if (tool := tool_in(call)) in tools_shown:
            calls[position] = without_arguments(call, pool.common_arguments[tool])
        elif tool != call and tool in pool.common_arguments:
            tools_shown.add(tool)
    return calls


def _continues_in_next_line(pool: LinePool, position: int) -> bool:
    """Return whether the next line is the next piece of the same long value."""
    following = pool.lines[position + 1 : position + 2]
    if not following or following[0].kind is not RECORD or not following[0].text.startswith(GAP):
        return False
    return pool.message_of[position] == pool.message_of[position + 1]


def _result_of(pool: LinePool, position: int) -> int:
    """Return the index of the message with a call's result; that of the call's own message if the result has no line."""
    line, message = pool.lines[position], pool.message_of[position]
    result = message + 1 + line.group - FIRST_CALL
    reading = pool.readings.get(result)
    return result if reading and reading.tool and line.text.startswith(tool_in(reading.tool)) else message


def _end_of_call(pool: LinePool, result: int) -> str:
    """Return the text behind a call if no line of its result is chosen: the mark, or the whole result if it is very
    short."""
    lines = pool.readings[result].lines
    is_short = len(lines) == 1 and lines[0].size <= SHOWN_RESULT_TOKENS
    return f" -> {frames.escaped(lines[0].text)}" if is_short else RESULT_LEFT_OUT


def _first_of_message(pool: LinePool, last: int, position: int, call: str | None) -> str:
    """Return the first chosen line of a message: behind its speaker, or, of a result, behind its call or its tool. A call
    needs no speaker. ``call`` is how the call is shown, unless as it was read."""
    reading, line = pool.readings[pool.message_of[position]], pool.lines[position]
    speaker = _speaker(pool, reading)
    if line.kind is RECORD or line.kind is OUTPUT:
        if speaker:
            return f"\n{speaker}{QUOTED_BLOCK[reading.role]}{frames.escaped(line.text)}"
        label = f"{line.label}: " if line.label else ""
        if last >= 0 and pool.lines[last].kind is CALL and _result_of(pool, last) == pool.message_of[position]:
            return f" -> {label}{frames.escaped(line.text)}"
        return f"\n{frames.row(f'{call or reading.tool} -> {label}{line.text}')}"
    if not speaker or line.kind is CALL:
        return f"\n{frames.row(call or line.text)}"
    # A user's sentence needs no mark, and wishes need the room. An item of an answer depends on the text above it.
    lacks_beginning = reading.role != "user" and position != pool.positions[pool.message_of[position]].start
    gap = GAP if lacks_beginning or _replies_elsewhere(pool, last, position) else ""
    return f"\n{speaker}{gap}{frames.escaped(line.text)}"


def _speaker(pool: LinePool, reading: MessageLines) -> str:
    """Return the beginning of a row: the role, and the name in a group. Empty for a tool result."""
    if reading.role not in SPEAKERS:
        return ""
    shows_name = reading.name and reading.role in pool.roles_with_names
    return f"{reading.role} ({reading.name}): " if shows_name else f"{reading.role}: "


def _replies_elsewhere(pool: LinePool, last: int, position: int) -> bool:
    """Return whether a line reads like a reply to the line before, but is not the beginning of the next message."""
    if last < 0 or pool.lines[last].kind is not SENTENCE or pool.lines[position].kind is not SENTENCE:
        return False
    before, message = pool.message_of[last], pool.message_of[position]
    if pool.readings[before].role == pool.readings[message].role:
        return False
    return message - before != 1 or position != pool.positions[message].start


def _next_of_message(pool: LinePool, last: int, position: int, call: str | None) -> str:
    """Return a line behind another line of the same message. ``call`` is how a call is shown, unless as it was read."""
    before, line = pool.lines[last], pool.lines[position]
    if line.kind is CALL:
        return f"\n{frames.row(call or line.text)}"
    if line.kind is OUTPUT:
        return f"\n{GAP if _skips_rows(pool, last, position) else ''}{frames.row(line.text)}"
    if before.kind is OUTPUT:
        # The speaker's own words again, behind a block.
        speaker = _speaker(pool, pool.readings[pool.message_of[position]])
        return f"\n{speaker}{frames.escaped(line.text)}"
    if line.group == before.group:
        # The rows of a block need no mark: a line before them says what they are.
        skipped = pool.lines[position - 1]
        next_to = position == last + 1 or skipped.kind is OUTPUT or (line.kind is RECORD and _needs_no_mark(skipped))
        listed = pool.readings[pool.message_of[position]].role != "user"
        text = line.text.removeprefix(GAP) if _continues_in_next_line(pool, last) else line.text
        return f"{_between(before, line, next_to=next_to, listed=listed)}{frames.escaped(text)}"
    head = f"{line.label}: " if line.label and line.label != before.label else ""
    # The line is no longer under the label of the line before.
    mark = NEXT_ROW if before.label and not line.label else "; "
    return f"{mark}{frames.escaped(head + line.text)}"


def _skips_rows(pool: LinePool, last: int, position: int) -> bool:
    """Return whether rows are left out between two rows of output that do not both begin with a digit. Line numbers and times
    show it without a mark."""
    before, line = pool.lines[last], pool.lines[position]
    numbered = before.text[:1].isdigit() and line.text[:1].isdigit()
    return position > last + 1 and before.kind is OUTPUT and not numbered


def _needs_no_mark(line: Line) -> bool:
    """Return whether a line needs no mark before it: it has its key or the mark, or is not of a record."""
    return line.kind is not RECORD or "=" in line.text or line.text.startswith(GAP)


def _between(before: Line, line: Line, *, next_to: bool, listed: bool) -> str:
    """Return the mark between two lines of a group: of sentences, of a list, or of a record."""
    if line.kind is not SENTENCE:
        return " " if next_to or _needs_no_mark(before) or _needs_no_mark(line) else f" {GAP}"
    if not next_to:
        return f" {GAP}"
    end = before.text.rstrip(CLOSING)[-1:]
    return NEXT_ROW if listed and (end.isalnum() or end in _OPEN_ENDS) else " "
