"""The events that move a request from one state to the next: each says what one step of the driver found."""

from typing import Final

import msgspec

from gateway.context.life.attempt import Attempt
from gateway.context.life.lessons import Lesson
from gateway.context.life.place import Place
from gateway.context.life.replies import Reply
from gateway.context.life.task import Task


class PlacesFound(msgspec.Struct, frozen=True):
    """The places that may answer, in order; at least one."""

    places: tuple[Place, ...]
    larger: tuple[Place, ...] = ()


class FitProven(msgspec.Struct, frozen=True):
    """The body's size proves that the request fits."""


FIT_PROVEN: Final = FitProven()
"""The only one: it has no facts of its own."""


class Counted(msgspec.Struct, frozen=True):
    """The request was counted for its place."""

    task: Task


class AttemptMade(msgspec.Struct, frozen=True):
    """An attempt; None when there is nothing smaller."""

    attempt: Attempt | None
    cannot_fit: bool = False
    """Even this smallest form is certainly too long, so that no upstream needs to be called."""
    lessons: tuple[Lesson, ...] = ()
    """The lessons of the preceding refusal."""


class ReplyCame(msgspec.Struct, frozen=True):
    """An upstream answered."""

    reply: Reply


class NoReply(msgspec.Struct, frozen=True):
    """An upstream gave no answer."""

    error: Exception


class PartFailed(msgspec.Struct, frozen=True):
    """A bug of our own in the part that was running."""


Event = PlacesFound | FitProven | Counted | AttemptMade | ReplyCame | NoReply | PartFailed
