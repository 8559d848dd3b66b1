"""A draft: the messages as they would be sent, what they cost, and what was done to get there."""

from collections.abc import Callable
from dataclasses import dataclass

from providers.wire import Message


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


@dataclass(frozen=True, slots=True)
class Counter:
    """How tokens are counted for one model. Both functions are pure and cached by content.

    ``message`` includes the per-message overhead of the wire format; ``text`` is a bare text. A counter whose numbers
    move only in coarse steps is *stable*: where a cut stands is asked of a stable one only.
    """

    message: Callable[[Message], int]
    text: Callable[[str], int]
    exact: bool = False
    name: str = ""
    """What tells this counter from all others, so that what it said of a message can be written down; empty: it is not."""
