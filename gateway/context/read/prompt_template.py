"""The prompt template of an application: what it writes around the user's words in each message.

One application puts ``Member 20417 writes on 3 March:`` before the user's words, and passages that it has found behind them. Another one sends JSON with the words
in one of its members. Such labels may be in any language, so this file knows none of them. It learns the template from what the user's first messages have in
common:

- A *mark* is a row, a label, a tag or a member of JSON that most of the messages have.
- Marks split a message into *sections*.
- The user's words are in the section that says *I* or *my*, asks and instructs.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice, pairwise
from typing import Any, Final, NamedTuple

from gateway.context.read.cues import speaks_of_self
from gateway.context.read.instructions import instructs
from gateway.context.read.program_messages import Piece
from gateway.context.read.questions import SENTENCE, wants_to_know
from gateway.wire import exact_json

LEARNED_FROM: Final = (12, 6, 3, 2)
"""Numbers of messages. A template is learned from so many of the user's first messages, the largest number that the conversation has. So it seldom
changes while the conversation grows, and neither does a digest whose cut does not move."""
LEAST_SHARE_OF_MARK: Final = 0.6
"""Share of the messages that have a mark, at least. Some parts of a template, such as passages or events, are not in every message."""
LEAST_SHARE_OF_WORDS: Final = 0.75
"""Share of the messages in which the section of the user's words is not empty, at least."""
LEAST_NEW: Final = 0.7
"""Share of the rows of this section that no other message has, at least. A profile or a signature comes again and again."""
LEAST_WORDS: Final = 3
"""Words of this section in the median message, at least. A date or the name of a screen has fewer."""
LEAST_SPEECH: Final = 0.2
"""Share of the sentences of this section that say *I* or *my*, ask or instruct, at least."""
LEAST_SPEECH_ALONE: Final = 0.05
"""The same if no other section has such a sentence. In Japanese few sentences say *I*."""
NEAR_THE_BEST: Final = 0.6
"""Factor. A section is the user's, too, if its share of such sentences is at least this part of the highest share."""
MOST_MARK_CHARACTERS: Final = 160
"""The most characters of a row that is a mark."""
MOST_ROWS: Final = 80
"""The most rows at each end of a message in which marks are looked for."""
MOST_MARKS: Final = 1000
"""The most labels and tags of a message that are looked at. A page of HTML has hundreds of thousands."""
MOST_PATH_CHARACTERS: Final = 200
"""The most characters of a member's path. A member with a long name may contain thousands of others, and the path of each begins with this name."""
_AFTER_PARAGRAPH: Final = "\n\n"
"""The end of a mark's name, if the mark is the empty row after a label's paragraph."""

_DIGITS: Final = re.compile(r"\d+")
_LABEL: Final = re.compile(
    r"[ \t]*(?:\[[^\]\n]{1,60}\]:?|［[^］\n]{1,60}］|【[^】\n]{1,60}】"
    r"|[>*_#-]{0,4} ?[^\W\d][^\n:：]{0,50}?(?::(?:\*\*|__)?(?=\s|$)|：(?:\*\*|__)?))[ \t]*"
)
"""A label at the beginning of a row: ``Question:``, ``**Frage:**``, ``[2026-03-04 09:15]``, ``【質問】``."""
_TAG: Final = re.compile(r"</?[A-Za-z_][\w.-]{0,40}(?:[ \t][^<>\n]{0,200})?>")
_LETTER_OR_RULE: Final = re.compile(r"[^\W\d_]|[-=*_#~]{3}")


class PromptTemplate(NamedTuple):
    """What the messages of a user have in common."""

    marks: frozenset[str]
    """The names of its marks: their text with each number as ``#``. The name of a member of JSON is its path: ``message.text``."""
    marks_of_user: frozenset[str]
    """The marks after which the user's words begin; the empty one is the beginning of the message."""
    is_json: bool


class Section(NamedTuple):
    """The text between a mark and the next one."""

    mark: str
    """The mark's name."""
    text: str
    label: str = ""
    """The mark as it is in the message."""


def template_of(texts: Sequence[str]) -> PromptTemplate | None:
    """Return the template of the user's first messages; None if they have none."""
    if len(texts) < LEARNED_FROM[-1]:
        return None
    objects = [members for text in texts if (members := exact_json.loads_object(text)) is not None]
    is_json = len(objects) >= LEAST_SHARE_OF_WORDS * len(texts)
    if is_json:
        messages = [list(_members(members)) for members in objects]
        marks = _common([{section.mark for section in sections} for sections in messages])
    else:
        marks = _common([{mark.name for mark in islice(_possible_marks(text), MOST_MARKS)} for text in texts])
        messages = [list(_sections(text, marks)) for text in texts] if marks else []
    marks_of_user = _marks_of_user(messages) if marks else frozenset()
    return PromptTemplate(marks, marks_of_user, is_json) if marks_of_user else None


def pieces_in(text: str, template: PromptTemplate) -> list[Piece]:
    """Split a message into what the user says and what the application writes around it; empty if nothing in it is the user's."""
    if template.is_json:
        members = exact_json.loads_object(text) or {}
        pieces = [Piece(section.text, _is_of_user(section, template)) for section in _members(members)]
    else:
        runs = groupby(_sections(text, template.marks), lambda section: _is_of_user(section, template))
        pieces = [
            Piece("".join([each.text if is_said else f"{each.label}{each.text}" for each in run]).strip(), is_said)
            for is_said, run in runs
        ]
    return pieces if any([piece.is_said and piece.text for piece in pieces]) else []


def pieces_of_answer(text: str) -> list[Piece]:
    """Split an answer that is a JSON object into its members. Those with several words are what the assistant says."""
    members = exact_json.loads_object(text) or {}
    return [Piece(section.text, len(section.text.split()) >= LEAST_WORDS) for section in _members(members)]


def _is_of_user(section: Section, template: PromptTemplate) -> bool:
    return not template.marks_of_user.isdisjoint(_names_of(section.mark))


def _names_of(mark: str) -> tuple[str, str]:
    """Return the name of a mark, and that of the label whose paragraph ends with it. For any other mark both are the same."""
    return mark, mark.removesuffix(_AFTER_PARAGRAPH)


def _common(marks_of_messages: Sequence[Iterable[str]]) -> frozenset[str]:
    """Return the marks that most messages have."""
    messages_with = Counter([mark for marks in marks_of_messages for mark in marks])
    least = LEAST_SHARE_OF_MARK * len(marks_of_messages)
    return frozenset([mark for mark, number in messages_with.items() if number >= least])


def _marks_of_user(messages: Sequence[Sequence[Section]]) -> frozenset[str]:
    """Return the marks after which the user's words begin. Return none if the messages have nothing else: a user who numbers the questions
    uses no template."""
    texts = _texts_by_mark(messages)
    speech = {
        mark: _share_of_speech("\n".join(of_mark))
        for mark, of_mark in texts.items()
        if _may_be_words(of_mark, len(messages))
    }
    most = max(speech.values(), default=0.0)
    is_alone = [share > 0.0 for share in speech.values()].count(True) == 1 < len(speech)
    if most < (LEAST_SPEECH_ALONE if is_alone else LEAST_SPEECH) or len(texts) == 1:
        return frozenset()
    of_user = frozenset([mark for mark, share in speech.items() if share >= NEAR_THE_BEST * most])
    has_others = any(
        [of_user.isdisjoint(_names_of(mark)) and (mark or any(of_mark)) for mark, of_mark in texts.items()]
    )
    return of_user if has_others else frozenset()


def _texts_by_mark(messages: Sequence[Sequence[Section]]) -> dict[str, list[str]]:
    """Return for each mark the texts of its sections, one text for each message that has the mark."""
    texts: dict[str, list[str]] = {}
    for sections in messages:
        of_message: dict[str, list[str]] = {}
        for section in sections:
            of_message.setdefault(section.mark, []).append(section.text.strip())
        for mark, of_mark in of_message.items():
            texts.setdefault(mark, []).append("\n".join(of_mark).strip())
    return texts


def _may_be_words(texts: Sequence[str], messages: int) -> bool:
    """Return whether the texts after one mark may be the user's words: nearly every message has a new one, of some words."""
    filled = [text for text in texts if text]
    if len(filled) < LEAST_SHARE_OF_WORDS * messages:
        return False
    words = sorted([len(text.split()) if " " in text else len(text) // 2 for text in filled])
    messages_with = Counter(
        [row for text in filled for row in {row.strip() for row in text.split("\n") if row.strip()}]
    )
    new_rows = sum([number == 1 for number in messages_with.values()])
    return words[len(words) // 2] >= LEAST_WORDS and new_rows >= LEAST_NEW * messages_with.total()


def _share_of_speech(text: str) -> float:
    """Return the share of sentences that say *I* or *my*, ask or instruct."""
    sentences = [sentence for sentence in SENTENCE.findall(text) if sentence.strip()]
    spoken = sum([speaks_of_self(each) or wants_to_know(each) or instructs(each) for each in sentences])
    return spoken / max(1, len(sentences))


class _Mark(NamedTuple):
    """A mark in a text: its name, and its beginning and end."""

    name: str
    start: int
    end: int


def _sections(text: str, marks: frozenset[str]) -> Iterator[Section]:
    """Split a text at its marks. The first section is before the first mark."""
    found = [
        _Mark("", 0, 0),
        *[mark for mark in islice(_possible_marks(text, marks), MOST_MARKS) if mark.name in marks],
        _Mark("", len(text), len(text)),
    ]
    for mark, after in pairwise(found):
        yield Section(mark.name, text[mark.end : after.start], text[mark.start : mark.end])


def _possible_marks(text: str, wanted: frozenset[str] | None = None) -> Iterator[_Mark]:
    """Yield everything in a text that may be a mark, in order. With the names of the ``wanted`` marks, a row that is one of them is yielded
    without its label and its tags."""
    start, paragraph = 0, ""  # the name of the label that began the present paragraph
    rows = text.split("\n")
    for number, row in enumerate(rows):
        if number < MOST_ROWS or number >= len(rows) - MOST_ROWS:
            label = _LABEL.match(row)
            yield from _possible_marks_in_row(row, start, label, wanted)
            if label and row[label.end() :].strip():
                paragraph = _name(label[0])
            elif not row.strip() and paragraph:
                yield _Mark(paragraph + _AFTER_PARAGRAPH, start, start)
                paragraph = ""
        start += len(row) + 1


def _possible_marks_in_row(
    row: str, start: int, label: re.Match[str] | None, wanted: frozenset[str] | None
) -> Iterator[_Mark]:
    """Yield the whole row, its label and its tags, as far as they may be marks. The row begins at ``start``."""
    whole = _name(row)
    if len(row) <= MOST_MARK_CHARACTERS and _LETTER_OR_RULE.search(whole) and (wanted is None or whole in wanted):
        yield _Mark(whole, start, start + len(row))
        if wanted is not None:
            return
    if label and label.end() < len(row):
        yield _Mark(_name(label[0]), start, start + label.end())
    if "<" in row:
        for tag in _TAG.finditer(row):
            yield _Mark(_name(tag[0]), start + tag.start(), start + tag.end())


def _name(mark: str) -> str:
    """Return the name of a mark: its text with each number as ``#``."""
    return _DIGITS.sub("#", mark.strip())


def _members(value: Mapping[str, Any]) -> Iterator[Section]:
    """Yield the members of a JSON object that are not objects themselves, in order, at any depth."""
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
            yield Section(path, member)
        elif member is not None:
            yield Section(path, exact_json.dumps(member))
