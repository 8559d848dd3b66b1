"""A call as one line: its name and its arguments, without the JSON around them."""

from collections.abc import Iterator
from itertools import chain
from typing import Final

from gateway.context.read.line import CALL, MOST_LINE_CHARACTERS, Line, make_line
from gateway.context.read.records import explains_itself, parsed
from gateway.context.read.words import IDENT, SYMBOL, Shape, Word, Words

MOST_ARGUMENT_CHARACTERS: Final = 80
"""The most characters of an argument in one row whose words may name something by themselves: the only word of the argument (a path, an
order's number), and the paths of a command. Longer arguments are texts and pieces of code."""


def call_line(name: str, arguments: str, group: int, words: Words) -> Line:
    """Return the line of a call."""
    value = parsed(arguments)
    written = _arguments_text(value, words) if isinstance(value, dict) else arguments
    found = words(" ".join(_values(value)) if isinstance(value, dict) else arguments[:2000])
    if len(written) > MOST_LINE_CHARACTERS:
        written = f"{written[: MOST_LINE_CHARACTERS * 2 // 3]} … {written[-MOST_LINE_CHARACTERS // 3 :]}"
    return make_line(f"{name}({written})", CALL, found, group, arguments=_naming_words(value, words))


def _naming_words(arguments: object, words: Words) -> tuple[Word, ...]:
    """Return the words of a call's arguments that name something by themselves, each once."""
    named: dict[str, Word] = {}
    for text in _short_values(arguments):
        found = words(text)
        named.update([(word.key, word) for word in found if len(found) == 1 or word.shape is SYMBOL])
    return tuple(named.values())


def _short_values(value: object) -> Iterator[str]:
    """Yield the texts and numbers of a JSON value that are short enough to name something. A list of texts is one text in parts, such as
    the words of a command."""
    if isinstance(value, dict) or (isinstance(value, list) and any([type(item) is not str for item in value])):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _short_values(item)
        return
    texts = list(_values(value))
    if sum(map(len, texts)) <= MOST_ARGUMENT_CHARACTERS and not any(["\n" in text for text in texts]):
        yield from texts


def _arguments_text(value: dict[str, object], words: Words) -> str:
    """Return arguments as text. A key is left out if the shape of its value explains it, as in a record."""
    texts = {key: _flat_text(item) for key, item in value.items()}
    shapes = [_shape_of(text, words) for text in texts.values()]
    only_identifier = shapes.count(IDENT) == 1
    return ", ".join(
        text if explains_itself(key, shape, only_identifier=only_identifier) else f"{key}={text}"
        for (key, text), shape in zip(texts.items(), shapes, strict=True)
    )


def _shape_of(text: str, words: Words) -> Shape | None:
    """Return the shape of a value that is one word and not a plain number; None for any other value."""
    found = words(text) if len(text) <= MOST_LINE_CHARACTERS and not text.isdigit() else ()
    return found[0].shape if len(found) == 1 else None


def _flat_text(value: object) -> str:
    """Return a JSON value as text, without keys and marks of JSON."""
    if isinstance(value, dict):
        return " ".join(_flat_text(item) for item in value.values())
    if isinstance(value, list):
        written = list(map(_flat_text, value))
        # Words of a command are read with spaces between them, as they are typed.
        words = all([type(item) is str and item and " " not in item for item in value])
        return (" " if words else "; ").join(written)
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


def _values(value: object) -> Iterator[str]:
    """Yield the texts and numbers in a JSON value."""
    if isinstance(value, dict):
        yield from chain.from_iterable(map(_values, value.values()))
    elif isinstance(value, list):
        yield from chain.from_iterable(map(_values, value))
    elif not isinstance(value, bool) and value is not None:
        yield str(value)
