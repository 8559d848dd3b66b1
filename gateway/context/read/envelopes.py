"""Envelopes: what an application writes around the user's words in each message, recognised by what the first messages have in common.

One application sends rows such as ``Member 20417 writes on 3 March:``, with passages that it found behind them. Another one sends JSON with the words in one of its
members. Nothing of this is the user's, and its labels are in any language. So no label is known here: a *mark* is a row, a label, a tag or a
member that most messages have, and the field with the user's words is the one that says *I* and asks.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice, pairwise
from typing import Any, Final, NamedTuple

import orjson

from gateway.context.read.cues import speaks_of_self
from gateway.context.read.program_messages import Piece
from gateway.context.read.questions import SENTENCE, asks

LEARNED_FROM: Final = (12, 6, 3, 2)
"""Numbers of first messages of the user. An envelope is learned from the largest of them that the conversation has: so it seldom changes
while the conversation grows, and neither does a digest whose cut does not move."""
LEAST_SHARE_OF_MARK: Final = 0.6
"""The least share of the messages that have a mark. Passages or events are not in every message."""
LEAST_SHARE_OF_WORDS: Final = 0.75
"""The least share of the messages in which the field of the user's words has some."""
LEAST_NEW: Final = 0.7
"""The least share of the rows of this field that no other message has. A profile or a signature comes again and again."""
LEAST_WORDS: Final = 3
"""The least words of this field, in the median message. A date or the name of a screen has fewer."""
LEAST_SPEECH: Final = 0.2
"""The least share of the sentences of this field that say *I* or *my*, or ask."""
NEAR_THE_BEST: Final = 0.6
"""A field with this share of such sentences, compared with the best field, is the user's, too."""
MOST_MARK_CHARACTERS: Final = 160
"""The most characters of a row that is a mark."""
MOST_ROWS: Final = 80
"""The most rows at each end of a message in which marks are looked for."""
MOST_MARKS: Final = 1000
"""The most labels and tags of a message that are looked at. A page of HTML has hundreds of thousands."""
MOST_PATH_CHARACTERS: Final = 200
"""The most characters of a member's path. Thousands of members may stand in one with a long name."""
_BEHIND: Final = "\n\n"
"""Stands behind the mark of a label: what comes after the label's paragraph."""

_DIGITS: Final = re.compile(r"\d+")
_LABEL: Final = re.compile(
    r"[ \t]*(?:\[[^\]\n]{1,60}\]:?|[>*_#-]{0,4} ?[^\W\d][^\n:：]{0,50}?(?::(?:\*\*|__)?(?=\s|$)|：(?:\*\*|__)?))[ \t]*"
)
"""What stands before something else in a row: ``Question:``, ``**Frage:**``, ``[2026-03-04 09:15]``."""
_TAG: Final = re.compile(r"</?[A-Za-z_][\w.-]{0,40}(?:[ \t][^<>\n]{0,200})?>")
_LETTER_OR_RULE: Final = re.compile(r"[^\W\d_]|[-=*_#~]{3}")


class Envelope(NamedTuple):
    """What the messages of a user have in common."""

    marks: frozenset[str]
    """Its marks, with each number in them as ``#``. A member of JSON is its path: ``message.text``."""
    said: frozenset[str]
    """The marks before the user's words; the empty one is the beginning of the message."""
    is_json: bool


class Field(NamedTuple):
    """What stands behind a mark."""

    mark: str
    text: str
    label: str = ""
    """The mark as it came."""


def envelope_of(texts: Sequence[str]) -> Envelope | None:
    """Return the envelope of the user's messages, given the first ones; None if they have none."""
    if len(texts) < LEARNED_FROM[-1]:
        return None
    values = [_json_of(text) for text in texts]
    is_json = sum([value is not None for value in values]) >= LEAST_SHARE_OF_WORDS * len(texts)
    if is_json:
        messages = [list(_members(value)) for value in values if value is not None]
        marks = _common([{field.mark for field in fields} for fields in messages])
    else:
        marks = _common([{mark.name for mark in islice(_marks_in(text), MOST_MARKS)} for text in texts])
        messages = [list(_fields(text, marks)) for text in texts] if marks else []
    said = _marks_of_words(messages) if marks else frozenset()
    return Envelope(marks, said, is_json) if said else None


def pieces_in(text: str, envelope: Envelope) -> list[Piece]:
    """Split a message into what the user says and what the application writes around it; empty if nothing in it is the user's."""
    if envelope.is_json:
        value = _json_of(text)
        pieces = [] if value is None else [Piece(field.text, _is_said(field, envelope)) for field in _members(value)]
    else:
        pieces = [
            Piece("".join([field.text if is_said else f"{field.label}{field.text}" for field in run]).strip(), is_said)
            for is_said, run in groupby(_fields(text, envelope.marks), lambda field: _is_said(field, envelope))
        ]
    return pieces if any([piece.is_said and piece.text for piece in pieces]) else []


def pieces_of_answer(text: str) -> list[Piece]:
    """Split an answer that is a JSON object: its members with several words are said."""
    value = _json_of(text)
    if value is None:
        return []
    return [Piece(field.text, len(field.text.split()) >= LEAST_WORDS) for field in _members(value)]


def _is_said(field: Field, envelope: Envelope) -> bool:
    return field.mark in envelope.said or field.mark.removesuffix(_BEHIND) in envelope.said


def _common(marks_of_messages: Sequence[Iterable[str]]) -> frozenset[str]:
    """Return the marks that most messages have."""
    number = Counter([mark for marks in marks_of_messages for mark in marks])
    return frozenset([mark for mark, of in number.items() if of >= LEAST_SHARE_OF_MARK * len(marks_of_messages)])


def _marks_of_words(messages: Sequence[Sequence[Field]]) -> frozenset[str]:
    """Return the marks before the user's words; none if nothing else stands in the messages. Who numbers questions writes no envelope."""
    texts: dict[str, list[str]] = {}
    for fields in messages:
        of_message: dict[str, list[str]] = {}
        for field in fields:
            of_message.setdefault(field.mark, []).append(field.text.strip())
        for mark, behind in of_message.items():
            texts.setdefault(mark, []).append("\n".join(behind).strip())
    speech = {
        mark: _share_of_speech("\n".join(behind))
        for mark, behind in texts.items()
        if _may_be_words(behind, len(messages))
    }
    most = max(speech.values(), default=0.0)
    if most < LEAST_SPEECH or len(texts) == 1:
        return frozenset()
    said = frozenset([mark for mark, density in speech.items() if density >= NEAR_THE_BEST * most])
    around = [
        mark for mark in texts if (mark or any(texts[mark])) and said.isdisjoint((mark, mark.removesuffix(_BEHIND)))
    ]
    return said if around else frozenset()


def _may_be_words(said: Sequence[str], messages: int) -> bool:
    """Return whether what stands behind a mark is different in nearly every message, and has words."""
    filled = [text for text in said if text]
    if len(filled) < LEAST_SHARE_OF_WORDS * messages:
        return False
    words = sorted([len(text.split()) if " " in text else len(text) // 2 for text in filled])
    rows = Counter([row for text in filled for row in {row.strip() for row in text.split("\n") if row.strip()}])
    return words[len(words) // 2] >= LEAST_WORDS and sum([of == 1 for of in rows.values()]) >= LEAST_NEW * rows.total()


def _share_of_speech(text: str) -> float:
    """Return the share of sentences that say *I* or *my*, or ask."""
    sentences = [sentence for sentence in SENTENCE.findall(text) if sentence.strip()]
    spoken = sum([speaks_of_self(sentence) or asks(sentence) for sentence in sentences])
    return spoken / max(1, len(sentences))


class _Mark(NamedTuple):
    """A mark in a text: its name, and its beginning and end."""

    name: str
    start: int
    end: int


def _fields(text: str, marks: frozenset[str]) -> Iterator[Field]:
    """Split a text at its marks."""
    found = [
        _Mark("", 0, 0),
        *[mark for mark in islice(_marks_in(text, marks), MOST_MARKS) if mark.name in marks],
        _Mark("", len(text), len(text)),
    ]
    for mark, after in pairwise(found):
        yield Field(mark.name, text[mark.end : after.start], text[mark.start : mark.end])


def _marks_in(text: str, wanted: frozenset[str] | None = None) -> Iterator[_Mark]:
    """Yield what may be marks, in order; only a whole row or its label, by which of them is wanted."""
    start, label = 0, ""
    rows = text.split("\n")
    for number, row in enumerate(rows):
        if number < MOST_ROWS or number >= len(rows) - MOST_ROWS:
            yield from _marks_in_row(row, start, wanted)
            opened = _LABEL.match(row)
            if opened and row[opened.end() :].strip():
                label = _shape(opened[0])
            elif not row.strip() and label:
                yield _Mark(label + _BEHIND, start, start)
                label = ""
        start += len(row) + 1


def _marks_in_row(row: str, start: int, wanted: frozenset[str] | None) -> Iterator[_Mark]:
    whole = _shape(row)
    if len(row) <= MOST_MARK_CHARACTERS and _LETTER_OR_RULE.search(whole) and (wanted is None or whole in wanted):
        yield _Mark(whole, start, start + len(row))
        if wanted is not None:
            return
    if (label := _LABEL.match(row)) and label.end() < len(row):
        yield _Mark(_shape(label[0]), start, start + label.end())
    if "<" in row:
        for tag in _TAG.finditer(row):
            yield _Mark(_shape(tag[0]), start + tag.start(), start + tag.end())


def _shape(text: str) -> str:
    return _DIGITS.sub("#", text.strip())


def _json_of(text: str) -> Mapping[str, Any] | None:
    """Return the members of a message that is a JSON object."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def _members(value: Mapping[str, Any]) -> Iterator[Field]:
    """Yield the members of a JSON object that are no objects, in order, at any depth."""
    left: list[tuple[str, Any]] = [("", value)]
    while left:
        path, member = left.pop()
        if isinstance(member, dict):
            inside = [
                (f"{path}.{name[:MOST_PATH_CHARACTERS]}"[:MOST_PATH_CHARACTERS].lstrip("."), each)
                for name, each in member.items()
            ]
            left += reversed(inside)
        elif isinstance(member, list):
            left += [(path, each) for each in reversed(member)]
        elif isinstance(member, str):
            yield Field(path, member)
        elif member is not None:
            yield Field(path, orjson.dumps(member).decode())
