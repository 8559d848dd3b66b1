"""JSON read as records: each value that could be needed, with what it belongs to, in as few tokens as it takes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gateway.context.signals import reports_error
from gateway.context.words import Kind, Word, distinct, words

MOST_LEAVES: Final = 1200
"""Values of one message that are looked at, two thirds of them from its head."""
REST: Final = 90
"""Characters of values that only count together: amounts, flags, short numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """One value, or a few weak ones, of one record."""

    text: str
    words: tuple[Word, ...]
    size: float
    group: int
    label: str
    slot: str = ""
    error: bool = False
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class _Record:
    label: str
    values: tuple[tuple[str, Any], ...]
    """(key, scalar) in order; the key is empty for the members of a list."""


def records(value: object) -> list[Leaf]:
    """Read a JSON value as the leaves of its records, in order."""
    found = list(_flatten(value, "", ""))
    leaves = sum(len(record.values) for record in found)
    share = min(1.0, (60 / max(leaves, 1)) ** 0.5)
    if leaves > MOST_LEAVES:
        found = _fewer(found)
    out: list[Leaf] = []
    for group, record in enumerate(found, 1):
        out += _leaves(record, group, share)
    return out


def _fewer(found: Sequence[_Record]) -> list[_Record]:
    head: list[_Record] = []
    tail: list[_Record] = []
    left = MOST_LEAVES * 2 // 3
    for record in found:
        if left <= 0:
            break
        head.append(_Record(record.label, record.values[:left]))
        left -= len(record.values)
    left = MOST_LEAVES // 3
    for record in reversed(found[len(head) :]):
        if left <= 0:
            break
        tail.append(_Record(record.label, record.values[-left:]))
        left -= len(record.values)
    return [*head, *reversed(tail)]


def _flatten(value: object, label: str, name: str) -> Iterator[_Record]:
    """The records of a value: each object's own scalars, then what is nested in it."""
    if isinstance(value, Mapping):
        scalars = [(str(key), item) for key, item in value.items() if not isinstance(item, (dict, list))]
        if name and not any(item == name for _, item in scalars):
            scalars.insert(0, ("", name))
        if scalars:
            yield _Record(label, tuple(scalars))
        nested = [(str(key), item) for key, item in value.items() if isinstance(item, (dict, list))]
        # An object whose members are alike is a table by name: its keys are values.
        table = len(nested) > 1 and all(isinstance(item, dict) for _, item in nested) and len(scalars) == 0
        for key, item in nested:
            yield from _flatten(item, label if table else key, key if table else "")
    elif isinstance(value, list):
        scalars = [("", item) for item in value if not isinstance(item, (dict, list))]
        if scalars:
            yield _Record(label, tuple(scalars))
        for item in value:
            if isinstance(item, (dict, list)):
                yield from _flatten(item, label, "")


def _leaves(record: _Record, group: int, share: float) -> Iterator[Leaf]:
    read = [(key, _text(item), distinct(words(_text(item)))) for key, item in record.values]
    kinds = [found[0].kind if len(found) == 1 else None for _, _, found in read]
    identity = next((text for (_, text, _), kind in zip(read, kinds, strict=True) if kind == Kind.IDENT), "")
    rest: list[tuple[str, tuple[Word, ...]]] = []
    length = 0
    for (key, text, found), kind in zip(read, kinds, strict=True):
        if not text:
            continue
        # A value whose shape says what it is needs no key: the one identifier or the one date of a record.
        bare = not key or (kind in (Kind.IDENT, Kind.DATE) and kinds.count(kind) == 1)
        written = text if bare else f"{key}={text}"
        if kind in (None, Kind.CODE, Kind.SYMBOL, Kind.DATE, Kind.IDENT, Kind.NAME) or len(text) > 4:
            slot = f"{record.label}\0{identity}\0{key}" if key and identity and text != identity else ""
            for piece in _split(written):
                words_of = found if len(written) <= _LONG else distinct(words(piece))
                yield Leaf(piece, words_of, size_of(piece), group, record.label, slot, reports_error(piece), share)
            continue
        rest.append((written, found))
        length += len(written) + 1
        if length >= REST:
            yield _weak(rest, group, record.label, share)
            rest, length = [], 0
    if rest:
        yield _weak(rest, group, record.label, share)


def _weak(rest: Sequence[tuple[str, tuple[Word, ...]]], group: int, label: str, share: float) -> Leaf:
    text = " ".join(written for written, _ in rest)
    return Leaf(text, distinct(word for _, found in rest for word in found), size_of(text), group, label, share=share)


_LONG: Final = 300


def _split(text: str) -> Iterator[str]:
    """A long text inside JSON in pieces, at spaces."""
    start = 0
    while len(text) - start > _LONG:
        space = max(
            text.rfind(" ", start + _LONG // 2, start + _LONG), text.rfind("\n", start + _LONG // 2, start + _LONG)
        )
        end = space if space > 0 else start + _LONG
        yield text[start:end].strip()
        start = end
    yield text[start:].strip()


def _text(item: Any) -> str:
    if isinstance(item, str):
        return item.strip()
    if isinstance(item, bool) or item is None:
        return str(item).lower() if item is not None else ""
    return f"{int(item)}" if isinstance(item, float) and item.is_integer() and abs(item) < 1e15 else str(item)


def size_of(text: str) -> float:
    """About how many tokens a text takes, without counting: digits and capitals are dearer than words."""
    length = len(text)
    if length > 4000:
        return length / 3.6
    dear = sum(1 for char in text if char in _DEAR) if length < 200 else length // 5
    wide = 0 if text.isascii() else sum(1 for char in text if char > "\u0400")
    return (length + dear * 0.9 + wide * 1.5) / 4.2


_DEAR: Final = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_=:/-;.,()")
