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

    @property
    def room(self) -> int:
        """What the messages may cost. Equality fits."""
        return self.window - self.reserve - self.tools - self.margin
