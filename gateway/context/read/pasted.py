"""The parts of a message: a speaker's own words, and what is pasted between them: code, documents, output.

What is pasted is material. No standing wish is taken from it, and a question is searched by the user's own words. Pasted is what
the speaker has marked so: text between fences, between tags that name a document (``<context>``, ``<file path="...">``), or between
two rows of dashes.
"""

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from gateway.context.read.line import MOST_LINE_CHARACTERS
from gateway.context.read.program_messages import Piece, pieces_of

FENCE: Final = "```"
CONTEXT: Final = "context"
"""The name of the block with what a program writes around the user's words."""
LEAST_BLOCK_ROWS: Final = 3
"""The least rows of a block. A shorter one is read as the speaker's own words, unless it is longer than a line may be or a program's
reminder."""
LEAST_BLOCK_WORDS: Final = 8
"""The least words of a shorter block that a program wrote around the user's words."""

_DOCUMENT_WORDS: Final = (
    "article articles attachment attachments chunk chunks code codebase content contents context contract csv cv data diff"
    " doc docs document documents email emails environment excerpt excerpts file files history html json knowledge letter"
    " log logs mail output page pages paper passage passages reference references report repository result results"
    " resume snippet snippets source sources stderr stdout table text transcript web webpage"
)
"""Words in the names of tags around documents: ``search_results``, ``environment_details``."""
_REMINDER: Final = "reminder"
"""The word in the name of a tag around what a program tells the model: ``system-reminder``. The user never says it, however short it is. The
word alone is also a tag that users type."""
_PROGRAM_WORDS: Final = (
    "agent assistant conversation developer environment instructions mode plan session system task todo tool"
)
"""Words beside it in the names of programs' tags: ``task_reminder``, ``reminderInstructions``."""
_USER: Final = "user"
"""The word in the name of a tag with which a program sets off the user's words: ``user_query``, ``userRequest``."""
_SPEECH_WORDS: Final = "instruction instructions message prompt query question request rules task"
"""Words in the names of tags around the user's own words: ``user_query``, ``custom_instructions``."""
_DOCUMENT: Final = frozenset(_DOCUMENT_WORDS.split())
_SPEECH: Final = frozenset(_SPEECH_WORDS.split())
_PROGRAM: Final = frozenset(_PROGRAM_WORDS.split())

_MARK: Final = re.compile(
    r"(?P<fence>```)|^[^\S\n]{0,8}(?P<rule>-{5,}|={5,}|\"{3})[^\S\n]*$|<(?P<end>/?)(?P<tag>[A-Za-z][\w.-]{0,40})(?:[^\S\n][^<>\n]*)?>",
    re.M,
)
_NAME_PARTS: Final = re.compile(r"[_.-]+|(?<=[a-z])(?=[A-Z])")
_LANGUAGE: Final = re.compile(r"\A[\w+#.-]{0,20}[^\S\n]*\n")
"""The first row of a fenced block: its language, or nothing."""


class Part(NamedTuple):
    """A part of a message."""

    text: str
    is_block: bool = False
    """Whether it is pasted."""
    name: str = ""
    """The language of code, or the tag around a document; empty where nothing is said."""


def parts_of(text: str) -> list[Part]:
    """Split a message into the speaker's own words and blocks. Short blocks are among the own words."""
    written = pieces_of(text)
    return parts_of_pieces(written) if written else _parts_of_own(text)


def parts_of_pieces(pieces: Iterable[Piece]) -> list[Part]:
    """Return the parts of what the user says, and what a program writes around it as blocks. A few words of that say nothing."""
    found: list[Part] = []
    for piece in pieces:
        if piece.is_said:
            found += _parts_of_own(piece.text)
        elif piece.text.strip().count("\n") + 1 >= LEAST_BLOCK_ROWS or len(piece.text.split()) >= LEAST_BLOCK_WORDS:
            found.append(Part(piece.text, True, CONTEXT))
    return found


def _parts_of_own(text: str) -> list[Part]:
    if FENCE not in text and "<" not in text and "-----" not in text and "=====" not in text and '"""' not in text:
        return [Part(text)]
    return list(_parts(text))


def own_words(text: str) -> str:
    """Return a message without what is pasted; all of it if nothing else is said."""
    return own_words_of(parts_of(text)) or text


def own_words_of(parts: Sequence[Part]) -> str:
    """Return the parts that are no blocks, or the only part; empty if there are none."""
    if len(parts) == 1:
        return parts[0].text
    return "\n".join([part.text.strip() for part in parts if not part.is_block and part.text.strip()])


def _parts(text: str) -> Iterator[Part]:
    found = list(_MARK.finditer(text))
    reminders = _reminders_in(found)
    marks = [mark for mark in found if _may_enclose(mark, reminders)]
    last_end = {_kind(mark): mark.start() for mark in marks if not mark["tag"] or mark["end"]}
    start = 0
    opened: re.Match[str] | None = None
    for mark in marks:
        if opened is None:
            # A fence that is never closed encloses the rest; other marks need their end.
            if not mark["end"] and (mark["fence"] or last_end.get(_kind(mark), -1) > mark.start()):
                yield Part(text[start : mark.start()])
                opened, start = mark, mark.end()
        elif _kind(mark) == _kind(opened) and (not mark["tag"] or mark["end"]):
            yield _block(opened, text[start : mark.start()], reminders)
            opened, start = None, mark.end()
    yield _block(opened, text[start:], reminders) if opened else Part(text[start:])


def _kind(mark: re.Match[str]) -> str:
    """Return by what a block ends: the same fence, a rule of the same sign, or the end of the same tag."""
    return mark["fence"] or (mark["rule"] or "")[:1] or mark["tag"].lower()


def _reminders_in(marks: Iterable[re.Match[str]]) -> set[str]:
    """Return the names of tags around reminders of a program. The word alone is one if a program has set off the user's words, too."""
    names = {tag: _words_of(tag) for tag in {mark["tag"] for mark in marks if mark["tag"]}}
    is_set_off = any([_USER in words and not words.isdisjoint(_SPEECH) for words in names.values()])
    return {
        name for name, words in names.items() if _REMINDER in words and (is_set_off or not words.isdisjoint(_PROGRAM))
    }


def is_reminder(name: str) -> bool:
    """Return whether a block of this name is what a program tells the model."""
    return _REMINDER in _words_of(name)


def _may_enclose(mark: re.Match[str], reminders: Container[str]) -> bool:
    """Return whether a mark is a fence, a rule, or a tag that names a document or a program's reminder."""
    if not mark["tag"] or mark["tag"] in reminders:
        return True
    words = _words_of(mark["tag"])
    return not words.isdisjoint(_DOCUMENT) and words.isdisjoint(_SPEECH)


def _words_of(tag: str) -> set[str]:
    """Return the words in the name of a tag."""
    return {word.lower() for word in _NAME_PARTS.split(tag)}


def _block(opened: re.Match[str], text: str, reminders: Container[str]) -> Part:
    """Return the text behind an opening mark as a block, or as own words if it is short."""
    if opened["fence"]:
        language = _LANGUAGE.match(text)
        rows = text[language.end() :] if language else text
        if text.count("\n") >= LEAST_BLOCK_ROWS:
            return Part(rows, True, language[0].strip() if language else "")
        return Part(rows)
    tag = opened["tag"] or ""
    is_long = text.strip().count("\n") + 1 >= LEAST_BLOCK_ROWS or len(text) > MOST_LINE_CHARACTERS
    if is_long or tag in reminders:
        return Part(text, True, tag)
    return Part(text)
