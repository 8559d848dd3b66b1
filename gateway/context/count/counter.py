"""A counter: how tokens are counted for one model."""

from collections.abc import Callable
from dataclasses import dataclass

from gateway.wire.chat import Message


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
