"""A summary: text by a model that stands for the oldest messages of a conversation, and when one is wanted.

A summary is asked for before it is needed, so where the next cut will stand is foretold from what cannot change any more: the
costs of the oldest messages. The answer stays the same while the conversation grows towards that cut, which is why one
job a cut is enough.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gateway.context.turns import Conversation

UNCOVERED: Final = 0.25
"""When messages worth this share of the room are folded without a summary, they come first: a session attached late."""


@dataclass(frozen=True, slots=True)
class Summary:
    """``text`` says in short what the first ``covers`` messages said."""

    text: str
    covers: int


@dataclass(frozen=True, slots=True)
class Standing:
    """How a conversation stands: what its messages cost, what is folded of it, and what it has to fit. In tokens."""

    costs: Sequence[int]
    """Of each message as the client sent it."""
    sent: int
    """What all messages cost together as they were sent: after folding, where there was any."""
    room: int
    """What the messages may cost, rounded as it is for the cut."""
    going: int
    """At least so much goes at the next cut."""
    cut: int = 0
    """The first message that stands verbatim; pinned ones in front of it stand too. 0: nothing is folded."""
    covered: int = 0
    """How many messages the newest usable summary covers; 0: there is none."""


def wanted(conversation: Conversation, standing: Standing, at: float) -> int | None:
    """How many messages the next summary should cover, or None while none is wanted.

    Wanted means: what is sent has passed the share ``at`` of the room, and what the next cut will surely take is not covered
    yet. Only whole turns are covered, or whole steps of a turn that is itself too long.
    """
    if standing.room <= 0 or standing.sent < at * standing.room:
        return None
    pinned = set(conversation.pinned)
    sums = [0]
    for index, cost in enumerate(standing.costs):
        sums.append(sums[-1] + (0 if index in pinned else cost))
    if standing.cut > standing.covered:
        uncovered = sums[standing.cut] - sums[standing.covered]
        if uncovered > UNCOVERED * standing.room:
            return standing.cut
    start = max(standing.cut, standing.covered if standing.cut else 0)
    reach = sums[start] + standing.going
    foretold = max((end for end in _boundaries(conversation) if start < end and sums[end] <= reach), default=0)
    # While the conversation has not grown past the foretold place, a later boundary could still come within reach.
    return foretold if foretold > standing.covered and sums[-1] > reach else None


def _boundaries(conversation: Conversation) -> list[int]:
    """The message indices in front of which a summary may end: where turns begin, and steps after a turn's first."""
    starts = [turn.indices[0] for turn in conversation.turns]
    inner = [step[0] for turn in conversation.turns for step in turn.steps[1:]]
    return sorted({*starts, *inner} - {0})
