"""Gaps in a shortened text: their markers, and where a text may be cut."""

import re
import unicodedata
from typing import Final

LONGEST_CLUSTER: Final = 64
"""Most code points in one visible character. The longest emoji have some 15; a longer sequence is not text."""

LEAST_FILLED: Final = 0.96
"""Share of its allowed tokens that a shortened text should have. Chosen: one more row seldom fits into the rest."""

FILL_GOAL: Final = 0.99
"""Share of its allowed tokens at which the next try aims after a text was cut too short."""

MOST_OF_LAST_TRY: Final = 0.97
"""Share of the last try that the next one may have after a form was too long. Chosen: each try is a little smaller, so that the search ends."""

_MARKER_END: Final = " characters cut ...]"

_MARKER: Final = re.compile(r"\[\.\.\. (\d{1,12}) characters cut \.\.\.\]")


def marker(characters: int) -> str:
    """Return the marker of a gap of so many characters."""
    return f"[... {characters} characters cut ...]"


def gap_size(text: str, start: int, end: int) -> int:
    """Return the number of characters that a gap replaces. If a shortened text is shortened again, the gap includes those of
    earlier gaps, and not their markers."""
    size = end - start
    if text.find(_MARKER_END, start, end) < 0:
        return size  # ten times faster than the pattern; a text may have 60 MB
    for found in _MARKER.finditer(text, start, end):
        size += int(found[1]) - len(found[0])
    return size


def characters_without_markers(text: str) -> int:
    """Return the number of characters of a text without its gap markers."""
    return len(text) - sum(len(found[0]) for found in _MARKER.finditer(text))


def character_boundary(text: str, position: int) -> int:
    """Return the last position, at or before this one, at which a cut splits no visible character."""
    position = min(max(position, 0), len(text))
    for boundary in range(position, max(position - LONGEST_CLUSTER, 0), -1):
        if boundary == len(text) or not (_joins(text[boundary]) or text[boundary - 1] == "\u200d"):
            return boundary
    return position if position > LONGEST_CLUSTER else 0


def _joins(char: str) -> bool:
    """Return whether a code point is part of the same visible character as the one before it."""
    return (
        unicodedata.combining(char) != 0
        or unicodedata.category(char) in ("Mn", "Mc", "Me")
        or char in "\u200d\ufe0e\ufe0f"
        or "\U0001f3fb" <= char <= "\U0001f3ff"
        or "\U0001f1e6" <= char <= "\U0001f1ff"
        or "\udc00" <= char <= "\udfff"
    )
