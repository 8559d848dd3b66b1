"""How the operator wants a model's requests folded."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Policy:
    """The part of ``fold:`` in the configuration that the core needs; shares are of the room, 0 to 1."""

    low_water: float = 0.6
    """A fold goes down to this share of the room, not to the brim, so that it can stand for several turns."""
    margin: float = 0.02
    """Share of the window kept free because a count may be short. An exact count may use less."""
    max_turns: int | None = None
    """At most so many turns stay verbatim, even where more would fit."""
    tool_result_chars: int = 20_000
    """At most so many characters an old tool result keeps when it is cut for the first time."""
    question: Literal["cut", "refuse"] = "cut"
    """What becomes of a current question that cannot fit: it is cut, or the refusal is handed on."""
    recall_share: float = 0.15
    """Share of the room that excerpts of folded content may take; 0 switches recall off."""
    min_output: int = 1024
    """``max_tokens`` is never lowered below this many tokens."""
