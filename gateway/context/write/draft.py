"""A draft: the messages as they would be sent, what they cost, and what was done to get there."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from gateway.context.cut.layout import Layout
from gateway.context.write import note
from gateway.wire.chat import Message


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that was done to fit a request: which stage, how many tokens it saved, in words without message text."""

    stage: str
    saved: int
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Kept:
    """How much of the current question stands, in characters."""

    characters: int
    total: int


@dataclass(frozen=True, slots=True)
class Draft:
    """Messages on their way to an upstream. ``costs`` runs parallel to ``messages``, in tokens."""

    messages: tuple[Message, ...]
    costs: tuple[int, ...]
    steps: tuple[Step, ...] = ()
    turns_folded: int = 0
    """How many whole turns no longer stand verbatim."""
    question_kept: Kept | None = None
    """Set where the current question had to be cut."""

    @property
    def cost(self) -> int:
        """What all messages cost, in tokens."""
        return sum(self.costs)


@dataclass(frozen=True)  # no slots: the messages are put together once
class Sketch:
    """A draft in the making: what a stage of folding takes and returns."""

    layout: Layout
    standing: Mapping[int, Message]
    """The messages that stand, by index, each in the form it stands in."""
    note: str = ""
    quotes: Mapping[int, str] = field(default_factory=dict)
    """By the index of the message they stand in front of."""
    steps: tuple[Step, ...] = ()
    question_kept: Kept | None = None

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """The messages as they would be sent."""
        return note.place(self.standing, self.note, self.quotes)
