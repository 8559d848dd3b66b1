"""The budget: the tokens of a window that are left for messages."""

from dataclasses import dataclass
from typing import Final

LEAST_OF_QUESTION: Final = 0.7
"""Share of the remaining room for a question that must be cut. Chosen: it then always gets at least half, although
texts are cut by rows."""


@dataclass(frozen=True, slots=True)
class Budget:
    """All token arithmetic of one request against one window. Every value is in tokens."""

    window: int
    reserve: int
    """Kept free for the answer."""
    tools: int
    """Tool definitions, response schema, legacy functions and the fixed overhead of a request."""
    margin: int
    """Kept free because the count may be too low."""
    least: int = 0
    """The smallest output for the answer, when the current question needs the rest."""
    refused: bool = False
    """Whether an upstream has refused the conversation already: then our count is not too high."""

    @property
    def room(self) -> int:
        """The limit for the messages' cost. Equality fits."""
        return self.window - self.reserve - self.tools - self.margin

    @property
    def most(self) -> int:
        """The limit for pinned messages and the current question when everything else is dropped."""
        return self.window - self.least - self.tools

    def question_room(self, others: int) -> int:
        """The limit for a question that must be cut, when other messages cost so many tokens.

        If a refusal without numbers, or a large reserve, made the room small, it is most of the window's rest.
        """
        return max(self.room - others, int((self.most - self.margin - others) * LEAST_OF_QUESTION))
