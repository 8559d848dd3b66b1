"""Fields: groups of words for the same thing, so that a question finds a remark in other words.

`fields.txt` has one field a line, in ten languages. It was written for this program from general knowledge; nothing in it
was taken from a conversation.
"""

import pkgutil
import re
from array import array
from bisect import bisect_left, bisect_right
from typing import Final

from gateway.context.read.words import stem

_TEXT: Final = pkgutil.get_data(__package__, "fields.txt") or b""
"""The text of the file, in which words are looked up. Separate words would take five times as much memory."""
_ROWS: Final = array("I", [0, *[found.end() for found in re.finditer(b"\n", _TEXT)]])
"""For each field the byte in the text where it begins."""
_WORD: Final = re.compile(rb"[^\s|]+")
_WORDS: Final = array(
    "I", sorted([found.start() for found in _WORD.finditer(_TEXT)], key=lambda at: _TEXT[at : at + 40])
)
"""The bytes in the text where words begin, sorted by the words."""
_SHORTEST: Final = 2
"""The least characters of a stem that is searched as the beginning of longer words."""


def fields_of(key: str) -> list[int]:
    """Return the numbers of the fields with a word, given by its stem; each once."""
    beginning = key.encode()
    found: set[int] = set()
    first = bisect_left(_WORDS, beginning, key=lambda at: _TEXT[at : at + len(beginning)])
    for number in range(first, len(_WORDS)):
        at = _WORDS[number]
        word = _word(at)
        if not word.startswith(key) or (len(key) < _SHORTEST and word != key):
            break
        if stem(word) == key:
            found.add(bisect_right(_ROWS, at) - 1)
    return sorted(found)


def stems_of(field: int) -> list[str]:
    """Return the stems of a field's words, each once."""
    words = _WORD.findall(_TEXT, _ROWS[field], _ROWS[field + 1])
    return list(dict.fromkeys([stem(word.decode()) for word in words]))


def _word(at: int) -> str:
    found = _WORD.match(_TEXT, at)
    return found[0].decode() if found is not None else ""
