"""A draft: the messages to send, their cost, and the steps that made them."""

from collections.abc import Mapping
from functools import cached_property
from typing import Final

import msgspec

from gateway.context.cut.layout import Layout
from gateway.context.write import note
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
    """The number of turns of which nothing is kept."""
    question_kept: QuestionKept | None = None
    """Set when the current question was shortened."""

    @property
    def cost(self) -> int:
        """Return the cost of all messages, in tokens."""
        return sum(self.costs)


class Sketch(msgspec.Struct, frozen=True, dict=True):  # cached properties need a dict
    """An unfinished draft. Each stage of a fold takes a sketch and returns a sketch."""

    layout: Layout
    kept: Mapping[int, Message]
    """The kept messages by index, each in its present form."""
    note: str = ""
    quotes: Mapping[int, str] = {}
    """By the index of the message that they follow."""
    steps: tuple[Step, ...] = ()
    question_kept: QuestionKept | None = None

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """Return the messages to send."""
        return note.insert(self.kept, self.note, self.quotes)
