"""A message read as lines: what is chosen, ranked, searched and quoted when a conversation is folded."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import orjson

from providers.wire import Message, call_arguments, call_name, text_of, tool_calls

LONGEST: Final = 160


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a message: its text and the facts in it."""

    text: str
    role: str
    kind: str
    facts: tuple[tuple[str, float], ...]


def read(message: Message) -> tuple[Line, ...]:
    """Read a message as lines."""
    role = str(message.get("role"))
    lines = [_line(f"{call_name(call)} {call_arguments(call)}", role, "call") for call in tool_calls(message)]
    text = text_of(message)
    if role in ("tool", "function"):
        records = list(_records(text))
        lines += [_line(record, role, "record") for record in records]
        if records:
            return tuple(lines)
    lines += [_line(piece, role, "said") for piece in _pieces(text)]
    return tuple(lines)


_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？])")


def _pieces(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        line = line.strip()
        if len(line) <= LONGEST:
            if line:
                yield line
            continue
        grown = ""
        for sentence in _SENTENCE.split(line):
            for start in range(0, len(sentence), 400):
                piece = sentence[start : start + 400]
                if grown and len(grown) + len(piece) > LONGEST:
                    yield grown
                    grown = piece
                else:
                    grown = f"{grown} {piece}".strip()
        if grown:
            yield grown


def _records(text: str) -> Iterator[str]:
    if text[:1] not in "{[":
        return
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return
    yield from _flat(value, "")


def _flat(value: Any, path: str) -> Iterator[str]:
    head = f"{path}: " if path else ""
    if isinstance(value, dict):
        plain = [f"{key}={item}" for key, item in value.items() if not isinstance(item, (dict, list))]
        if plain:
            yield head + " ".join(plain)
        for key, item in value.items():
            if isinstance(item, (dict, list)):
                yield from _flat(item, key)
    elif isinstance(value, list):
        plain = [str(item) for item in value if not isinstance(item, (dict, list))]
        for start in range(0, len(plain), 12):
            yield head + ", ".join(plain[start : start + 12])
        for item in value:
            if isinstance(item, (dict, list)):
                yield from _flat(item, path)


_STRIP: Final = ".,;:!?()[]{}\"'`*<>…"
_WORDS: dict[str, tuple[str, float]] = {}


def _line(text: str, role: str, kind: str) -> Line:
    facts: dict[str, float] = {}
    for word in text.replace("=", " ").split():
        found = _WORDS.get(word)
        if found is None:
            found = _WORDS[word] = _fact(word)
        if found[1]:
            facts[found[0]] = found[1]
    return Line(text, role, kind, tuple(facts.items()))


def _fact(word: str) -> tuple[str, float]:
    bare = word.strip(_STRIP)
    if not bare:
        return "", 0.0
    if any(char.isdigit() for char in bare):
        return bare.lower(), 1.0 if len(bare) > 2 else 0.3
    if any(char in "@_/\\" for char in bare):
        return bare.lower(), 1.0
    if bare[:1].isupper():
        return bare.lower(), 0.5
    return bare.lower(), 0.1 if len(bare) > 3 else 0.0
