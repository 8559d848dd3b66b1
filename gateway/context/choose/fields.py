"""Fields: words that people use when they speak of the same thing, so that a question finds a remark in other words.

`fields.txt` has one field a line, in ten languages. It was written for this program from general knowledge; nothing in it
was taken from a conversation.
"""

import pkgutil
from typing import Final

from gateway.context.choose.words import stem

_ROWS: Final = (pkgutil.get_data(__package__, "fields.txt") or b"").decode().replace(" |", "").splitlines()
"""The words of each field, in one text: a third of the memory of separate ones."""
_BEGINNING: Final = 2
"""Characters by which words are looked up: the shortest have so many, and a stem is the beginning of its word."""


def _by_beginning() -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for field, row in enumerate(_ROWS):
        for word in row.split():
            found.setdefault(word[:_BEGINNING], []).append(f"{word}:{field}")
    return {beginning: " ".join(entries) for beginning, entries in found.items()}


_FIELDS: Final = _by_beginning()
"""By the beginning of words: each of them with the number of a field that has it."""


def fields_of(key: str) -> list[int]:
    """Return the numbers of the fields that have a word, given by its stem; each once."""
    entries = [entry.partition(":") for entry in _FIELDS.get(key[:_BEGINNING], "").split() if entry.startswith(key)]
    return list(dict.fromkeys([int(field) for word, _, field in entries if stem(word) == key]))


def stems_of(field: int) -> list[str]:
    """Return the stems of a field's words, each once."""
    return list(dict.fromkeys(map(stem, _ROWS[field].split())))
