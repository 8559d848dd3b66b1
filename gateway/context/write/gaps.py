"""Gaps in a text: their markers, and where a text may be cut."""

import re
import unicodedata
from typing import Final

LONGEST_CLUSTER: Final = 64
"""Most characters in one visible character; the longest emoji sequences have some 15. A longer sequence is not text."""

FILLED: Final = 0.96
"""Share of its tokens from which a cut text counts as filling them. Chosen: one more row seldom fits into the rest."""

FILLED_GOAL: Final = 0.99
"""Share of its tokens at which a text that was cut too short is cut again."""

_MARKED: Final = " characters cut ...]"

_MARKER: Final = re.compile(r"\[\.\.\. (\d{1,12}) characters cut \.\.\.\]")


def marker(characters: int) -> str:
    return f"[... {characters} characters cut ...]"


def gap_size(text: str, start: int, end: int) -> int:
    """Return the characters that a gap replaces: characters of an earlier gap inside it count, its marker does not."""
    size = end - start
    if text.find(_MARKED, start, end) < 0:
        return size  # ten times as fast as the pattern, in a text that may have 60 MB
    for found in _MARKER.finditer(text, start, end):
        size += int(found[1]) - len(found[0])
    return size


def kept_characters(text: str) -> int:
    """Return the number of characters of a text without its gap markers."""
    return len(text) - sum(len(found[0]) for found in _MARKER.finditer(text))


def whole_before(text: str, position: int) -> int:
    """Move a cut back so that it splits no combined character."""
    position = min(max(position, 0), len(text))
    for whole in range(position, max(position - LONGEST_CLUSTER, 0), -1):
        if whole == len(text) or not (_joins(text[whole]) or text[whole - 1] == "\u200d"):
            return whole
    return position if position > LONGEST_CLUSTER else 0


def _joins(char: str) -> bool:
    """Return whether a character combines with the one before it."""
    return (
        unicodedata.combining(char) != 0
        or unicodedata.category(char) in ("Mn", "Mc", "Me")
        or char in "\u200d\ufe0e\ufe0f"
        or "\U0001f3fb" <= char <= "\U0001f3ff"
        or "\U0001f1e6" <= char <= "\U0001f1ff"
        or "\udc00" <= char <= "\udfff"
    )
