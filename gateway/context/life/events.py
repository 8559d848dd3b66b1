"""The events that move a request from one state to the next: each says what one step of the driver found."""

from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from gateway.context.life.ladder import Attempt, Task
from gateway.context.life.lessons import Lesson
from gateway.context.life.replies import Reply


class Place(Protocol):
    """One upstream and model that may answer a request: the part of its facts that decisions need."""

    @property
    def upstream(self) -> str:
        """The upstream's configured name."""

    @property
    def model(self) -> str:
        """The model's name at the upstream."""

    @property
    def window(self) -> int:
        """Its context window, in tokens."""

    @property
    def max_retries(self) -> int:
        """The number of calls after the first one for a refused request."""


class PlacesFound(NamedTuple):
    """The places that may answer, in order; at least one."""

    places: tuple[Place, ...]
    larger: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class FitProven:
    """The body's size proves that the request fits."""


FIT_PROVEN: Final = FitProven()
"""The only one: it has no facts of its own."""


@dataclass(frozen=True, slots=True)
class Counted:
    """The request was counted for its place."""

    task: Task


@dataclass(frozen=True, slots=True)
class AttemptMade:
    """An attempt; None when there is nothing smaller."""

    attempt: Attempt | None
    cannot_fit: bool = False
    """Even this smallest form is certainly too long, so that no upstream needs to be called."""
    lessons: tuple[Lesson, ...] = ()
    """The lessons of the preceding refusal."""


class ReplyCame(NamedTuple):
    """An upstream answered."""

    reply: Reply


@dataclass(frozen=True, slots=True)
class NoReply:
    """An upstream gave no answer."""

    error: Exception


@dataclass(frozen=True, slots=True)
class PartFailed:
    """A bug of our own in the part that was running."""


Event = PlacesFound | FitProven | Counted | AttemptMade | ReplyCame | NoReply | PartFailed
