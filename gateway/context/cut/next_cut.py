"""The next cut, when the room is full: trim old results, or fold up to a boundary that leaves room to grow.

Shares are of the free room, which is the room without the pinned messages.
"""

from bisect import bisect_left, bisect_right
from typing import Final

from msgspec.structs import replace

from gateway.context.cut.cost_sums import CostSums
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
from gateway.context.cut.units import ANSWER, USER, Cut, EarlierDigest, Room

KEPT_SHARE: Final = 0.15
"""Share of the units that are kept in full right after a cut. The rest of the room lets the conversation grow."""
KEPT_SHARE_IN_LARGE_ROOM: Final = 0.1
"""The same in a large room: kept units are written to the cache once more, and read with every request."""
KEPT_TOKENS_IN_SMALL_ROOM: Final = 600
"""Tokens. A room is large if `KEPT_SHARE` of it is more than this. Chosen: some ten messages of a chat."""
WHOLE_TURN_SHARE: Final = 0.25
"""Share. The cut is not placed inside a current turn of at most this size. Measured with coding agents: with 0.5, a cut that keeps the
whole turn leaves so little room to grow that 7 to 12 % more tokens are processed, and no more of what questions need is found."""
REPLY_SHARE: Final = 0.6
"""Share of the free room that the reply before a new question may take, with the question that it answers. A longer reply is
shortened to an old unit's limit."""
REPLY_SHARE_BEFORE_LONG_QUESTION: Final = 0.1
"""The same if the new question is longer than the reply: it says more by itself. A coding agent that gets results as messages of the
user costs 1.11 and 1.16 times what it costs without its oldest half (GPT-5.6, llama.cpp; windows of half), with 0.6 it would be 1.36 and 1.46."""
REPLY_AND_NEW_QUESTION_SHARE: Final = 0.85
"""Share of the free room that this reply and the new question may take together; the digest needs the rest. Counted in 360 made-up chats (rooms of
1,600 to 20,000 tokens, questions of 5 to 90 % and replies of 5 to 100 % of them): without this limit a third of the folds had no digest, and 46
lost the user's wish, with it 14; as many replies stay whole. With 0.95 the reply fills the room more often, with 0.7 fewer replies stay. `QUESTION_AND_STEP_SHARE` of `unit_limits` is another limit with
the same value: what exceeds that one is shortened, what exceeds this one is folded."""
LEAST_REPLY_ROOM: Final = 1500
"""Tokens of free room from which on this reply is kept. In a smaller room the digest needs its place: at a tenth of the histories of
customer service (rooms of some hundred tokens), 6 to 10 % less of what later calls use was left beside a reply."""
STEPS_PER_TURN: Final = 2
"""Requests of a turn that count as one turn of growth, if turns have more of them."""

ADDED_SHARE: Final = 0.75
"""Factor for what is added to an earlier digest: of the tokens that the added messages would have in a digest of everything, if each message had
the same share. Measured with agents in windows of a quarter to half of each session: with 0.5, 0.75 and 1 llama.cpp processes 7, 5 and 4 % fewer
tokens than without; with 0.5 two fewer of a hundred values for later calls are found at a tenth."""
ADDED_FRAME_TOKENS: Final = 40
"""Tokens of the frame around what is added, and of the empty row before it."""


def next_cut(sums: CostSums, cut: Cut, newest: int, turn_quote_tokens: int | None) -> Cut:
    """Return the next cut. Old results are trimmed if that frees enough room and costs no more than folding. Else units are folded up
    to the first boundary that leaves room to grow.

    ``turn_quote_tokens`` are the tokens of the quotes that the current turn has already; None if this cut decides them.
    """
    quote_tokens = sums.room.quote_tokens if turn_quote_tokens is None else turn_quote_tokens
    most_filled = sums.room.free - quote_tokens
    unspent = quote_tokens if turn_quote_tokens is None else 0
    first = _first_kept(sums, cut, newest)
    folded = _with_shares(sums, _cut_at(first), newest, most_filled, unspent)
    if sums.too_many_turns(cut, newest):
        return folded
    folded, price_of_folding = _with_cheaper_digest(sums, cut, folded, newest, most_filled)
    for trimmed, unchanged in _trimmed_cuts(sums, cut, newest):
        kept = sums.kept_cost(trimmed, newest)
        size = kept + cut.digest_tokens
        fits = size <= sums.room.low_water * most_filled
        if fits and _price(sums, newest, size, kept - unchanged, most_filled) <= price_of_folding:
            return trimmed
    return folded


def kept_after_cut(room: Room) -> float:
    """Return the most tokens of the units that are kept right after a cut."""
    return min(KEPT_SHARE * room.free, max(KEPT_SHARE_IN_LARGE_ROOM * room.free, KEPT_TOKENS_IN_SMALL_ROOM))


def _cut_at(first: int) -> Cut:
    """Return a cut that keeps all units from ``first`` on in full."""
    return Cut(first, first, first)


def _price(sums: CostSums, newest: int, size: int, rewritten: int, most_filled: int) -> float:
    """Return the expected price for each token of growth until the room is full again.

    It is the price of what is written to the cache now, and of what the requests until then read from it. ``size`` is
    the tokens of digest and kept units, ``rewritten`` those that the cache does not have. The room is full when digest and kept units have
    ``most_filled`` tokens.
    """
    prices = sums.room.prices
    growth = max(most_filled - size, 1)
    return prices.written * rewritten / growth + prices.read * (size + growth / 2) / sums.tokens_per_request(newest)


def _with_cheaper_digest(sums: CostSums, cut: Cut, folded: Cut, newest: int, most_filled: int) -> tuple[Cut, float]:
    """Return the cut ``folded`` with the cheaper digest and its price: written anew, or the present one with an addition. This one is larger, but
    its beginning stays in the cache."""
    kept = sums.kept_cost(folded, newest)
    size = kept + folded.digest_tokens
    price = _price(sums, newest, size, size, most_filled)
    continued = _with_earlier_digest(sums, cut, folded, newest)
    if continued is None or continued.earlier_digest is None:
        return folded, price
    size = kept + continued.digest_tokens
    price_of_continuing = _price(sums, newest, size, size - continued.earlier_digest.tokens, most_filled)
    can_grow = most_filled - size >= GROWTH_REQUESTS * sums.tokens_per_request(newest)
    return (continued, price_of_continuing) if can_grow and price_of_continuing < price else (folded, price)


def _with_earlier_digest(sums: CostSums, cut: Cut, folded: Cut, newest: int) -> Cut | None:
    """Return the cut ``folded`` with a digest that begins like that of ``cut``. None without one, in a room that is too small, and in a chat: its
    requests need little room, and a larger digest leaves less for quotes."""
    is_possible = cut.digest_tokens and not (cut.tight or folded.tight) and folded.first_kept > cut.first_kept
    if not is_possible or sums.room.free < LEAST_DIGEST_ROOM or not sums.has_agent_at(newest):
        return None
    earlier = cut.earlier_digest or EarlierDigest(cut.first_kept, cut.digest_tokens)
    share_of_added = 1 - sums.full[earlier.first_kept] / max(sums.full[folded.first_kept], 1)
    added = int(ADDED_SHARE * share_of_added * earlier.tokens) + ADDED_FRAME_TOKENS
    return replace(folded, digest_tokens=earlier.tokens + added, earlier_digest=earlier)


def _trimmed_cuts(sums: CostSums, cut: Cut, newest: int) -> list[tuple[Cut, int]]:
    """Return the ways to free room without folding more: trim results, then reduce them to stubs. Each comes with the
    tokens of the kept units before the first changed one."""
    in_full = sums.room.free * KEPT_SHARE
    end = newest
    while end > cut.first_kept and sums.full[newest + 1] - sums.full[end - 1] <= in_full:
        end -= 1
    trimmed = replace(cut, trims_end=max(end, cut.trims_end))
    stubbed = replace(trimmed, stubs_end=max(end, cut.stubs_end))
    stubs_end = max(cut.stubs_end, cut.first_kept)
    stubs = sums.stubbed[stubs_end] - sums.stubbed[cut.first_kept]
    trims = sums.trimmed[max(cut.trims_end, stubs_end)] - sums.trimmed[stubs_end]
    return [(trimmed, stubs + trims), (stubbed, stubs)]


def _first_kept(sums: CostSums, cut: Cut, newest: int) -> int:
    """Return the first unit to keep: the first turn boundary that leaves room to grow, else the start of the current
    turn, else a step in it."""
    limit = kept_after_cut(sums.room)
    boundary = _turn_boundary(sums, cut, newest, limit)
    current = sums.turn_start_of[newest]
    if newest == current and boundary in (None, newest):
        return _reply_or_question(sums, cut, newest)
    if boundary is not None:
        return boundary
    fits_whole = sums.kept_cost(_cut_at(current), newest) <= sums.room.free * WHOLE_TURN_SHARE
    if cut.first_kept <= current and fits_whole:
        return current
    steps = [
        position
        for position in range(max(current, cut.first_kept), newest + 1)
        if sums.units[position].kind is not USER
    ]
    for step in steps:
        if sums.kept_cost(_cut_at(step), newest) <= limit:
            return step
    return steps[-1]


def _reply_or_question(sums: CostSums, cut: Cut, question: int) -> int:
    """Return the first unit to keep with a new question that leaves no room for the turn before: the plain reply before it, because
    few short questions can be read without the words that they answer, or the question if that reply is too large, alone or with it."""
    first, free = question - 1, sums.room.free
    reply = _cut_at(first)
    is_answered = first > cut.first_kept and sums.units[first].kind is ANSWER
    if not is_answered or free < LEAST_REPLY_ROOM or sums.too_many_turns(reply, question):
        return question
    both = sums.kept_cost(reply, question)
    cost = both - sums.kept_cost(_cut_at(question), question)
    refers_to_reply = sums.units[question].cost <= sums.units[first].cost
    most = REPLY_SHARE if refers_to_reply else REPLY_SHARE_BEFORE_LONG_QUESTION
    return first if cost <= most * free and both <= REPLY_AND_NEW_QUESTION_SHARE * free else question


def _turn_boundary(sums: CostSums, cut: Cut, newest: int, limit: float) -> int | None:
    """Return the first turn boundary after the cut from which the units cost at most ``limit`` tokens; None without
    one."""
    starts, most = sums.turn_starts, sums.room.max_turns
    # With a limit of turns, enough of them are folded that several new ones fit.
    oldest = -1 if most is None else sums.units[newest].turn - max(int(most * sums.room.low_water), 1)
    low = bisect_left(starts, oldest + 1, bisect_right(starts, cut.first_kept), key=lambda at: sums.units[at].turn)
    high = bisect_right(starts, newest)
    # The later the cut, the less is kept: the negative costs are in ascending order.
    found = bisect_left(starts, -limit, low, max(low, high), key=lambda at: -sums.kept_cost(_cut_at(at), newest))
    return starts[found] if found < high else None


def _with_shares(sums: CostSums, cut: Cut, newest: int, most_filled: int, unspent: int) -> Cut:
    """Return the cut with the tokens of its digest and quotes.

    If several turns fit beside the digest, it gets its usual share. If a few requests fit, it gets a smaller share. Else
    every request moves the cut: then a digest of everything serves better than quotes, and it gets all the remaining room
    and most of the quotes' share.

    Digest and kept units may have ``most_filled`` tokens. Beside them ``unspent`` tokens are free for quotes of the current turn: the digest
    may take what its quotes leave.
    """
    if cut.first_kept == 0:
        return replace(cut, quote_tokens=0)
    most = sums.room.quote_tokens
    shares = AGENT if sums.has_agent_at(newest) else CHAT
    left = max(most_filled - sums.kept_cost(cut, newest), 0)
    if usual := _usual_digest(sums, newest, left, shares):
        quotes_kept_free = int(min(most * shares.quotes, shares.most_quote_tokens))
        return replace(cut, digest_tokens=usual, quote_tokens=quotes_kept_free)
    small_quotes = int(most * shares.small_quotes)
    if small := _small_digest(sums, newest, left + max(unspent - small_quotes, 0), shares):
        return replace(cut, digest_tokens=small, quote_tokens=small_quotes)
    tight_quotes = int(most * shares.tight_quotes)
    tight_quotes = tight_quotes if tight_quotes >= LEAST_TIGHT_QUOTE_TOKENS else 0
    digest = left + max(unspent - tight_quotes, 0)
    return replace(cut, digest_tokens=digest, quote_tokens=tight_quotes, tight=True)


def _usual_digest(sums: CostSums, newest: int, left: int, shares: Shares) -> int:
    """Return the tokens of a usual digest; 0 if several turns do not fit beside it, or if a chat has long messages."""
    free = sums.room.free
    if shares is CHAT and LEAST_ROOM_TO_GROW <= free < LONG_MESSAGE_REQUESTS * sums.tokens_per_request(newest):
        return 0
    size = max(int(free * shares.digest), _least_digest(free, shares))
    turns = max(sums.units[newest].turn + 1, sums.requests[newest] / STEPS_PER_TURN)
    return size if left - size >= GROWTH_TURNS * sums.full[newest + 1] / turns else 0


def _small_digest(sums: CostSums, newest: int, left: int, shares: Shares) -> int:
    """Return the tokens of a digest beside which a few more requests fit; 0 if the room holds too few requests."""
    free, request = sums.room.free, sums.tokens_per_request(newest)
    least, most = shares.small_digest
    share = int(min(max(left - GROWTH_REQUESTS * request, least * free), most * free))
    size = max(share, _least_digest(free, shares))
    can_grow = free >= LEAST_ROOM_TO_GROW and free >= shares.tight_requests * request
    return size if can_grow and left - size >= LEAST_GROWTH_REQUESTS * request else 0


def _least_digest(free: int, shares: Shares) -> int:
    """Return the tokens that a usual and a small digest have at least; 0 for agents, and in a room that is too small."""
    return int(min(shares.least_digest_tokens, free * LEAST_DIGEST_SHARE)) if free >= LEAST_DIGEST_ROOM else 0
