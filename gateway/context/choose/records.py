"""Read JSON as records: each value that could be needed, with its context, in few tokens."""

import re
from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from typing import Any, Final

from gateway.context.choose.cues import reports_error
from gateway.context.choose.line import GAP, MOST_LINES, RECORD, Line, make, pieces
from gateway.context.choose.weights import IDENTIFIER_OF_RECORD
from gateway.context.choose.words import CODE, DATE, IDENT, NAME, SYMBOL, Shape, Word, Words

REST: Final = 90
"""Characters of weak values (amounts, flags, short numbers) in one line."""
LONG: Final = 300
"""Characters. A longer text inside JSON is read in pieces."""


USUAL: Final = 60
"""Values of a result that count once each: one of more counts less, one of fewer more."""
MOST_SHARE: Final = 1.5
"""What a value of a small result counts at most. From 1.5 on, recall of recorded agents no longer changes, on either half."""

MOMENT: Final = 0.3
"""What a moment or a time of day to the second counts beside a date."""

_Record = tuple[str, list[tuple[str, Any]]]
"""The key of a record, and its (key, scalar) pairs; the key is empty for members of a list."""


def records(value: object, errors: Sequence[str], words: Words) -> Iterator[Line]:
    """Return a JSON value as the lines of its records, in order: each line a value, or a few weak ones.

    ``errors`` are the error words in it.
    """
    found = list(_flatten(value, "", "", 0))
    number = sum([len(scalars) for _, scalars in found])
    share = min(sqrt(USUAL / max(number, 1)), MOST_SHARE)
    if number > MOST_LINES:
        found = _fewer(found)
    for group, (label, scalars) in enumerate(found, 1):
        yield from _lines(label, scalars, group, share, errors, words=words)


def _fewer(found: Sequence[_Record]) -> list[_Record]:
    """Return the head and the tail of very many records."""
    head: list[_Record] = []
    tail: list[_Record] = []
    left = MOST_LINES * 2 // 3
    for label, scalars in found:
        if left <= 0:
            break
        head.append((label, scalars[:left]))
        left -= len(scalars)
    left = MOST_LINES // 3
    for label, scalars in reversed(found[len(head) :]):
        if left <= 0:
            break
        tail.append((label, scalars[-left:]))
        left -= len(scalars)
    return [*head, *reversed(tail)]


NAMED: Final = "\0"
"""In place of a key, before the name of the record that a value is nested in: it stands there too, and is no fact of its own."""
_DEEPEST: Final = 40
"""Levels of nested JSON that are read as records. Chosen above real results, below the stack limit."""


def _flatten(value: object, label: str, name: str, depth: int, *, member: bool = False) -> Iterator[_Record]:
    """Return the records of a value: each object's own scalars, then the nested ones.

    ``name`` names a record whose own values do not. What is nested in one of several records gets that one's name: a price
    needs its article.
    """
    if depth > _DEEPEST:
        return
    if isinstance(value, Mapping):
        scalars = [(key, item) for key, item in value.items() if not isinstance(item, (dict, list))]
        if name and not any([item == name for _, item in scalars]):
            scalars.insert(0, ("" if member else NAMED, name))
        if scalars:
            yield label, scalars
        nested = [(key, item) for key, item in value.items() if isinstance(item, (dict, list))]
        # An object whose members are all objects is a table by name: its keys are values.
        table = not scalars and len(nested) > 1 and all(isinstance(item, dict) for _, item in nested)
        owner = (name or _identity(scalars)) if member and nested else ""
        for key, item in nested:
            yield from _flatten(item, label if table else key, key if table else owner, depth + 1, member=table)
    elif isinstance(value, list):
        scalars = [("", item) for item in value if not isinstance(item, (dict, list))]
        if scalars:
            yield label, [(NAMED, name), *scalars] if name else scalars
        for item in value:
            if isinstance(item, (dict, list)):
                yield from _flatten(item, label, "", depth + 1, member=True)


_NAMING: Final = ("name", "id", "number", "title", "key", "code")
"""Ends of the keys whose values name a record."""


def _identity(scalars: Sequence[tuple[str, Any]]) -> str:
    """Return the value that names a record; empty when none does."""
    return next((str(item) for key, item in scalars if item and names_record(key)), "")


def names_record(key: str) -> bool:
    """Return whether a value under a key names its record."""
    return key.lower().endswith(_NAMING)


_STRONG: Final = frozenset({NAME, CODE, SYMBOL, DATE, IDENT})
_MOMENT: Final = re.compile(r"(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d")
"""Hours, minutes and seconds, mostly behind a date: a machine notes when it wrote a record, people seldom ask."""


def _lines(
    label: str, scalars: Sequence[tuple[str, Any]], group: int, share: float, errors: Sequence[str], *, words: Words
) -> Iterator[Line]:
    texts = [item.strip() if type(item) is str else _text(item) for _, item in scalars]
    found = list(map(words, texts))
    kinds = [some[0].kind if len(some) == 1 else None for some in found]
    identity = texts[kinds.index(IDENT)] if IDENT in kinds else ""
    rest: list[str] = []
    rest_words: list[Word] = []
    length = 0
    for (key, _), text, some, kind in zip(scalars, texts, found, kinds, strict=True):
        if not text:
            continue
        if key == NAMED:
            yield make(text, RECORD, some, group, 0.0, label)
            continue
        only_identifier = kinds.count(IDENT) == 1 and not text.isdigit()
        bare = not key or explains_itself(key, kind, only_identifier=only_identifier)
        written = text if bare else f"{key}={text}"
        if kind in _STRONG or len(text) > 4:
            slot = f"{label}\0{identity}\0{key}" if key and identity and text != identity else ""
            error = kind is None and len(text) > 8 and reports_error(text, errors)
            if len(text) <= LONG:
                counts = share * _factor(kind, text)
                yield make(written, RECORD, some, group, counts, label, slot, 0.0, error)
            else:
                for number, piece in enumerate(map(str.strip, pieces(written, LONG))):
                    failed = error and reports_error(piece, errors)
                    shown = f"{GAP}{piece}" if number else piece
                    yield make(shown, RECORD, words(piece), group, share, label, "", 0.0, failed)
            continue
        rest.append(written)
        rest_words += some
        length += len(written) + 1
        if length >= REST:
            yield make(" ".join(rest), RECORD, tuple(rest_words), group, share, label)
            rest, rest_words, length = [], [], 0
    if rest:
        yield make(" ".join(rest), RECORD, tuple(rest_words), group, share, label)


def explains_itself(key: str, kind: Shape | None, *, only_identifier: bool) -> bool:
    """Return whether a value needs no key: the only identifier of a record or a call, or a date that is just called so."""
    return (kind is IDENT and only_identifier) or (kind is DATE and key == "date")


def _factor(kind: Shape | None, text: str) -> float:
    """Return what a value counts by its shape, as a factor; ``kind`` is None for several words."""
    if kind is IDENT:
        return IDENTIFIER_OF_RECORD
    return MOMENT if kind is DATE and _MOMENT.match(text) else 1.0


def _text(item: Any) -> str:
    if isinstance(item, str):
        return item.strip()
    if isinstance(item, bool):
        return "true" if item else "false"
    if item is None:
        return ""
    return str(int(item)) if isinstance(item, float) and item.is_integer() and abs(item) < 1e15 else str(item)
