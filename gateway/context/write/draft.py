"""A draft: the messages to send, their cost, and the steps that made them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from gateway.context.cut.layout import Layout
from gateway.context.write import note
from gateway.wire.message import Message


@dataclass(frozen=True, slots=True)
class Step:
    """One step to make a request fit: its stage, the tokens it saved, in words without message text."""

    stage: str
    saved: int
    detail: str = ""
    count: int = 0
    """The number of lines it wrote, or of messages it changed."""
    total: int = 0
    """The number of lines that it chose from."""


@dataclass(frozen=True, slots=True)
class Kept:
    """How much of the current question stands, in characters."""

    characters: int
    total: int


@dataclass(frozen=True, slots=True)
class Draft:
    """Messages for an upstream. ``costs`` runs parallel to ``messages``, in tokens."""

    messages: tuple[Message, ...]
    costs: tuple[int, ...]
    steps: tuple[Step, ...] = ()
    turns_folded: int = 0
    """The number of whole turns that no longer stand verbatim."""
    question_kept: Kept | None = None
    """Set when the current question was cut."""

    @property
    def cost(self) -> int:
        """Return the cost of all messages, in tokens."""
        return sum(self.costs)


@dataclass(frozen=True)  # no slots: the messages are put together only once
class Sketch:
    """An unfinished draft: the input and output of each stage of folding."""

    layout: Layout
    standing: Mapping[int, Message]
    """The standing messages by index, each in its present form."""
    note: str = ""
    quotes: Mapping[int, str] = field(default_factory=dict)
    """By the index of the message they stand behind."""
    steps: tuple[Step, ...] = ()
    question_kept: Kept | None = None

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """Return the messages to send."""
        return note.place(self.standing, self.note, self.quotes)
