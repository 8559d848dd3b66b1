"""The budget: how many tokens of a window are left for messages."""

from dataclasses import dataclass


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
    capped: bool = False
    """Whether ``reserve`` was raised because an upstream refused a prompt and did not say how large one may be."""

    @property
    def room(self) -> int:
        """What the messages may cost. Equality fits."""
        return self.window - self.reserve - self.tools - self.margin

    @property
    def most(self) -> int:
        """What the pinned messages and the current question may cost when all else gives way to them."""
        return self.window - self.least - self.tools

    @property
    def question_room(self) -> int:
        """What they may cost where the question must be cut: all there is, and never less than half of it."""
        most = self.most - self.margin
        return max(self.room, most // 2) if self.capped else most
