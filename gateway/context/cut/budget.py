"""The budget: how many tokens of a window are left for messages."""

from dataclasses import dataclass
from typing import Final

LEAST_OF_QUESTION: Final = 0.7
"""Share of what is left that a question which must be cut keeps, so that it never has less than half, though texts are cut by the row."""


@dataclass(frozen=True, slots=True)
class Budget:
    """All token arithmetic of one request against one window. Every value is in tokens."""

    window: int
    reserve: int
    """Kept free for the answer."""
    tools: int
    """Tool definitions, response schema, legacy functions and the fixed overhead of a request."""
    margin: int
    """Kept free because the count may be short."""
    least: int = 0
    """What the answer is left at least, where the current question needs the rest."""
    refused: bool = False
    """Whether an upstream has refused the conversation already: then a count is not taken for too high."""

    @property
    def room(self) -> int:
        """What the messages may cost. Equality fits."""
        return self.window - self.reserve - self.tools - self.margin

    @property
    def most(self) -> int:
        """What the pinned messages and the current question may cost when all else gives way to them."""
        return self.window - self.least - self.tools

    def question_room(self, others: int) -> int:
        """What a question that must be cut may cost beside so many tokens of others: what they leave of the room.

        Where a refusal without numbers, or a large reserve, made that small, it is most of what the window leaves.
        """
        return max(self.room - others, int((self.most - self.margin - others) * LEAST_OF_QUESTION))
