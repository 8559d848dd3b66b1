"""Split a message into lines: sentences, records, calls and rows of output, from which a fold chooses.

Reading is a pure function of one message and is cached. In a conversation that has grown, only new messages are read.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from sys import getsizeof
from typing import Final

import orjson

from gateway.context.read import pasted, wishes
from gateway.context.read.cues import binding, binding_points, errors_in, reports_error, sentence_of
from gateway.context.read.line import (
    CALL,
    FIRST_CALL,
    MOST_LINES,
    OUTPUT,
    RECORD,
    SENTENCE,
    Line,
    make,
    pieces,
    share_of_one_in,
)
from gateway.context.read.records import explains_itself, records
from gateway.context.read.words import IDENT, Shape, Words, lexicon_of
from gateway.wire import exact_json
from gateway.wire.facts import Interned, MessageFacts, facts_of
from gateway.wire.memory import Memory
from gateway.wire.message import RESULT_ROLES, Message, call_arguments, call_name, canonical, text_of, tool_calls

JOINED_CHARACTERS: Final = 220
"""The most characters of a line of joined short sentences."""
SEPARATE_SENTENCE_CHARACTERS: Final = 80
"""A user's sentence with more characters is a separate line."""
LEAST_BINDING_POINTS: Final = 1.1
"""A user's sentence with more points of `cues.binding` is a separate line: it has more than one weak cue."""
MOST_LINE_CHARACTERS: Final = 360
"""Characters. A longer sentence or row is quoted in pieces."""

LINE_BYTES: Final = 300
"""Bytes of a line without its text and its words: a tuple of eleven members, its size, the tuple of its words, headers
(``sys.getsizeof``, CPython 3.11)."""
WORD_BYTES: Final = 8
"""Bytes of one more word in a line; the words themselves are shared."""


WISH_CUES_BYTES: Final = 260
"""Bytes of the wish cues of a line: two tuples, two numbers, one byte for each class (measured the same way)."""


def read(message: Message, memory: Memory | None = None) -> tuple[Line, ...]:
    """Read a message as lines, or return its cached lines. They are cached with an interned message, and by the content of
    any other."""
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
    """Return the approximate bytes of lines."""
    with_cues = sum([line.wish_cues is not wishes.NO_WISH_CUES for line in lines])
    return WISH_CUES_BYTES * with_cues + sum(
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
    """Yield the lines of a message: of its text, and one for each of its calls."""
    role = message.get("role")
    text = text_of(message)
    if role in RESULT_ROLES:
        yield from _result_lines(text, words)
    else:
        yield from _message_lines(head_and_tail(text), words, user=role == "user")
    for number, call in enumerate(tool_calls(message), FIRST_CALL):
        yield _call_line(call_name(call), call_arguments(call), number, words)


MOST_PROSE_CHARACTERS: Final = MOST_LINES * MOST_LINE_CHARACTERS
"""The most characters of a message that are split into sentences: as many as the most lines can have."""


def head_and_tail(text: str) -> str:
    """Return the head and the tail of a huge text; any other text as it is."""
    half = MOST_PROSE_CHARACTERS // 2
    return text if len(text) <= MOST_PROSE_CHARACTERS else f"{text[:half]}\n{text[-half:]}"


_DECLARATION: Final = re.compile(
    r"^[^\S\n]*(?:export |public |async |static )*(?:class|def|function|func|fn|interface|struct|CREATE \w+) +([\w.]+)",
    re.M | re.I,
)
MOST_DECLARED_NAMES: Final = 4
"""The most names in the line about a block."""


def _message_lines(text: str, words: Words, *, user: bool) -> Iterator[Line]:
    """Return the lines of a speaker: sentences, and for each pasted block a line about it, with its rows as output."""
    split = _user_sentences if user else _answer_lines
    for number, part in enumerate(pasted.parts_of(text), 1):
        if part.is_block:
            yield from _block_lines(part, words, user=user, group=number)
        else:
            yield from _prose_lines(list(split(part.text)), 1, words, user=user)


def _block_lines(part: pasted.Part, words: Words, *, user: bool, group: int) -> Iterator[Line]:
    """Return one line about a block, and its rows."""
    verb = "pasted" if user else "wrote"
    rows = part.text.strip("\n").count("\n") + 1
    names = ", ".join(list(dict.fromkeys(_DECLARATION.findall(part.text)))[:MOST_DECLARED_NAMES])
    description = f"[{verb} {rows} rows{f' of {part.name}' if part.name else ''}{f': {names}' if names else ''}]"
    yield make(description, SENTENCE, words(names), 1, wish_cues=wishes.NO_WISH_CUES)  # the words are not the user's
    for line in _output_lines(part.text, words):
        yield line._replace(group=line.group + group * MOST_LINES)


def _call_line(name: str, arguments: str, group: int, words: Words) -> Line:
    """Return a call as one line: its name and its arguments, without the JSON around them."""
    value = _parsed_json(arguments)
    written = _arguments_text(value, words) if isinstance(value, dict) else arguments
    found = words(" ".join(_values(value)) if isinstance(value, dict) else arguments[:2000])
    if len(written) > MOST_LINE_CHARACTERS:
        written = f"{written[: MOST_LINE_CHARACTERS * 2 // 3]} … {written[-MOST_LINE_CHARACTERS // 3 :]}"
    return make(f"{name}({written})", CALL, found, group)


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


def _parsed_json(text: str) -> object:
    """Return the object or the list in a text; None for any other text."""
    if text[:1] not in "{[":
        return None
    try:
        found: object = exact_json.loads(text)
    except orjson.JSONDecodeError:
        return None
    return found


def _result_lines(text: str, words: Words) -> Iterator[Line]:
    """Yield the lines of a tool result: records if it is JSON, else rows of output."""
    value = _parsed_json(text)
    if not isinstance(value, (dict, list)):
        yield from _output_lines(text, words)
        return
    if value:
        yield from records(value, errors_in(text), words)
    else:
        # An empty result says that nothing was found.
        yield make(text, RECORD, (), 1)


def _output_lines(text: str, words: Words) -> Iterator[Line]:
    """Return rows of output: logs, code, tables, diffs. Rows of one shape share their worth."""
    rows = [row for row in _rows(text.split("\n")) if row.strip()]
    if len(rows) > MOST_LINES:
        head = MOST_LINES * 2 // 3
        rows = [*rows[:head], *rows[head - MOST_LINES :]]
    shapes = [_DIGITS.sub("0", row[:80]) for row in rows]
    rows_of_shape: dict[str, int] = {}
    for shape in shapes:
        rows_of_shape[shape] = rows_of_shape.get(shape, 0) + 1
    share = share_of_one_in(len(rows))
    errors = errors_in(text)
    for number, (row, shape) in enumerate(zip(rows, shapes, strict=True), 1):
        error = reports_error(row, errors)
        yield make(row.strip(), OUTPUT, words(row), number, share / rows_of_shape[shape], error=error)


_DIGITS: Final = re.compile(r"\d+")


def _rows(lines: Iterable[str]) -> Iterator[str]:
    """Yield rows of output, each long one in pieces."""
    for line in lines:
        if len(line) <= MOST_LINE_CHARACTERS:
            yield line
        else:
            for part in head_and_tail(line).split("\n"):
                yield from _joined_sentences(part, user=False)


_SENTENCE_END: Final = re.compile(r"""[.!?…。！？；](?:(?<=[。！？；])|["'”’)\]]*\s+)""")
_ABBREVIATION: Final = re.compile(r"(?:^|[\s(\"'“‘])(?:(?:[^\W\d_]\.)*[^\W\d_]|[A-Z][a-z])$")
"""Text before a full stop that does not end a sentence: an initial, letters with stops (e.g., z.B.), a title (Dr., Nr.)."""
LONGEST_NUMBER: Final = 20
"""Characters of a number that begins a sentence (*2. Open the valve*). Longer texts are not looked at: a line may be one sentence of megabytes."""


def _sentences(line: str) -> Iterator[str]:
    """Return the sentences of a line. A small letter continues a sentence, unless most sentences of the text begin with
    one."""
    stops = list(_SENTENCE_END.finditer(line)) if _may_have_stops(line) else []
    begins_small = [line[stop.end() : stop.end() + 1].islower() for stop in stops]
    mostly_small = sum(begins_small) * 2 >= sum([stop.end() < len(line) for stop in stops])
    start = 0
    for stop, continues in zip(stops, begins_small, strict=True):
        mark, end = stop[0][0], stop.end()
        if continues and mark in ".…" and (not mostly_small or line[stop.start() - 1 : stop.start()].isdigit()):
            continue
        if mark == "." and (
            (stop.start() - start <= LONGEST_NUMBER and line[start : stop.start()].isdigit())
            or _ABBREVIATION.search(line, max(start - 1, stop.start() - 8, 0), stop.start())
        ):
            continue
        yield line[start:end].strip()
        start = end
    if rest := line[start:].strip():
        yield rest


def _may_have_stops(line: str) -> bool:
    """Return whether a sentence may end inside a line or at its end. To look for three signs costs a tenth of the pattern."""
    return not line.isascii() or "." in line or "!" in line or "?" in line


def _joined_sentences(line: str, *, user: bool) -> Iterator[str]:
    """Return the sentences of a line, short ones joined; a user's binding sentence, or one with a number, stays
    separate."""
    joined, joined_length = "", 0
    for sentence in chain.from_iterable(pieces(stop, MOST_LINE_CHARACTERS) for stop in _sentences(line)):
        piece = sentence.strip()
        length = _length(piece)
        separate = user and (
            length > SEPARATE_SENTENCE_CHARACTERS
            or binding(piece) > LEAST_BINDING_POINTS
            or _DIGITS.search(piece) is not None
        )
        if joined and (separate or joined_length + length > JOINED_CHARACTERS):
            yield joined
            joined, joined_length = "", 0
        joined, joined_length = f"{joined} {piece}" if joined else piece, joined_length + length
        if separate:
            yield joined
            joined, joined_length = "", 0
    if joined:
        yield joined


_DENSE_CHARACTERS: Final = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
DENSE_CHARACTER_LETTERS: Final = 3
"""Number of letters for which a character counts in Korean and in scripts without spaces."""


def _length(text: str) -> int:
    """Return the characters of a text. Those of dense scripts count as several letters."""
    return (
        len(text)
        if text.isascii()
        else len(text) + (DENSE_CHARACTER_LETTERS - 1) * len(_DENSE_CHARACTERS.findall(text))
    )


def _user_sentences(text: str) -> Iterator[str]:
    """Return the sentences of a user."""
    for line in text.split("\n"):
        yield from _joined_sentences(line.strip(), user=True)


_BULLET: Final = re.compile(r"\A[-*•#>]+\s+")
"""The mark of a list's item. Numbers are kept, because people refer to *the second one*."""
_BULLETS: Final = frozenset("-*•#>")
_BOLD: Final = re.compile(r"(?<![A-Za-z0-9_])\*\*(?=\S)(.+?)(?<=\S)\*\*(?![A-Za-z0-9_])")
"""Words in bold. ``2**3`` and ``**options`` are not bold, and underscores belong to names such as ``__init__``."""


def _answer_lines(text: str) -> Iterator[str]:
    """Return the lines of an answer; long ones are split into sentences. Layout marks are removed: they cost tokens and say
    nothing."""
    if "**" in text:
        text = _BOLD.sub(r"\1", text)
    if "`" in text:
        text = text.replace("`", "")
    for line in text.split("\n"):
        bare = line.strip()
        if bare[:1] in _BULLETS:
            bare = _BULLET.sub("", bare, 1)
        if len(bare) > JOINED_CHARACTERS:
            yield from _joined_sentences(bare, user=False)
        elif bare:
            yield bare


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
    known: MessageFacts[Line] = facts_of(message)
    if known.ends is None:
        known.ends = _read_ends(message, text, memory)
        known.grow(bytes_of(known.ends))
    return known.ends


def _read_ends(message: Message, text: str, memory: Memory | None) -> tuple[Line, ...]:
    """Read the head and the tail of a message's text."""
    head, tail = text[: SKIMMED_CHARACTERS * 2 // 3], text[-SKIMMED_CHARACTERS // 3 :]
    return _read_whole({**message, "content": f"{head}\n{tail}"}, memory)


def _prose_lines(sentences: Sequence[str], group: int, words: Words, *, user: bool) -> Iterator[Line]:
    """Yield a line for each sentence; for a user's, with the cues of a wish."""
    if len(sentences) > MOST_LINES:
        sentences = [*sentences[: MOST_LINES // 2], *sentences[-MOST_LINES // 2 :]]
    # Very many sentences are mostly a pasted file or log, not the user's own words.
    share = share_of_one_in(len(sentences))
    for piece in sentences:
        binding_share, wish_cues = 0.0, wishes.NO_WISH_CUES
        if user:
            sentence = sentence_of(piece)
            binding_share = binding_points(sentence) * share
            if share == 1.0:
                wish_cues = wishes.wish_cues(sentence)
        yield make(piece, SENTENCE, words(piece), group, share, binding=binding_share, wish_cues=wish_cues)
