"""Units of a conversation, the cut between them, and the room for the kept ones.

A *unit* is the smallest part of a conversation that is kept or folded. Units before the cut are *folded*: they are not
sent, and a digest replaces them. Units after it are *kept*: in full, *trimmed* (large tool results are shortened), or
*stubbed* (tool results are reduced to a stub).
"""

from collections.abc import Sequence
from enum import Enum
from typing import Final, NamedTuple

import msgspec


class UnitKind(Enum):
    """What a unit is. A request of the client ends with any kind except an answer."""

    USER = "user"
    """The user messages of a turn."""
    CALLS = "calls"
    """A step with tool results: the next request is sent after them."""
    ANSWER = "answer"
    """A step without results: a plain answer, or calls that have no results yet."""
    GROWTH = "growth"
    """A step of simulated growth. It has no messages."""


USER, CALLS, ANSWER, GROWTH = UnitKind
# Looked up in the class, a member of an enumeration costs a call in Python 3.11, and every unit is asked.


class Unit(msgspec.Struct, frozen=True):
    """The smallest part that is kept or folded: the user messages of a turn, or one step. Costs are tokens."""

    turn: int
    kind: UnitKind
    indices: tuple[int, ...]
    """The messages. The first one tells the unit's position in the conversation. A call of an earlier turn follows its late result."""
    cost: int
    trimmed_cost: int
    """Without reasoning and media, with large results shortened."""
    stubbed_cost: int
    """With each result reduced to a stub."""


def newest_question(units: Sequence[Unit]) -> int:
    """Return the position of the newest unit with user messages; -1 without one."""
    return next((position for position in range(len(units) - 1, -1, -1) if units[position].kind is USER), -1)


class EarlierDigest(NamedTuple):
    """The digest of an earlier cut."""

    first_kept: int
    """Its lines are those of the units before this."""
    tokens: int


class Cut(msgspec.Struct, frozen=True):
    """Where a conversation is cut. All numbers are positions of units."""

    first_kept: int = 0
    """Units before this are folded. If the cut is inside a turn, the user messages of this turn are kept too."""
    stubs_end: int = 0
    """Kept units before this are stubbed."""
    trims_end: int = 0
    """Kept units from ``stubs_end`` up to this are trimmed."""
    digest_tokens: int = 0
    """Tokens for the digest of the folded part."""
    earlier_digest: EarlierDigest | None = None
    """The digest with which this digest begins, byte for byte; None if all of it is written anew."""
    quote_tokens: int = 0
    """Tokens for quotes in turns that begin under this cut."""
    tight: bool = False
    """Whether no room is left to grow: the next request moves the cut again."""


class Prices(NamedTuple):
    """The provider's prices of one prompt token, as multiples of the price of an uncached token."""

    written: float = 1.0
    """Price of a token that is written to the prompt cache."""
    read: float = 0.0
    """Price of a token that is read from it. Zero on the operator's own server."""


UNKNOWN_PRICES: Final = Prices()
"""The prices of a provider whose prices are not known: processing a token costs, reading it from a cache does not."""


class Room(msgspec.Struct, frozen=True):
    """The room that decides where a cut is placed, and its shares."""

    free: int
    """Tokens of the room without the pinned messages."""
    quote_tokens: int
    """Tokens for quotes, from the first fold on."""
    low_water: float
    """Share of the free room that the kept units may have after old results were trimmed."""
    max_turns: int | None
    prices: Prices = UNKNOWN_PRICES
