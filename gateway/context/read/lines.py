"""Split a message into lines: sentences, records, calls and rows of output, from which a fold chooses.

Reading is a pure function of one message and is cached. In a conversation that has grown, only new messages are read.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from sys import getsizeof
from typing import Final

from msgspec.structs import replace

from gateway.context.read import pasted, sentences, wishes
from gateway.context.read.as_said import parts_of
from gateway.context.read.calls import call_line
from gateway.context.read.cues import binding_points, sentence_of
from gateway.context.read.errors import error_words_in, reports_error
from gateway.context.read.line import (
    FIRST_CALL,
    MOST_LINE_CHARACTERS,
    MOST_LINES,
    OUTPUT,
    RECORD,
    SENTENCE,
    Line,
    head_and_tail,
    make_line,
    share_of_one_in,
)
from gateway.context.read.records import parsed, records
from gateway.context.read.text_results import result_in
from gateway.context.read.view import SENT, calls_of, prose_of
from gateway.context.read.words import Words, bytes_of_pairs, lexicon_of
from gateway.wire.derived import Derived, Interned, derived_of
from gateway.wire.memory import Memory
from gateway.wire.message import RESULT_ROLES, Message, call_arguments, call_name, canonical, text_of

LINE_BYTES: Final = 300
"""Bytes of a line without its text and its words: a structure of twelve fields, its size, the tuple of its words, headers
(``sys.getsizeof``, CPython 3.11)."""
WORD_BYTES: Final = 8
"""Bytes of one more word in a line; the words themselves are shared."""


WISH_CUES_BYTES: Final = 252
"""Bytes of the wish cues of a line: a structure, a tuple, two numbers, one byte for each class (measured the same way)."""


def read(message: Message, memory: Memory | None = None) -> tuple[Line, ...]:
    """Read a message as lines, or return its cached lines. They are cached with an interned message, and by the content of
    any other."""
    if type(message) is Interned:
        derived: Derived[Line] = message.derived
        if derived.lines is None:
            derived.lines = _read_whole(message, memory)
            derived.grow(bytes_of(derived.lines))
        return derived.lines
    if memory is None:
        return _read_whole(message, None)
    key = _key_of(message)
    if key is None:
        return _read_whole(message, memory)
    found: tuple[Line, ...] | None = memory.get(key)
    if found is None:
        found = _read_whole(message, memory)
        memory.put(key, found, getsizeof(key[-1]) + bytes_of(found))
    return found


def _key_of(message: Message) -> tuple[object, ...] | None:
    """Return the key under which the lines of a message are cached; None for one that cannot be written: it is nested too deep, or has halves of
    emoji."""
    content = message.get("content")
    if isinstance(content, str) and "tool_calls" not in message and "function_call" not in message:
        return ("lines", message.get("role"), content, SENT in message)
    try:
        return ("lines", canonical(message))
    except TypeError:
        return None


def bytes_of(lines: Sequence[Line]) -> int:
    """Return the approximate bytes of lines."""
    with_cues = sum([line.wish_cues is not wishes.NO_WISH_CUES for line in lines])
    return WISH_CUES_BYTES * with_cues + sum(
        [
            LINE_BYTES
            + getsizeof(line.text)
            + WORD_BYTES * (len(line.words) + len(line.arguments))
            + bytes_of_pairs(line.text, line.words)
            for line in lines
        ]
    )


def word_keys(message: Message, memory: Memory | None = None) -> frozenset[str]:
    """Return the keys (`Word.key`) of all words in the lines of a message. They are cached with an interned message."""
    known: Derived[Line] = derived_of(message)
    if known.keys is None:
        known.keys = frozenset([word.key for line in read(message, memory) for word in line.words])
        known.grow(getsizeof(known.keys))
    return known.keys


def _read_whole(message: Message, memory: Memory | None) -> tuple[Line, ...]:
    return tuple(_read(message, lexicon_of(memory)))


def _read(message: Message, words: Words) -> Iterator[Line]:
    """Yield the lines of a message: of its text, and one for each of its calls."""
    role = message.get("role")
    text = text_of(message)
    if role in RESULT_ROLES:
        yield from _result_lines(result_in(text) if SENT in message else text, words)
    else:
        yield from _message_lines(_parts(message), words, user=role == "user")
    for number, call in enumerate(calls_of(message), FIRST_CALL):
        yield call_line(call_name(call), call_arguments(call), number, words)


def _parts(message: Message) -> list[pasted.Part]:
    prose = prose_of(message)
    return parts_of(message) if prose is None else pasted.parts_of(head_and_tail(prose))


def _message_lines(parts: Iterable[pasted.Part], words: Words, *, user: bool) -> Iterator[Line]:
    """Return the lines of a speaker: sentences, and for each pasted block a line about it, with its rows as output."""
    split = sentences.of_user if user else sentences.of_answer
    for number, part in enumerate(parts, 1):
        if part.is_block:
            yield from _block_lines(part, words, user=user, group=number)
        else:
            yield from _prose_lines(list(split(part.text)), 1, words, user=user)


def _prose_lines(texts: Sequence[str], group: int, words: Words, *, user: bool) -> Iterator[Line]:
    """Yield a line for each sentence; for a user's, with the cues of a wish."""
    if len(texts) > MOST_LINES:
        texts = [*texts[: MOST_LINES // 2], *texts[-MOST_LINES // 2 :]]
    # Very many texts are mostly a pasted file or log, not the user's own words.
    share = share_of_one_in(len(texts))
    for text in texts:
        points, wish_cues = 0.0, wishes.NO_WISH_CUES
        if user:
            sentence = sentence_of(text)
            points = binding_points(sentence) * share
            if share == 1.0:
                wish_cues = wishes.wish_cues(sentence)
        yield make_line(text, SENTENCE, words(text), group, share, binding=points, wish_cues=wish_cues)


_DECLARATION: Final = re.compile(
    r"^[^\S\n]*(?:export |public |async |static )*(?:class|def|function|func|fn|interface|struct|CREATE \w+) +([\w.]+)",
    re.M | re.I,
)
MOST_DECLARED_NAMES: Final = 4
"""The most names in the line about a block."""


def _block_lines(part: pasted.Part, words: Words, *, user: bool, group: int) -> Iterator[Line]:
    """Yield one line about a block, if it has more than a few rows, and its rows."""
    rows = part.text.strip("\n").count("\n") + 1
    if rows >= pasted.LEAST_BLOCK_ROWS:
        yield _block_description(part, rows, words, user=user)
    label = part.name if pasted.is_reminder(part.name) else ""
    for line in _output_lines(part.text, words):
        yield replace(line, group=line.group + group * MOST_LINES, label=label)


def _block_description(part: pasted.Part, rows: int, words: Words, *, user: bool) -> Line:
    """Return the line about a block: its rows, its name and what it declares."""
    verb = "pasted" if user else "wrote"
    names = ", ".join(list(dict.fromkeys(_DECLARATION.findall(part.text)))[:MOST_DECLARED_NAMES])
    description = f"[{verb} {rows} rows{f' of {part.name}' if part.name else ''}{f': {names}' if names else ''}]"
    return make_line(description, SENTENCE, words(names), 1)  # without wish cues: the words are not the user's


def _result_lines(text: str, words: Words) -> Iterator[Line]:
    """Yield the lines of a tool result: records if it is JSON, else rows of output. Output in a member of JSON is read as rows, behind the
    other members."""
    value = parsed(text)
    if not isinstance(value, (dict, list)):
        yield from _output_lines(text, words)
    elif isinstance(value, dict) and (key := _key_of_output(value, len(text))):
        groups = 0
        for line in records({each: value[each] for each in value if each != key}, error_words_in(text), words):
            groups = line.group
            yield line
        yield from _output_lines(value[key], words, groups)
    elif value:
        yield from records(value, error_words_in(text), words)
    else:
        # An empty result says that nothing was found.
        yield make_line(text, RECORD, (), 1)


LEAST_OUTPUT_ROWS: Final = 3
"""The least rows of a text in JSON that is read as output. Chosen: fewer are a sentence or an address."""


def _key_of_output(value: Mapping[str, object], characters: int) -> str:
    """Return the key of the text that is most of a JSON object with so many characters, if it alone has several rows; else nothing."""
    keys = [key for key, text in value.items() if isinstance(text, str) and text.count("\n") >= LEAST_OUTPUT_ROWS - 1]
    return keys[0] if len(keys) == 1 and 2 * len(str(value[keys[0]])) > characters else ""


_DIGITS: Final = re.compile(r"\d+")
_TERMINAL: Final = re.compile(r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|\][^\x07\x1b\n]*+(?:\x07|\x1b\\)|[@-Z\\^_])")
"""What tells a terminal how to show a text: colours, positions, links (ECMA-48). It says nothing, and splits words."""


def _output_lines(text: str, words: Words, groups_before: int = 0) -> Iterator[Line]:
    """Return rows of output: logs, code, tables, diffs. Rows of one shape share their worth."""
    if "\x1b" in text:
        text = _TERMINAL.sub("", text)
    rows = [row for row in _rows(text.split("\n")) if row.strip()]
    if len(rows) > MOST_LINES:
        head = MOST_LINES * 2 // 3
        rows = [*rows[:head], *rows[head - MOST_LINES :]]
    shapes = [_DIGITS.sub("0", row[:80]) for row in rows]
    rows_of_shape: dict[str, int] = {}
    for shape in shapes:
        rows_of_shape[shape] = rows_of_shape.get(shape, 0) + 1
    share = share_of_one_in(len(rows))
    error_words = error_words_in(text)
    for number, (row, shape) in enumerate(zip(rows, shapes, strict=True), groups_before + 1):
        error = reports_error(row, error_words)
        yield make_line(row.strip(), OUTPUT, words(row), number, share / rows_of_shape[shape], error=error)


def _rows(lines: Iterable[str]) -> Iterator[str]:
    """Yield rows of output, each long one in pieces."""
    for line in lines:
        if len(line) <= MOST_LINE_CHARACTERS:
            yield line
        else:
            for part in head_and_tail(line).split("\n"):
                yield from sentences.joined(part, user=False)


SKIMMED_CHARACTERS: Final = 180
"""Characters that are read of a long old message if the folded part is too large to be read in full."""


def skim_unless_user(message: Message, memory: Memory | None = None) -> tuple[Line, ...]:
    """Read the head and the tail of a long answer or result, and a user's message in full."""
    return read(message, memory) if message.get("role") == "user" else skim(message, memory)


def skim(message: Message, memory: Memory | None = None) -> tuple[Line, ...]:
    """Read only the head and the tail of a long message."""
    text = text_of(message)
    if len(text) <= SKIMMED_CHARACTERS:
        return read(message, memory)
    known: Derived[Line] = derived_of(message)
    if known.ends is None:
        known.ends = _read_ends(message, text, memory)
        known.grow(bytes_of(known.ends))
    return known.ends


def _read_ends(message: Message, text: str, memory: Memory | None) -> tuple[Line, ...]:
    """Read the head and the tail of a message's text."""
    head, tail = text[: SKIMMED_CHARACTERS * 2 // 3], text[-SKIMMED_CHARACTERS // 3 :]
    return _read_whole({**message, "content": f"{head}\n{tail}"}, memory)
