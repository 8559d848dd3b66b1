"""The rungs of the ladder, from the original request to its smallest form, and the limits of each."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Rung:
    """The limits of a fold. None means: no limit except the room."""

    name: str
    turns: int | None = None
    """The most turns that stand."""
    characters: int | None = None
    """Characters that stand of any text, except the current question."""
    newest_only: bool = False
    """Only the current question stands, with the newest step if the request ends inside a tool loop."""


AS_IT_CAME: Final = Rung("as it came")
FOLD: Final = Rung("fold")
HARD: Final = Rung("hard", turns=5, characters=10_000)
QUESTION: Final = Rung("question", turns=5, characters=10_000, newest_only=True)

RUNGS: Final = (AS_IT_CAME, FOLD, HARD, QUESTION)
"""The rungs, by the number in an attempt."""
