"""The rungs of the ladder, from the original request to its smallest form, and the limits of each."""

from typing import Final

import msgspec


class Rung(msgspec.Struct, frozen=True):
    """The limits of a fold. None means: no limit except the room."""

    name: str
    max_turns: int | None = None
    """The most turns that are kept."""
    max_characters: int | None = None
    """The most characters of any text except the current question."""
    newest_only: bool = False
    """Only the current question is kept, and the newest step if the request ends with a tool result."""


AS_IT_CAME: Final = Rung("as it came")
FOLD: Final = Rung("fold")
HARD: Final = Rung("hard", max_turns=5, max_characters=10_000)
QUESTION: Final = Rung("question", max_turns=5, max_characters=10_000, newest_only=True)

RUNGS: Final = (AS_IT_CAME, FOLD, HARD, QUESTION)
"""The rungs in order; an attempt has the position of its rung."""
