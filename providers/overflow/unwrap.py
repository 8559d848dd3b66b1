"""Extract plain statements from error bodies, however often proxies have wrapped them.

A refusal may be JSON, JSON inside a string inside JSON, a ``data:`` line, the ``repr`` of a Python dictionary, or bare
text, and each proxy adds a layer. This module removes the layers. It knows which fields hold the server's words and
which repeat the user's or the model's words; the latter are never read. It does not know what an overflow is.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import orjson

from providers.overflow.wording import both_ends

LARGEST_BODY: Final = 64 * 1024
"""Bytes of an answer that are read. A refusal states its reason at the start."""

LARGEST_TEXT: Final = 4000
"""Characters kept of one statement: half from its beginning, half from its end."""

MOST_CHARACTERS: Final = 2 * LARGEST_TEXT
"""Characters of all statements of a body, from which no further one is kept: reading 60,000 took 0.4 s."""

MOST_TEXTS: Final = 16
"""Statements, and names, kept of one body."""

DEEPEST: Final = 32
"""Levels of one structure that are read; servers state the reason within the first few."""

MOST_LAYERS: Final = 16
"""Embedded structures that are opened in one body; real ones nest three or four deep."""

MOST_VALUES: Final = 1000
"""Values that are read in one body, each once in a text and once for what it says. Real ones have a few dozen. A server may repeat a client's text in its error: 64 KB of brackets would take
0.3 s."""

ECHO_FIELDS: Final = re.compile(
    r"choices|delta|contents?|messages|history|conversation|transcript|inputs?|prompts?|prompt_messages|outputs?"
    r"|completions?|documents?|requests?|request_?body|arguments|parameters|tools?|functions?|failed_generation"
    r"|flagged\w*|\w*user\w*|quer(?:y|ies)|logs?|headers|stack\w*|traceback|usage"
)
"""Fields that repeat text of the user or the model, or that give no reason. Nothing below them is read."""

STATEMENT_FIELDS: Final = re.compile(
    r"mess|msg|err|detail|reason|desc|cause|raw|title|fault|exception|hint|explan|problem|info|body|param"
)
"""Fields whose text is written by the server."""

NAME_FIELDS: Final = re.compile(r"(?:\w*_)?(?:code|type|status|reason|kind|key|name|tpe|error)|errorcode|__type")
"""Fields whose value names the error: ``context_length_exceeded``, ``invalid_request_error``, 1261."""


class Complaint(msgspec.Struct):
    """The content of an error body: its statements, the error's names, and numbers that have their own fields."""

    statements: list[str] = msgspec.field(default_factory=list)
    names: list[str] = msgspec.field(default_factory=list)
    counts: dict[str, int] = msgspec.field(default_factory=dict)
    layers: int = 0
    values: int = 0
    """Values that were read so far."""


def unwrap(body: bytes) -> Complaint:
    """Return the statements of the server in an answer or in the data of one event."""
    complaint = Complaint()
    text = body[:LARGEST_BODY].decode("utf-8", "replace").strip("\ufeff \t\r\n")
    if text[:1] == "<":
        return complaint  # an HTML page comes from a web server in front of the API, which does not count tokens
    for piece in _events(text):
        try:
            _walk(complaint, orjson.loads(piece), "error")
        except orjson.JSONDecodeError:
            _collect_text(complaint, piece, "error")
    return complaint


def _events(text: str) -> Iterator[str]:
    """Return the data of each event when the text is part of an event stream, else the text itself.

    Old llama-server streams write ``error: {...}`` instead of ``data:``.
    """
    if not text.startswith(("data:", "event:", "error: {", ":", "id:")):
        yield text
        return
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name in ("data", "error") and value.strip() not in ("", "[DONE]"):
            yield value.strip()


def _walk(complaint: Complaint, value: Any, key: str, depth: int = 0) -> None:
    """Collect statements from a structure; ``key`` is the field that contains it."""
    complaint.values += 1
    if complaint.values > MOST_VALUES:
        return
    if isinstance(value, int):
        _collect_number(complaint, value, key)
    elif ECHO_FIELDS.fullmatch(key) or depth > DEEPEST:
        return
    elif isinstance(value, dict):
        for name, inner in value.items():
            _walk(complaint, inner, str(name).lower(), depth + 1)
    elif isinstance(value, list):
        for inner in value:
            _walk(complaint, inner, key, depth + 1)
    elif isinstance(value, str):
        if STATEMENT_FIELDS.search(key):
            _collect_text(complaint, value, key)
        elif NAME_FIELDS.fullmatch(key):
            _add(complaint.names, value[:100])


def _collect_number(complaint: Complaint, number: int, key: str) -> None:
    """Collect a number: the name of an error, or a count; ``True`` and ``False`` are no counts."""
    if NAME_FIELDS.fullmatch(key):
        _add(complaint.names, str(number))
    elif not isinstance(number, bool):
        complaint.counts.setdefault(key, number)


def _collect_text(complaint: Complaint, text: str, key: str) -> None:
    """Collect a text: structures inside it are walked, and the rest is a statement."""
    if "\\x" in text:
        text = _BYTES.sub(lambda found: bytes.fromhex(found[0].replace("\\x", "")).decode("utf-8", "replace"), text)
    plain: list[str] = []
    position = 0
    while complaint.layers < MOST_LAYERS and (opening := _OPENING.search(text, position)):
        complaint.layers += 1
        plain.append(text[position : opening.start()])
        if opening["escaped"]:
            # Quoted once more often than it was decoded: {\"error\": ...
            text, position = _unescape(text[opening.start() :]), 0
            continue
        value, end = _Reader(text, complaint).read(opening.start(), 0)
        if text[end - 1] not in "}]" and "\\\\" in text[opening.start() :]:
            text, position = text[opening.start() :].replace("\\\\", "\\"), 0  # the repr of a string that contains JSON
            continue
        position = end
        if not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
            _walk(complaint, value, key)  # but a plain list enumerates the allowed values
    if complaint.values < MOST_VALUES:  # else the rest may be inside a field that repeats other people's words
        plain.append(text[position:])
    statement = " ".join(piece for piece in plain if piece.strip(" \t\r\n\"'.,:;()b")).strip()
    statement = both_ends(statement, LARGEST_TEXT)
    if statement and sum(map(len, complaint.statements)) < MOST_CHARACTERS:
        _add(complaint.statements, statement)
        if " " not in statement:
            _add(complaint.names, statement)


def _add(texts: list[str], text: str) -> None:
    if len(texts) < MOST_TEXTS and text not in texts:
        texts.append(text)


_OPENING: Final = re.compile(r"[{\[]\s*(?:(?P<escaped>\\+[\"'])|(?=[\"'{\[]))")
_BYTES: Final = re.compile(r"(?:\\x[0-9a-fA-F]{2})+")
_GAP: Final = re.compile(r"(?:\s|,|\\[nrt])*")
_COLON: Final = re.compile(r"\s*:\s*")
_STRING: Final = {
    '"': re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"?', re.S),
    "'": re.compile(r"'([^'\\]*(?:\\.[^'\\]*)*)'?", re.S),
}
_BARE: Final = re.compile(r"[^\s,:{}\[\]()\"']+")
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.S)
_CONTROL: Final = {"n": "\n", "r": "\r", "t": "\t", "b": " ", "f": " "}


class _Reader:
    """Reads JSON or a Python repr in a text as far as possible; its values are counted in a complaint.

    A text that is cut off in the middle counts as ended there: error messages are often truncated.
    """

    def __init__(self, text: str, complaint: Complaint) -> None:
        self._text = text
        self._complaint = complaint

    def read(self, position: int, depth: int) -> tuple[Any, int]:
        """Return the value at a position, and the position where it ends or reading stopped."""
        self._complaint.values += 1
        if self._text[position] in "{[":
            return self._read_items(position, depth)
        return self._read_plain(position)

    def _read_plain(self, position: int) -> tuple[Any, int]:
        """Return the value that is no structure at a position; None if there is none."""
        if string := _STRING.get(self._text[position]):
            found = string.match(self._text, position)
            assert found  # the pattern needs only its opening quote
            return _unescape(found[1]), found.end()
        bare = _BARE.match(self._text, position)
        if not bare:
            return None, position
        word = bare[0]
        if word in ("null", "None", "true", "false", "True", "False"):
            return False, bare.end()
        return (int(word) if word.isdecimal() and len(word) < 16 else word), bare.end()

    def _read_items(self, position: int, depth: int) -> tuple[Any, int]:
        text = self._text
        named = text[position] == "{"
        items: dict[str, Any] = {}
        position += 1
        while depth < MOST_LAYERS and self._complaint.values < MOST_VALUES:
            position = _GAP.match(text, position).end()  # type: ignore[union-attr]  # matches nothing at least
            if position >= len(text):
                break
            if text[position] in "}])":
                position += 1
                break
            start, name = position, str(len(items))
            if named:
                # A structure is no name. If one were read and thrown away here, each level would double the time.
                name, position = self._read_plain(position)
                colon = _COLON.match(text, position)
                if not colon or colon.end() >= len(text):
                    position = start
                    break
                position = colon.end()
            value, position = self.read(position, depth + 1)
            if position == start or (value is None and not text.startswith(("None", "null"), position)):
                break
            items[str(name)] = value
        return (items if named else list(items.values())), position


def _unescape(text: str) -> str:
    """Remove one level of backslashes."""
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda found: _unescaped(found[1]), text)


def _unescaped(escape: str) -> str:
    return chr(int(escape[1:], 16)) if len(escape) == 5 else _CONTROL.get(escape, escape)
