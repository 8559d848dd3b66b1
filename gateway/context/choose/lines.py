"""Split a message into lines: sentences, records, calls and rows of output, from which a fold chooses.

Reading is a pure function of one message and is cached, so a grown conversation costs only its new messages.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from sys import getsizeof
from typing import Final

import orjson

from gateway.context.choose import wishes
from gateway.context.choose.cues import binding, errors_in, reports_error
from gateway.context.choose.line import (
    CALL,
    FIRST_CALL,
    MOST_LINES,
    OUTPUT,
    RECORD,
    SAID,
    Line,
    few_of_many,
    make,
    pieces,
)
from gateway.context.choose.records import explains_itself, records
from gateway.context.choose.words import IDENT, Shape, Words, lexicon_of
from gateway.wire.facts import Interned, MessageFacts, facts_of
from gateway.wire.memory import Memory
from gateway.wire.message import RESULT_ROLES, Message, call_arguments, call_name, canonical, text_of, tool_calls

UNIT: Final = 220
"""Characters up to which short sentences stay together; longer ones are separate lines."""
ALONE: Final = 80
"""Characters from which a user's sentence is a separate line."""
BINDS: Final = 1.1
"""Points of `cues.binding` from which a user's sentence is a line by itself: more than one weak sign."""
LONGEST_LINE: Final = 360
"""Characters. A longer sentence or row is quoted in pieces."""

LINE_BYTES: Final = 300
"""Bytes of a line beside its text and its words: a tuple of ten members, its size, its words as a tuple, headers
(``sys.getsizeof``, CPython 3.11)."""
WORD_BYTES: Final = 8
"""Bytes of one more word in a line; the words themselves are shared."""


WISH_CUES_BYTES: Final = 260
"""Bytes of what a line says of wishes: two tuples, two numbers, one byte a class (the same way)."""


def read(message: Message, memory: Memory | None = None) -> tuple[Line, ...]:
    """Read a message as lines, or recall its lines: with the message where it is interned, else by its content."""
    if type(message) is Interned:
        facts: MessageFacts[Line] = message.facts
        if facts.lines is None:
            facts.lines = _read_whole(message, memory)
            facts.grow(bytes_of(facts.lines))
        return facts.lines
    if memory is None:
        return _read_whole(message, None)
    content = message.get("content")
    plain = isinstance(content, str) and "tool_calls" not in message and "function_call" not in message
    key = ("lines", message.get("role"), content) if plain else ("lines", canonical(message))
    found: tuple[Line, ...] | None = memory.get(key)
    if found is None:
        found = _read_whole(message, memory)
        memory.put(key, found, getsizeof(key[-1]) + bytes_of(found))
    return found


def bytes_of(lines: Sequence[Line]) -> int:
    """Return about how many bytes lines take."""
    wish_cues = sum([line.wish_cues is not wishes.NO_WISH_CUES for line in lines])
    return WISH_CUES_BYTES * wish_cues + sum(
        [LINE_BYTES + getsizeof(line.text) + WORD_BYTES * len(line.words) for line in lines]
    )


def facts(message: Message, memory: Memory | None = None) -> frozenset[str]:
    """Return all facts in a message, as `Word.key`."""
    known: MessageFacts[Line] = facts_of(message)
    if known.keys is None:
        known.keys = frozenset([word.key for line in read(message, memory) for word in line.words])
        known.grow(getsizeof(known.keys))
    return known.keys


def _read_whole(message: Message, memory: Memory | None) -> tuple[Line, ...]:
    return tuple(_read(message, lexicon_of(memory)))


def _read(message: Message, words: Words) -> Iterator[Line]:
    role = message.get("role")
    text = text_of(message)
    if role in RESULT_ROLES:
        yield from _result(text, words)
    else:
        yield from _spoken(_ends(text), words, user=role == "user")
    # The text of a message comes before its calls, and their results come behind them.
    for number, call in enumerate(tool_calls(message), FIRST_CALL):
        yield _call(call_name(call), call_arguments(call), number, words)


LONGEST_SPOKEN: Final = MOST_LINES * LONGEST_LINE
"""Characters of a message that are split into sentences; no more lines are kept of it than these hold."""


def _ends(text: str) -> str:
    """Return a text, of a huge one its head and its tail."""
    half = LONGEST_SPOKEN // 2
    return text if len(text) <= LONGEST_SPOKEN else f"{text[:half]}\n{text[-half:]}"


FENCE: Final = "```"
LEAST_BLOCK: Final = 3
"""Rows from which a fenced block is told by one line, and its rows are output: fewer are the speaker's own words."""
_DECLARED: Final = re.compile(
    r"^[^\S\n]*(?:export |public |async |static )*(?:class|def|function|func|fn|interface|struct|CREATE \w+) +([\w.]+)",
    re.M | re.I,
)
MOST_DECLARED: Final = 4
"""Names in the line about a block."""
_LANGUAGE: Final = re.compile(r"\A[\w+#.-]{0,20}[^\S\n]*\n")
"""The first row of a fenced block: its language, or nothing."""


def _spoken(text: str, words: Words, *, user: bool) -> Iterator[Line]:
    """Return the lines of a speaker: sentences, and for each fenced block a line about it, with its rows as output."""
    split = _statements if user else _answered
    if FENCE not in text:
        yield from _said(list(split(text)), 1, words, user=user)
        return
    for number, part in enumerate(text.split(FENCE)):
        block = number % 2 == 1
        if block and part.count("\n") >= LEAST_BLOCK:
            yield from _block(part, words, user=user, group=number + 1)
        else:
            bare = _LANGUAGE.sub("", part, 1) if block else part
            yield from _said(list(split(bare)), 1, words, user=user)


def _block(part: str, words: Words, *, user: bool, group: int) -> Iterator[Line]:
    """Return one line that says what a fenced block is, and its rows."""
    made = "pasted" if user else "wrote"
    language, _, block = part.partition("\n")
    rows = block.strip("\n").count("\n") + 1
    names = ", ".join(list(dict.fromkeys(_DECLARED.findall(block)))[:MOST_DECLARED])
    told = f"[{made} {rows} rows{f' of {language.strip()}' if language.strip() else ''}{f': {names}' if names else ''}]"
    yield make(told, SAID, words(names), 1, wish_cues=wishes.NO_WISH_CUES)  # its words are ours: they tell no wish
    for line in _output(block, words):
        yield line._replace(group=line.group + group * MOST_LINES)


def _call(name: str, arguments: str, group: int, words: Words) -> Line:
    """Return a call as one line: its name and its arguments, without the JSON around them."""
    value = _json(arguments)
    written = _flat_arguments(value, words) if isinstance(value, dict) else arguments
    found = words(" ".join(_values(value)) if isinstance(value, dict) else arguments[:2000])
    if len(written) > LONGEST_LINE:
        written = f"{written[: LONGEST_LINE * 2 // 3]} … {written[-LONGEST_LINE // 3 :]}"
    return make(f"{name}({written})", CALL, found, group)


def _flat_arguments(value: dict[str, object], words: Words) -> str:
    """Return arguments as text. A key is left out where the shape of its value says as much, as in a record."""
    texts = {key: _flat(item) for key, item in value.items()}
    kinds = [_kind(text, words) for text in texts.values()]
    alone = kinds.count(IDENT) == 1
    return ", ".join(
        text if explains_itself(key, kind, alone=alone) else f"{key}={text}"
        for (key, text), kind in zip(texts.items(), kinds, strict=True)
    )


def _kind(text: str, words: Words) -> Shape | None:
    """Return the shape of a value that is one word and no plain number; None for any other."""
    found = words(text) if len(text) <= LONGEST_LINE and not text.isdigit() else ()
    return found[0].kind if len(found) == 1 else None


def _flat(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(_flat(item) for item in value.values())
    if isinstance(value, list):
        written = list(map(_flat, value))
        # Words of a command are read with spaces between them, as they are typed.
        words = all([type(item) is str and item and " " not in item for item in value])
        return (" " if words else "; ").join(written)
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


def _result(text: str, words: Words) -> Iterator[Line]:
    value = _json(text)
    if not isinstance(value, (dict, list)):
        yield from _output(text, words)
        return
    if value:
        yield from records(value, errors_in(text), words)
    else:
        # That nothing was found is a result.
        yield make(text, RECORD, (), 1)


def _output(text: str, words: Words) -> Iterator[Line]:
    """Return rows of output: logs, code, tables, diffs. Of many rows, those of one shape share their worth."""
    rows = [row for row in _rows(text.split("\n")) if row.strip()]
    if len(rows) > MOST_LINES:
        head = MOST_LINES * 2 // 3
        rows = [*rows[:head], *rows[head - MOST_LINES :]]
    shapes = [_DIGITS.sub("0", row[:80]) for row in rows]
    alike: dict[str, int] = {}
    for shape in shapes:
        alike[shape] = alike.get(shape, 0) + 1
    many = few_of_many(len(rows))
    errors = errors_in(text)
    for number, (row, shape) in enumerate(zip(rows, shapes, strict=True), 1):
        error = reports_error(row, errors)
        yield make(row.strip(), OUTPUT, words(row), number, many / alike[shape], error=error)


_DIGITS: Final = re.compile(r"\d+")


def _rows(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        if len(line) <= LONGEST_LINE:
            yield line
        else:
            yield from pieces(line, LONGEST_LINE)


_STOP: Final = re.compile(r"""[.!?…。！？；](?:(?<=[。！？；])|["'”’)\]]*\s+)""")
_SHORTENED: Final = re.compile(r"(?:^|[\s(\"'“‘])(?:(?:[^\W\d_]\.)*[^\W\d_]|[A-Z][a-z])$")
"""Text before a full stop that ends no sentence: an initial, letters with stops (e.g., z.B.), a title (Dr., Nr.)."""


def _stops(line: str) -> Iterator[str]:
    """Return the sentences of a line. A small letter continues a sentence, unless most sentences of the text begin with
    one."""
    stops = list(_STOP.finditer(line))
    small = [line[stop.end() : stop.end() + 1].islower() for stop in stops]
    casual = sum(small) * 2 >= sum([stop.end() < len(line) for stop in stops])
    start = 0
    for stop, goes_on in zip(stops, small, strict=True):
        mark, end = stop[0][0], stop.end()
        if goes_on and mark in ".…" and (not casual or line[stop.start() - 1 : stop.start()].isdigit()):
            continue
        if mark == "." and (
            line[start : stop.start()].isdigit()
            or _SHORTENED.search(line, max(start - 1, stop.start() - 8, 0), stop.start())
        ):
            continue
        yield line[start:end].strip()
        start = end
    if rest := line[start:].strip():
        yield rest


def _together(line: str, *, user: bool) -> Iterator[str]:
    """Return the sentences of a line, short ones joined; a user's binding sentence, or one with a number, stays
    separate."""
    grown, taken = "", 0
    for sentence in chain.from_iterable(pieces(stop, LONGEST_LINE) for stop in _stops(line)):
        piece = sentence.strip()
        length = _length(piece)
        alone = user and (length > ALONE or binding(piece) > BINDS or _DIGITS.search(piece) is not None)
        if grown and (alone or taken + length > UNIT):
            yield grown
            grown, taken = "", 0
        grown, taken = f"{grown} {piece}" if grown else piece, taken + length
        if alone:
            yield grown
            grown, taken = "", 0
    if grown:
        yield grown


_WIDE: Final = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
WIDE: Final = 3
"""Letters that a character of a script without spaces, or of Korean, counts as: it says about so much."""


def _length(text: str) -> int:
    """Return the characters of a text, with dense scripts counted as the letters they stand for."""
    return len(text) if text.isascii() else len(text) + (WIDE - 1) * len(_WIDE.findall(text))


def _statements(text: str) -> Iterator[str]:
    """Return the sentences of a user."""
    for line in text.split("\n"):
        yield from _together(line.strip(), user=True)


_BULLET: Final = re.compile(r"\A[-*•#>]+\s+")
"""The mark of a list's item; a number stays, for people say "the second one"."""
_BULLETS: Final = frozenset("-*•#>")
_BOLD: Final = re.compile(r"(?<![A-Za-z0-9_])\*\*(?=\S)(.+?)(?<=\S)\*\*(?![A-Za-z0-9_])")
"""Words in bold; ``2**3`` and ``**options`` are none, and underscores belong to names such as ``__init__``."""


def _answered(text: str) -> Iterator[str]:
    """Return an answer as lines, long ones as sentences, without layout marks, which cost tokens and say nothing."""
    if "**" in text:
        text = _BOLD.sub(r"\1", text)
    if "`" in text:
        text = text.replace("`", "")
    for line in text.split("\n"):
        bare = line.strip()
        if bare[:1] in _BULLETS:
            bare = _BULLET.sub("", bare, 1)
        if len(bare) > UNIT:
            yield from _together(bare, user=False)
        elif bare:
            yield bare


SKIMMED: Final = 180
"""Characters of a long old message that are read when the folded part is too large to be read in full."""


def skim(message: Message, memory: Memory | None = None) -> tuple[Line, ...]:
    """Read the head and the tail of a long answer or result; anything else in full."""
    return read(message, memory) if message.get("role") == "user" else glance(message, memory)


def glance(message: Message, memory: Memory | None = None) -> tuple[Line, ...]:
    """Read the head and the tail of a long message, a user's too."""
    text = text_of(message)
    if len(text) <= SKIMMED:
        return read(message, memory)
    known: MessageFacts[Line] = facts_of(message)
    if known.ends is None:
        known.ends = _skim(message, text, memory)
        known.grow(bytes_of(known.ends))
    return known.ends


def _skim(message: Message, text: str, memory: Memory | None) -> tuple[Line, ...]:
    head, tail = text[: SKIMMED * 2 // 3], text[-SKIMMED // 3 :]
    return _read_whole({**message, "content": f"{head}\n{tail}"}, memory)


def _said(said: Sequence[str], group: int, words: Words, *, user: bool) -> Iterator[Line]:
    if len(said) > MOST_LINES:
        said = [*said[: MOST_LINES // 2], *said[-MOST_LINES // 2 :]]
    # A user who pastes a file or a log writes few own words.
    share = few_of_many(len(said))
    for piece in said:
        bound = binding(piece) * share if user else 0.0
        wish_cues = wishes.wish_cues(piece) if user and share == 1.0 else wishes.NO_WISH_CUES
        yield make(piece, SAID, words(piece), group, share, binding=bound, wish_cues=wish_cues)
