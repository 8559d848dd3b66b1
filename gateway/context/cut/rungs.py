"""The rungs of the ladder, from a request as it came to its smallest form, and what each one lets stand."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Rung:
    """How hard a fold is. None means: no limit but the room."""

    name: str
    turns: int | None = None
    """At most so many turns stand."""
    characters: int | None = None
    """At most so many characters of any text stand, the current question's aside."""
    newest_only: bool = False
    """Only the current question stands, with the newest step where the request ends inside a tool loop."""


AS_IT_CAME: Final = Rung("as it came")
FOLD: Final = Rung("fold")
HARD: Final = Rung("hard", turns=5, characters=10_000)
QUESTION: Final = Rung("question", turns=5, characters=10_000, newest_only=True)

RUNGS: Final = (AS_IT_CAME, FOLD, HARD, QUESTION)
"""By the number that an attempt carries."""
