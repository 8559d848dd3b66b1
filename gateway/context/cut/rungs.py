"""The rungs of the ladder, from the original request to its smallest form, and the limits of each."""

from typing import Final

import msgspec


class RungLimits(msgspec.Struct, frozen=True):
    """The limits of a fold on one rung. None means: no limit except the room."""

    max_turns: int | None = None
    """The most turns that are kept."""
    max_characters: int | None = None
    """The most characters of any text except the current question."""
    newest_only: bool = False
    """Only the current question is kept, and the newest step if the request ends with a tool result."""


AS_IT_CAME: Final = RungLimits()
FOLD: Final = RungLimits()
HARD: Final = RungLimits(max_turns=5, max_characters=10_000)
QUESTION_ONLY: Final = RungLimits(max_turns=5, max_characters=10_000, newest_only=True)

RUNGS: Final = (AS_IT_CAME, FOLD, HARD, QUESTION_ONLY)
"""The limits of the rungs, in order. A *rung* is a position here: 0 to 3. The first two have the same limits: what is sent as it came is not folded."""
