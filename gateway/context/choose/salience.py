"""Salience: how much a word says in any conversation, regardless of its subject.

In one chat, the rarity of the words that questions are made of is misleading: *thing* may be in it only once. Two files have such words, each two
rows of stems: empty words, and other common words.

- `salience.txt` was computed from the lengths of the vectors of the package wordllama (`python -m benchmarks.recall.salience`): a vector is short
  where a word changes little of what a text means. It knows English.
- `common_words.txt` was counted in sentences of 33 languages (`python -m benchmarks.recall.common_words`).
"""

import pkgutil
from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType
from typing import Final

from gateway.context.weights import COMMON_WORD, EMPTY_WORD


def _by_letter(row: str) -> Mapping[str, str]:
    """Return for each first letter the stems of a sorted row, as one text with a blank around each. Sets would take 15 times as much memory."""
    found = {letter: f" {' '.join(stems)} " for letter, stems in groupby(row.split(), key=itemgetter(0))}
    return MappingProxyType(found)


def _rows(file: str) -> list[Mapping[str, str]]:
    """Return the two rows of a file."""
    return [_by_letter(row) for row in (pkgutil.get_data(__package__, file) or b"\n").decode().split("\n")[:2]]


_EMPTY, _COMMON = zip(_rows("salience.txt"), _rows("common_words.txt"), strict=True)
_WORTH: Final = (*[(stems, EMPTY_WORD) for stems in _EMPTY], *[(stems, COMMON_WORD) for stems in _COMMON])


def salience(key: str) -> float:
    """Return the factor for a word, given by its stem: 1 if it is not known to be common."""
    sought = f" {key} "
    return next((worth for stems, worth in _WORTH if sought in stems.get(key[:1], "")), 1.0)
