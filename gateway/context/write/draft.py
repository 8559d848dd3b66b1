"""A draft: the messages as they would be sent, what they cost, and what was done to get there."""

from dataclasses import dataclass

from gateway.wire.chat import Message


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that was done to fit a request: which stage, how many tokens it saved, in words without message text."""

    stage: str
    saved: int
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Draft:
    """Messages on their way to an upstream. ``costs`` runs parallel to ``messages``, in tokens."""

    messages: tuple[Message, ...]
    costs: tuple[int, ...]
    steps: tuple[Step, ...] = ()
    turns_folded: int = 0
    """How many whole turns no longer stand verbatim."""

    @property
    def cost(self) -> int:
        """What all messages cost, in tokens."""
        return sum(self.costs)
