"""The budget: the tokens of a window that are left for messages."""

from typing import Final

import msgspec

QUESTION_SHARE: Final = 0.7
"""Share of the window without all other messages that a question gets at least when it must be cut. Chosen: texts are cut
by rows, so it then keeps at least half of the window in any case."""

ROUNDING_STEPS: Final = 128
"""Steps of a window by which reserve and fixed tokens are rounded up. Chosen: one step is less than 1 % of the window."""


class Budget(msgspec.Struct, frozen=True):
    """All token arithmetic of one request against one window. Every value is in tokens."""

    window: int
    reserve: int
    """Kept free for the answer."""
    fixed: int
    """Tool definitions, response schema, legacy functions and the fixed overhead of a request."""
    margin: int
    """Kept free because the count may be too low."""
    least_output: int = 0
    """Kept free for the answer if the current question needs the rest."""
    refused_before: bool = False
    """Whether an upstream has refused this conversation: then our count is not too high."""

    @property
    def room(self) -> int:
        """The most tokens of all messages. Equality fits."""
        return self.window - self.reserve - self.fixed - self.margin

    @property
    def rounded_room(self) -> int:
        """The room with reserve and fixed tokens rounded up in coarse steps, so that a slightly different request does not move a
        cut."""
        step = max(self.window // ROUNDING_STEPS, 1)
        return self.window - self.margin - -(-(self.reserve + self.fixed) // step) * step

    @property
    def largest_room(self) -> int:
        """The most tokens of the pinned messages and the current question when nothing else is sent."""
        return self.window - self.least_output - self.fixed

    def question_room(self, others: int) -> int:
        """Return the most tokens of a question that must be cut, beside other messages of so many tokens.

        The room may be small because of a large reserve or a refusal without numbers. The question then gets
        `QUESTION_SHARE` of the window instead.
        """
        return max(self.room - others, int((self.largest_room - self.margin - others) * QUESTION_SHARE))
