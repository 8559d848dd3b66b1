"""The tokens of a digest and of quotes beside it, right after a cut."""

from typing import Final

from msgspec.structs import replace

from gateway.context.cut.full_room import FullRoom
from gateway.context.cut.shares import (
    AGENT,
    CHAT,
    GROWTH_REQUESTS,
    GROWTH_TURNS,
    LEAST_DIGEST_ROOM,
    LEAST_DIGEST_SHARE,
    LEAST_GROWTH_REQUESTS,
    LEAST_ROOM_TO_GROW,
    LEAST_TIGHT_QUOTE_TOKENS,
    LONG_MESSAGE_REQUESTS,
    Shares,
)
from gateway.context.cut.units import Cut, EarlierDigest

STEPS_PER_TURN: Final = 2
"""Requests of a turn that count as one turn of growth, if turns have more of them."""
ADDED_SHARE: Final = 0.75
"""Factor for what is added to an earlier digest: of the tokens that the added messages would have in a digest of everything, if each message had
the same share. Measured with agents in windows of a quarter to half of each session: with 0.5, 0.75 and 1 llama.cpp processes 7, 5 and 4 % fewer
tokens than without; with 0.5 two fewer of a hundred values for later calls are found at a tenth."""
ADDED_FRAME_TOKENS: Final = 40
"""Tokens of the frame around what is added, and of the empty row before it."""


def with_digest(full: FullRoom, cut: Cut) -> Cut:
    """Return a cut with the tokens of its digest and of quotes beside it.

    If several turns fit beside the digest, it gets its usual share. If a few requests fit, it gets a smaller share. Else
    every request moves the cut: then a digest of everything serves better than quotes, and it gets all the remaining room
    and most of the quotes' share.
    """
    if cut.first_kept == 0:
        return replace(cut, quote_tokens=0)
    most = full.room.quote_tokens
    shares = AGENT if full.has_agent else CHAT
    left = max(full.most_filled - full.kept_cost(cut), 0)
    if usual := _usual_digest(full, left, shares):
        quotes_kept_free = int(min(most * shares.quotes, shares.most_quote_tokens))
        return replace(cut, digest_tokens=usual, quote_tokens=quotes_kept_free)
    small_quotes = int(most * shares.small_quotes)
    if small := _small_digest(full, left + max(full.unspent - small_quotes, 0), shares):
        return replace(cut, digest_tokens=small, quote_tokens=small_quotes)
    tight_quotes = int(most * shares.tight_quotes)
    tight_quotes = tight_quotes if tight_quotes >= LEAST_TIGHT_QUOTE_TOKENS else 0
    digest = left + max(full.unspent - tight_quotes, 0)
    return replace(cut, digest_tokens=digest, quote_tokens=tight_quotes, tight=True)


def _usual_digest(full: FullRoom, left: int, shares: Shares) -> int:
    """Return the tokens of a usual digest; 0 if several turns do not fit beside it, or if a chat has long messages."""
    sums, newest, free = full.sums, full.newest, full.room.free
    if shares is CHAT and LEAST_ROOM_TO_GROW <= free < LONG_MESSAGE_REQUESTS * full.tokens_per_request:
        return 0
    size = max(int(free * shares.digest), _least_digest(free, shares))
    turns = max(sums.units[newest].turn + 1, sums.requests[newest] / STEPS_PER_TURN)
    return size if left - size >= GROWTH_TURNS * sums.full[newest + 1] / turns else 0


def _small_digest(full: FullRoom, left: int, shares: Shares) -> int:
    """Return the tokens of a digest beside which a few more requests fit; 0 if the room holds too few requests."""
    free, request = full.room.free, full.tokens_per_request
    least, most = shares.small_digest
    share = int(min(max(left - GROWTH_REQUESTS * request, least * free), most * free))
    size = max(share, _least_digest(free, shares))
    can_grow = free >= LEAST_ROOM_TO_GROW and free >= shares.tight_requests * request
    return size if can_grow and left - size >= LEAST_GROWTH_REQUESTS * request else 0


def _least_digest(free: int, shares: Shares) -> int:
    """Return the tokens that a usual and a small digest have at least; 0 for agents, and in a room that is too small."""
    return int(min(shares.least_digest_tokens, free * LEAST_DIGEST_SHARE)) if free >= LEAST_DIGEST_ROOM else 0


def with_earlier_digest(full: FullRoom, new: Cut) -> Cut | None:
    """Return the ``new`` cut with a digest that begins like the present one.

    None if there is no present digest, if the room is too small, and in a chat: its requests need little room, and a larger digest leaves
    less for quotes.
    """
    present, sums = full.cut, full.sums
    is_possible = present.digest_tokens and not (present.tight or new.tight) and new.first_kept > present.first_kept
    if not is_possible or full.room.free < LEAST_DIGEST_ROOM or not full.has_agent:
        return None
    earlier = present.earlier_digest or EarlierDigest(present.first_kept, present.digest_tokens)
    share_of_added = 1 - sums.full[earlier.first_kept] / max(sums.full[new.first_kept], 1)
    added = int(ADDED_SHARE * share_of_added * earlier.tokens) + ADDED_FRAME_TOKENS
    return replace(new, digest_tokens=earlier.tokens + added, earlier_digest=earlier)
