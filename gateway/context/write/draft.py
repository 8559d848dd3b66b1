"""A draft: the messages to send, their cost, and the steps that made them."""

from typing import Final

import msgspec

from gateway.wire.message import Message

NOTE_STAGES: Final = frozenset({"digest", "summary", "note"})
"""The stages that write the note, which replaces the folded part."""
QUOTES_STAGE: Final = "recall"
"""The stage that writes the quotes."""


class Step(msgspec.Struct, frozen=True):
    """One step to make a request fit: its stage, the tokens it saved, and a description without message text."""

    stage: str
    saved: int
    detail: str = ""
    count: int = 0
    """The number of lines it wrote, or of messages it changed."""
    total: int = 0
    """The number of lines that it chose from."""


class QuestionKept(msgspec.Struct, frozen=True):
    """How many characters of the current question are kept, of how many in total."""

    characters: int
    total: int


class Draft(msgspec.Struct, frozen=True):
    """The messages to send. ``costs`` has the tokens of each of them."""

    messages: tuple[Message, ...]
    costs: tuple[int, ...]
    steps: tuple[Step, ...] = ()
    turns_folded: int = 0
    """The number of turns that are left out whole."""
    question_kept: QuestionKept | None = None
    """Set when the current question was shortened."""

    @property
    def cost(self) -> int:
        """Return the cost of all messages, in tokens."""
        return sum(self.costs)
