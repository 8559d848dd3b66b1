"""A call as one line: its name and its arguments, without the JSON around them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from gateway.context.read.code_calls import CodeCall, code_calls_in
from gateway.context.read.line import CALL, MOST_LINE_CHARACTERS, Line, make_line
from gateway.context.read.records import DEEPEST, explains_itself, parsed
from gateway.context.read.words import IDENT, SYMBOL, Shape, Word, Words, is_file

MOST_ARGUMENT_CHARACTERS: Final = 80
"""The most characters of an argument in one row whose words may name something by themselves: the only word of the argument (a path, an
order's number), and the paths of a command. Longer arguments are texts and pieces of code."""
MOST_FIRST_ROWS: Final = 3
"""The first rows of an argument of several rows whose paths may name something. Chosen: `apply_patch <<'EOF'`, `*** Begin Patch`, and the path."""
MOST_CALL_CHARACTERS: Final = 260
"""The most characters of a call's arguments that are shown. Of more, the longest arguments are cut to one common length."""
LEAST_CUT_CHARACTERS: Final = 30
"""The least characters that are left of an argument. Chosen: a path or the beginning of a row still says what it is."""

_SPACES: Final = re.compile(r"\s+")
_INDENTATION: Final = re.compile(r"\n[ \t]+")
_GAP: Final = "…"
"""The mark for what is left out of an argument."""


def call_line(name: str, arguments: str, group: int, words: Words) -> Line:
    """Return the line of a call. Arguments that are nested too deep are read as text. Of a call that runs code, the calls in it are shown."""
    value = parsed(arguments)
    value = None if _is_deep(arguments, value) else value
    if in_code := code_calls_in(_only_text(arguments, value)):
        return _line_of_code_calls(in_code, group, words)
    if isinstance(value, dict):
        written, facts = _written(value, words, is_long=len(arguments) > MOST_CALL_CHARACTERS)
    else:
        written = facts = arguments
    if len(written) > MOST_LINE_CHARACTERS:
        # What is not shown is no known fact: a result that has it may be the only place.
        written = facts = _cut(written, MOST_LINE_CHARACTERS)
    naming = _naming_words(arguments if value is None else value, words)
    return make_line(f"{name}({written})", CALL, words(facts), group, arguments=naming)


def _only_text(arguments: str, value: object) -> str:
    """Return arguments that are one text; empty for any others."""
    if value is None:
        return arguments
    (only,) = value.values() if isinstance(value, dict) and len(value) == 1 else ("",)
    return only if isinstance(only, str) else ""


def _line_of_code_calls(calls: Sequence[CodeCall], group: int, words: Words) -> Line:
    """Return the line of a call whose code has these calls."""
    shown: list[str] = []
    facts: list[str] = []
    for call in calls:
        written, known = _written(
            call.arguments, words, is_long=sum(map(len, call.arguments.values())) > MOST_CALL_CHARACTERS
        )
        shown.append(f"{call.name}({written})")
        facts.append(known)
    text, known = "; ".join(shown), " ".join(facts)
    if len(text) > MOST_LINE_CHARACTERS:
        text = known = _cut(text, MOST_LINE_CHARACTERS)
    naming = _naming_words([call.arguments for call in calls], words)
    return make_line(text, CALL, words(known), group, arguments=naming)


def _written(arguments: Mapping[str, object], words: Words, *, is_long: bool) -> tuple[str, str]:
    """Return arguments as they are shown, and what is known of them then. Of long ones, the longest are cut."""
    shown = _with_long_ones_cut(arguments) if is_long else arguments
    return _arguments_text(shown, words), " ".join(_values(shown))


def _is_deep(arguments: str, value: object) -> bool:
    """Return whether arguments have more than `DEEPEST` levels."""
    if arguments.count("{") + arguments.count("[") <= DEEPEST:
        return False
    level = [value]
    for _ in range(DEEPEST):
        nested = [each for each in level if isinstance(each, (dict, list))]
        level = [inner for each in nested for inner in (each.values() if isinstance(each, dict) else each)]
    return any([isinstance(each, (dict, list)) for each in level])


def _with_long_ones_cut(arguments: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments, the longest cut to one common length, so that short ones stay whole."""
    texts = _without_common_rows({key: _INDENTATION.sub("\n", _flat_text(value)) for key, value in arguments.items()})
    most = _common_length(list(map(len, texts.values())))
    return {
        key: _cut(text, most) if len(text) > most else text if isinstance(arguments[key], str) else arguments[key]
        for key, text in texts.items()
    }


def _without_common_rows(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the arguments of an edit without the rows at the beginning and at the end that its old and its new text have in common. An edit is a
    call with just two arguments of several rows."""
    rows = {key: text.rstrip("\n").split("\n") for key, text in texts.items() if "\n" in text}
    if len(rows) != 2:
        return dict(texts)
    old, new = rows.values()
    most = min(len(old), len(new)) - 1  # one row of each stays, to say where
    before = next((at for at in range(most) if old[at] != new[at]), most)
    after = next((at for at in range(most - before) if old[-1 - at] != new[-1 - at]), most - before)
    head, tail = [_GAP] if before else [], [_GAP] if after else []
    shown = {key: "\n".join([*head, *each[before : len(each) - after], *tail]) for key, each in rows.items()}
    return {**texts, **shown}


def _common_length(lengths: Sequence[int]) -> int:
    """Return the length to which longer texts are cut, so that all together have about `MOST_CALL_CHARACTERS`."""
    left = MOST_CALL_CHARACTERS
    for number, length in enumerate(sorted(lengths)):
        share = left // (len(lengths) - number)
        if length > share:
            return max(share, LEAST_CUT_CHARACTERS)
        left -= length
    return MOST_CALL_CHARACTERS


def _cut(text: str, characters: int) -> str:
    """Return the head and the tail of a text, at spaces where it has some: half a word is no fact."""
    head, tail = text[: characters * 2 // 3], text[-characters // 3 :]
    head_end = _SPACES.search(head[::-1])
    tail_start = _SPACES.search(tail)
    head = head[: -head_end.end()] if head_end else head
    return f"{head} {_GAP} {tail[tail_start.end() :] if tail_start else tail}"


def _naming_words(arguments: object, words: Words) -> tuple[Word, ...]:
    """Return the words of a call's arguments that name something by themselves, each once."""
    named: dict[str, Word] = {}
    for text in _short_values(arguments):
        found = words(text)
        named.update([(word.key, word) for word in found if len(found) == 1 or _is_path(word)])
    for row in _first_rows(arguments):
        named.update([(word.key, word) for word in words(row) if "/" in word or is_file(word.key)])
    return tuple(named.values())


def _is_path(word: Word) -> bool:
    """Return whether a word looks like a path or an address, also with a digit in it."""
    return word.shape is SYMBOL or (word.shape is IDENT and "/" in word)


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


def _first_rows(arguments: object) -> Iterator[str]:
    """Yield the first rows of each argument of several rows: a patch, or a command that writes a file, has its path there."""
    for text in _values(arguments):
        if "\n" in text:
            rows = text[: MOST_FIRST_ROWS * MOST_ARGUMENT_CHARACTERS].split("\n", MOST_FIRST_ROWS)
            yield from [row for row in rows[:MOST_FIRST_ROWS] if len(row) <= MOST_ARGUMENT_CHARACTERS]


def _arguments_text(value: Mapping[str, object], words: Words) -> str:
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
    if isinstance(value, Mapping):
        yield from chain.from_iterable(map(_values, value.values()))
    elif isinstance(value, list):
        yield from chain.from_iterable(map(_values, value))
    elif not isinstance(value, bool) and value is not None:
        yield str(value)
