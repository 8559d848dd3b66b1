"""A message read as lines: the sentences, records, calls and rows of output that a fold chooses from.

Reading is a pure function of one message and is remembered, so that a grown conversation costs only its new messages.
"""

import re
from collections.abc import Iterable, Iterator
from enum import Enum
from itertools import chain
from math import sqrt
from typing import Final, NamedTuple

import orjson

from gateway.context.records import MOST_LEAVES, records
from gateway.context.signals import binding, reports_error
from gateway.context.words import Word, words
from providers.wire import (
    RESULT_ROLES,
    Message,
    call_arguments,
    call_name,
    canonical,
    is_interned,
    once,
    text_of,
    tool_calls,
)


class Sort(Enum):
    """What kind of line it is, for its worth and for how it is written."""

    SAID = "said"
    CALL = "call"
    RECORD = "record"
    OUTPUT = "output"


class Line(NamedTuple):
    """One line of a message: what would be quoted and the facts in it."""

    text: str
    sort: Sort
    words: tuple[Word, ...]
    size: float
    """About how many tokens it takes. Which lines are worth their place is decided with it; what fits is counted."""
    group: int = 0
    """Lines of one group belong together: the values of one record, the sentences of one message."""
    label: str = ""
    """What stands once in front of a group: the key that a list of records stands under."""
    slot: str = ""
    """Where the value of a record stands; a later line with the same slot takes its place."""
    binding: float = 0.0
    """How much it sounds like something to be kept to, where a user said it."""
    error: bool = False
    share: float = 1.0
    """Below 1 where it is one of very many of its kind."""


UNIT: Final = 220
"""Characters up to which short sentences stay together; longer ones stand alone."""
ALONE: Final = 80
"""Characters from which a user's sentence stands alone."""
BINDS: Final = 1.1
LONGEST: Final = 360
"""A longer sentence or row is quoted in pieces."""

_KNOWN: dict[object, tuple[Line, ...]] = {}
_KEPT_CHARACTERS: Final = 6_000_000
_kept = 0


def read(message: Message) -> tuple[Line, ...]:
    """Read a message as lines, or remember how it read."""
    global _kept  # noqa: PLW0603  # the size of the cache beside it; both are safe to lose
    if is_interned(message):
        return once(message, read, _read_whole)
    content = message.get("content")
    plain = isinstance(content, str) and "tool_calls" not in message and "function_call" not in message
    key: object = (message.get("role"), content) if plain else canonical(message)
    found = _KNOWN.get(key)
    if found is None:
        found = _read_whole(message)
        _kept += len(content) if isinstance(content, str) else len(str(content)) + 200
        if _kept > _KEPT_CHARACTERS:
            _KNOWN.clear()
            _kept = 0
        _KNOWN[key] = found
    return found


def _read_whole(message: Message) -> tuple[Line, ...]:
    return tuple(_read(message))


def _read(message: Message) -> Iterator[Line]:
    role = message.get("role")
    text = text_of(message)
    number = 0
    for number, call in enumerate(tool_calls(message), 1):
        yield _call(call_name(call), call_arguments(call), number)
    if role in RESULT_ROLES:
        yield from _result(text)
    elif role == "user":
        yield from _said(text, number + 1, user=True)
    else:
        yield from _said(_undecorated(text), number + 1, user=False)


def _line(
    text: str,
    sort: Sort,
    found: tuple[Word, ...],
    group: int,
    share: float,
    *,
    label: str = "",
    slot: str = "",
    bound: float = 0.0,
    error: bool = False,
) -> Line:
    size = 0.8 + len(text) * 0.15 + text.count(" ") * 0.2
    for word in found:
        size += word.size
    return Line(text, sort, found, size, group, label, slot, bound, error, share)


def _call(name: str, arguments: str, group: int) -> Line:
    """A call as one line: its name and its arguments, without the JSON around them."""
    value = _json(arguments)
    written = _flat_arguments(value) if isinstance(value, dict) else arguments
    found = words(" ".join(_values(value)) if isinstance(value, dict) else arguments[:2000])
    if len(written) > LONGEST:
        written = f"{written[: LONGEST * 2 // 3]} … {written[-LONGEST // 3 :]}"
    return _line(f"{name}({written})", Sort.CALL, found, group, 1.0)


def _flat_arguments(value: dict[str, object]) -> str:
    return ", ".join(f"{key}={_flat(item)}" for key, item in value.items())


def _flat(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(_flat(item) for item in value.values())
    if isinstance(value, list):
        return "; ".join(_flat(item) for item in value)
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


def _values(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        yield from chain.from_iterable(map(_values, value.values()))
    elif isinstance(value, list):
        yield from chain.from_iterable(map(_values, value))
    elif not isinstance(value, bool) and value is not None:
        yield str(value)


def _json(text: str) -> object:
    if text[:1] not in "{[":
        return None
    try:
        found: object = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return found


def _result(text: str) -> Iterator[Line]:
    value = _json(text)
    if not isinstance(value, (dict, list)):
        yield from _output(text)
        return
    for leaf in records(value):
        yield _line(
            leaf.text,
            Sort.RECORD,
            leaf.words,
            leaf.group,
            leaf.share,
            label=leaf.label,
            slot=leaf.slot,
            error=leaf.error,
        )


def _output(text: str) -> Iterator[Line]:
    """Rows of output: logs, code, tables, diffs. Where rows are many, those of one shape share their worth."""
    rows = [row for row in _rows(text.split("\n")) if row.strip()]
    if len(rows) > MOST_LEAVES:
        head = MOST_LEAVES * 2 // 3
        rows = [*rows[:head], *rows[head - MOST_LEAVES :]]
    shapes = [_DIGITS.sub("0", row[:80]) for row in rows]
    alike: dict[str, int] = {}
    for shape in shapes:
        alike[shape] = alike.get(shape, 0) + 1
    many = few_of_many(len(rows))
    troubled = reports_error(text)
    for number, (row, shape) in enumerate(zip(rows, shapes, strict=True), 1):
        error = troubled and reports_error(row)
        yield _line(row.strip(), Sort.OUTPUT, words(row), number, many / alike[shape], error=error)


_DIGITS: Final = re.compile(r"\d+")


def few_of_many(number: int) -> float:
    """How much less one of so many is worth: one row among thousands is seldom the one that is needed."""
    return min(1.0, sqrt(60 / max(number, 1)))


def _rows(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        if len(line) <= LONGEST:
            yield line
        else:
            yield from _pieces(line)


_SENTENCE: Final = re.compile(r"(?<=[.!?…;])[\"'”’)\]]*\s+|(?<=[。！？；])")


def _pieces(line: str) -> Iterator[str]:
    """Cut what is longer than a line can be, at a space where there is one."""
    start = 0
    while len(line) - start > LONGEST:
        space = line.rfind(" ", start + LONGEST // 2, start + LONGEST)
        end = space if space > 0 else start + LONGEST
        yield line[start:end]
        start = end
    yield line[start:]


def _sentences(text: str, *, user: bool) -> Iterator[str]:
    """Sentences, short ones together; but each that a user wants to be kept to by itself."""
    for line in text.split("\n"):
        bare = line.strip()
        if len(bare) <= UNIT and not user:
            if bare:
                yield bare
            continue
        grown = ""
        for sentence in chain.from_iterable(map(_pieces, _SENTENCE.split(bare))):
            piece = sentence.strip()
            alone = user and (len(piece) > ALONE or binding(piece) > BINDS or _DIGITS.search(piece) is not None)
            if grown and (alone or len(grown) + len(piece) > UNIT):
                yield grown
                grown = ""
            grown = f"{grown} {piece}" if grown else piece
            if alone:
                yield grown
                grown = ""
        if grown:
            yield grown


SKIMMED: Final = 180
"""Characters of a long old message that are read where a folded part is too large to be read in full."""


def skim(message: Message) -> tuple[Line, ...]:
    """Read the head and the tail of a long answer or result; anything else in full."""
    return once(message, skim, _skim)


def _skim(message: Message) -> tuple[Line, ...]:
    text = text_of(message)
    if len(text) <= SKIMMED or message.get("role") == "user":
        return read(message)
    head, tail = text[: SKIMMED * 2 // 3], text[-SKIMMED // 3 :]
    return read({**message, "content": f"{head}\n{tail}"})


def _said(text: str, group: int, *, user: bool) -> Iterator[Line]:
    pieces = list(_sentences(text, user=user))
    if len(pieces) > MOST_LEAVES:
        pieces = [*pieces[: MOST_LEAVES // 2], *pieces[-MOST_LEAVES // 2 :]]
    # A user who pastes a file or a log says little of it himself.
    share = few_of_many(len(pieces))
    for piece in pieces:
        yield _line(piece, Sort.SAID, words(piece), group, share, bound=binding(piece) * share if user else 0.0)


_DECORATION: Final = re.compile(r"^\s*(?:[-*•#>]+\s+|\d+[.)]\s+)|\*\*|__|`{1,3}", re.M)


def _undecorated(text: str) -> str:
    """An answer without the marks of its layout, which cost tokens and say nothing."""
    return _DECORATION.sub("", text)
