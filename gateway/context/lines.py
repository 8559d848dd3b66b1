"""A message read as lines: the sentences, records, calls and rows of output that a fold chooses from.

Reading is a pure function of one message and is remembered by content, so that a grown conversation costs only its new messages.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from typing import Final

import orjson

from gateway.context.records import MOST_LEAVES, records, size_of
from gateway.context.signals import binding, reports_error
from gateway.context.words import Word, distinct, words
from providers.wire import RESULT_ROLES, Message, call_arguments, call_name, canonical, text_of, tool_calls


class Sort(Enum):
    """What kind of line it is, for its worth and for how it is written."""

    SAID = "said"
    CALL = "call"
    RECORD = "record"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """One line of a message: what would be quoted and the facts in it."""

    text: str
    sort: Sort
    words: tuple[Word, ...]
    size: float
    """About how many tokens it takes; which lines are worth their place is decided with it, what fits is counted."""
    group: int = 0
    """Lines of one group belong together: the values of one record, the sentences of one message."""
    label: str = ""
    """What stands once in front of a group: the key a list of records stands under, the name of a called tool."""
    slot: str = ""
    """Where the value of a record stands; a later line with the same slot takes its place."""
    binding: float = 0.0
    """How much it sounds like something to be kept to, where a user said it."""
    error: bool = False
    share: float = 1.0
    """Below 1 where it is one of very many of its kind: one row among thousands is seldom the one that is needed."""


UNIT: Final = 110
"""Characters up to which short sentences stay together; longer ones stand alone."""
LONGEST: Final = 360
"""A longer sentence or row is quoted in pieces."""

_KNOWN: dict[object, tuple[Line, ...]] = {}
_KEPT_CHARACTERS: Final = 24_000_000
_kept = 0


def read(message: Message) -> tuple[Line, ...]:
    """Read a message as lines, or remember how it read."""
    global _kept  # noqa: PLW0603  # the size of the cache beside it; both are safe to lose
    content = message.get("content")
    plain = isinstance(content, str) and "tool_calls" not in message and "function_call" not in message
    key: object = (message.get("role"), content) if plain else canonical(message)
    found = _KNOWN.get(key)
    if found is None:
        found = tuple(_read(message))
        _kept += len(content) if isinstance(content, str) else len(str(content)) + 200
        if _kept > _KEPT_CHARACTERS:
            _KNOWN.clear()
            _kept = 0
        _KNOWN[key] = found
    return found


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


def _call(name: str, arguments: str, group: int) -> Line:
    """A call as one line: its name and its arguments, without the JSON around them."""
    value = _json(arguments)
    if isinstance(value, dict):
        written = ", ".join(f"{key}={_flat(item)}" for key, item in value.items())
    else:
        written = arguments
    if len(written) > LONGEST:
        written = f"{written[: LONGEST * 2 // 3]} … {written[-LONGEST // 3 :]}"
    text = f"{name}({written})"
    found = distinct(words(" ".join(_values(value)) if isinstance(value, dict) else arguments[:2000]))
    return Line(text, Sort.CALL, found, size_of(text), group)


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
    if text[:1] not in "{[" and text[:2].strip()[:1] not in "{[":
        return None
    try:
        found: object = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return found


def _result(text: str) -> Iterator[Line]:
    value = _json(text)
    if isinstance(value, (dict, list)):
        for leaf in records(value):
            yield Line(
                leaf.text,
                Sort.RECORD,
                leaf.words,
                leaf.size,
                leaf.group,
                leaf.label,
                leaf.slot,
                error=leaf.error,
                share=leaf.share,
            )
        return
    yield from _output(text)


def _output(text: str) -> Iterator[Line]:
    """Rows of output: logs, code, tables, diffs. Where rows are many, those of one shape share their worth."""
    rows = [row for row in _rows(text.split("\n")) if row.strip()]
    if len(rows) > MOST_LEAVES:
        head = MOST_LEAVES * 2 // 3
        rows = [*rows[:head], *rows[head - MOST_LEAVES :]]
    shapes: dict[str, int] = {}
    for row in rows:
        shape = _shape(row)
        shapes[shape] = shapes.get(shape, 0) + 1
    many = min(1.0, (60 / max(len(rows), 1)) ** 0.5)
    for number, row in enumerate(rows, 1):
        share = many / shapes[_shape(row)]
        yield Line(
            row.strip(), Sort.OUTPUT, distinct(words(row)), size_of(row), number, error=reports_error(row), share=share
        )


_DIGITS: Final = re.compile(r"\d+")


def _shape(row: str) -> str:
    return _DIGITS.sub("0", row[:80])


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


def _sentences(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        bare = line.strip()
        if len(bare) <= UNIT:
            if bare:
                yield bare
            continue
        grown = ""
        for sentence in chain.from_iterable(map(_pieces, _SENTENCE.split(bare))):
            piece = sentence.strip()
            if not piece:
                continue
            if grown and len(grown) + len(piece) > UNIT:
                yield grown
                grown = piece
            else:
                grown = f"{grown} {piece}" if grown else piece
        if grown:
            yield grown


def _said(text: str, group: int, *, user: bool) -> Iterator[Line]:
    pieces = list(_sentences(text))
    if len(pieces) > MOST_LEAVES:
        pieces = [*pieces[: MOST_LEAVES // 2], *pieces[-MOST_LEAVES // 2 :]]
    # A user who pastes a file or a log says little of it himself.
    share = min(1.0, (40 / max(len(pieces), 1)) ** 0.5)
    for piece in pieces:
        found = distinct(words(piece))
        bound = binding(piece) * share if user else 0.0
        yield Line(piece, Sort.SAID, found, size_of(piece), group, binding=bound, share=share)


_DECORATION: Final = re.compile(r"^\s*(?:[-*•#>]+\s+|\d+[.)]\s+)|\*\*|__|`{1,3}", re.M)


def _undecorated(text: str) -> str:
    """An answer without the marks of its layout, which cost tokens and say nothing."""
    return _DECORATION.sub("", text)


def keys_of(lines: Sequence[Line]) -> set[str]:
    """All facts in some lines."""
    return {word.key for line in lines for word in line.words}
