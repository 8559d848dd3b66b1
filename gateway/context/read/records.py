"""Read JSON as records: each value that could be needed, with its key and its record's name, in few tokens."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from gateway.context.read.errors import reports_error
from gateway.context.read.line import GAP, MOST_LINES, RECORD, Line, make_line, pieces, share_of_one_in
from gateway.context.read.words import CODE, DATE, IDENT, NAME, SYMBOL, Shape, Word, Words
from gateway.context.weights import IDENTIFIER_OF_RECORD
from gateway.wire import exact_json

WEAK_VALUE_CHARACTERS: Final = 4
"""The most characters of a weak value: an amount, a flag, a short number."""
JOINED_CHARACTERS: Final = 90
"""Characters from which a line of joined weak values ends."""
MOST_VALUE_CHARACTERS: Final = 300
"""A longer text inside JSON is read in pieces."""
LEAST_ERROR_CHARACTERS: Final = 9
"""The least characters of a value that reports an error. Chosen: a shorter one is a state (*failed*), and its key says of what."""
MOST_SHARE: Final = 1.5
"""The highest share of a value, in a small result. From 1.5 on, recall of recorded agents no longer changes, on either
half."""
MOMENT_FACTOR: Final = 0.3
"""Factor for a date with a time to the second, or such a time alone. A date has 1."""

_Record = tuple[str, list[tuple[str, Any]]]
"""The key of a record, and its (key, scalar) pairs; the key is empty for members of a list."""


def parsed(text: str) -> object:
    """Return the object or the list in a text; None for any other text."""
    if text[:1] not in "{[":
        return None
    try:
        found: object = exact_json.loads(text)
    except orjson.JSONDecodeError:
        return None
    return found


def records(value: object, error_words: Sequence[str], words: Words) -> Iterator[Line]:
    """Return the lines of a JSON value's records, in order. A line is one value, or some weak values.

    ``error_words`` are the error words in it.
    """
    found = list(_flatten(value, "", "", 0))
    number = sum([len(scalars) for _, scalars in found])
    share = share_of_one_in(number, MOST_SHARE)
    if number > MOST_LINES:
        found = _head_and_tail(found)
    for group, (label, scalars) in enumerate(found, 1):
        yield from _lines(label, scalars, group, share, error_words, words=words)


def _head_and_tail(every: Sequence[_Record]) -> list[_Record]:
    """Return the head and the tail of very many records."""
    head: list[_Record] = []
    tail: list[_Record] = []
    left = MOST_LINES * 2 // 3
    for label, scalars in every:
        if left <= 0:
            break
        head.append((label, scalars[:left]))
        left -= len(scalars)
    left = MOST_LINES // 3
    for label, scalars in reversed(every[len(head) :]):
        if left <= 0:
            break
        tail.append((label, scalars[-left:]))
        left -= len(scalars)
    return [*head, *reversed(tail)]


NAME_OF_OUTER: Final = "\0"
"""The key of a name that a nested record gets from its outer record. The name is already in that record, so it is no new fact."""
DEEPEST: Final = 40
"""Levels of nested JSON that are read as records. Chosen above real results, below the stack limit."""


def _flatten(value: object, label: str, name: str, depth: int, *, member: bool = False) -> Iterator[_Record]:
    """Return the records of a value: each object's own scalars, then the nested ones.

    ``name`` is the name that a record gets if none of its own values is its name. A record that is nested in a member of a list or
    table gets the name of this member: a price needs its article. ``member`` tells that the value is such a member.
    """
    if depth > DEEPEST:
        return
    if isinstance(value, Mapping):
        scalars = [(key, item) for key, item in value.items() if not isinstance(item, (dict, list))]
        if name and not any([item == name for _, item in scalars]):
            scalars.insert(0, ("" if member else NAME_OF_OUTER, name))
        if scalars:
            yield label, scalars
        nested = [(key, item) for key, item in value.items() if isinstance(item, (dict, list))]
        # If all members of an object are objects, it is a table, and its keys are the names of records.
        table = not scalars and len(nested) > 1 and all(isinstance(item, dict) for _, item in nested)
        owner = (name or _identity(scalars)) if member and nested else ""
        for key, item in nested:
            yield from _flatten(item, label if table else key, key if table else owner, depth + 1, member=table)
    elif isinstance(value, list):
        scalars = [("", item) for item in value if not isinstance(item, (dict, list))]
        if scalars:
            yield label, [(NAME_OF_OUTER, name), *scalars] if name else scalars
        for item in value:
            if isinstance(item, (dict, list)):
                yield from _flatten(item, label, "", depth + 1, member=True)


_NAMING_KEYS: Final = ("name", "id", "number", "title", "key", "code")
"""Ends of the keys whose values name a record."""


def _identity(scalars: Sequence[tuple[str, Any]]) -> str:
    """Return the value that names a record; empty without one."""
    return next((str(item) for key, item in scalars if item and names_record(key)), "")


def names_record(key: str) -> bool:
    """Return whether a value under a key names its record."""
    return key.lower().endswith(_NAMING_KEYS)


_SEPARATE_SHAPES: Final = frozenset({NAME, CODE, SYMBOL, DATE, IDENT})
_MOMENT: Final = re.compile(r"(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d")
"""Hours, minutes and seconds, mostly behind a date. A machine notes when it wrote a record; people seldom ask for it."""


def _lines(
    label: str,
    scalars: Sequence[tuple[str, Any]],
    group: int,
    share: float,
    error_words: Sequence[str],
    *,
    words: Words,
) -> Iterator[Line]:
    """Yield the lines of one record: one for each value, in pieces if it is long, and short weak values joined."""
    texts = [item.strip() if type(item) is str else _text(item) for _, item in scalars]
    words_of_values = list(map(words, texts))
    # A value of several words has no shape.
    shapes = [value_words[0].shape if len(value_words) == 1 else None for value_words in words_of_values]
    identity = texts[shapes.index(IDENT)] if IDENT in shapes else ""
    joined: list[str] = []
    joined_words: list[Word] = []
    length = 0
    for (key, _), text, value_words, shape in zip(scalars, texts, words_of_values, shapes, strict=True):
        if not text:
            continue
        if key == NAME_OF_OUTER:
            yield make_line(text, RECORD, value_words, group, 0.0, label)
            continue
        only_identifier = shapes.count(IDENT) == 1 and not text.isdigit()
        bare = not key or explains_itself(key, shape, only_identifier=only_identifier)
        written = text if bare else f"{key}={text}"
        if shape not in _SEPARATE_SHAPES and len(text) <= WEAK_VALUE_CHARACTERS:
            joined.append(written)
            joined_words += value_words
            length += len(written) + 1
            if length >= JOINED_CHARACTERS:
                yield make_line(" ".join(joined), RECORD, tuple(joined_words), group, share, label)
                joined, joined_words, length = [], [], 0
            continue
        error = shape is None and len(text) >= LEAST_ERROR_CHARACTERS and reports_error(text, error_words)
        if len(text) <= MOST_VALUE_CHARACTERS:
            slot = f"{label}\0{identity}\0{key}" if key and identity and text != identity else ""
            yield make_line(written, RECORD, value_words, group, share * _factor(shape, text), label, slot, error=error)
        else:
            yield from _lines_of_long_value(written, group, share, label, error_words if error else None, words=words)
    if joined:
        yield make_line(" ".join(joined), RECORD, tuple(joined_words), group, share, label)


def _lines_of_long_value(
    text: str, group: int, share: float, label: str, error_words: Sequence[str] | None, *, words: Words
) -> Iterator[Line]:
    """Yield a line for each piece of a long value. ``error_words`` is None for a value that reports no error."""
    for number, piece in enumerate(map(str.strip, pieces(text, MOST_VALUE_CHARACTERS))):
        shown = f"{GAP}{piece}" if number else piece
        error = error_words is not None and reports_error(piece, error_words)
        yield make_line(shown, RECORD, words(piece), group, share, label, error=error)


def explains_itself(key: str, shape: Shape | None, *, only_identifier: bool) -> bool:
    """Return whether a value needs no key: the only identifier of a record or a call, or a date under the key ``date``."""
    return (shape is IDENT and only_identifier) or (shape is DATE and key == "date")


def _factor(shape: Shape | None, text: str) -> float:
    """Return the factor for a value of a shape; ``shape`` is None for several words."""
    if shape is IDENT:
        return IDENTIFIER_OF_RECORD
    return MOMENT_FACTOR if shape is DATE and _MOMENT.match(text) else 1.0


def _text(item: Any) -> str:
    """Return a scalar of JSON as it is shown: ``2.0`` as ``2``, and null as nothing."""
    if isinstance(item, str):
        return item.strip()
    if isinstance(item, bool):
        return "true" if item else "false"
    if item is None:
        return ""
    return str(int(item)) if isinstance(item, float) and item.is_integer() and abs(item) < 1e15 else str(item)
