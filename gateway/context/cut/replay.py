"""Find the cut: replay the conversation's growth, and move the cut only when the room is full.

A *unit* is the smallest part of a conversation that is kept or folded. Units before the cut are *folded*: they are not
sent, and a digest replaces them. Units after it are *kept*: in full, *trimmed* (large tool results are shortened), or
*stubbed* (tool results are reduced to a stub).

The result is a function of the messages and of rounded sizes alone. Folding the same conversation again, on any replica
and after any restart, gives the same cut; a longer one gets the same cut until the room is used up again. This module
sees units and their costs, never a text.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from gateway.context.cut.budget import Budget
from gateway.context.cut.shares import (
    AGENT,
    AGENT_CALL_TOKENS_SHARE,
    AGENT_CALLING_TURNS_SHARE,
    AUTONOMOUS_RESULTS,
    CHAT,
    GROWTH_REQUESTS,
    GROWTH_TURNS,
    LEAST_GROWTH_REQUESTS,
    LEAST_QUOTE_TOKENS,
    LEAST_ROOM_TO_GROW,
    LONG_MESSAGE_REQUESTS,
    Shares,
)

# Shares are of the free room, which is the room without the pinned messages.
KEPT_SHARE: Final = 0.15
"""Share of the units that are kept in full right after a cut. The rest of the room lets the conversation grow."""
KEPT_SHARE_IN_LARGE_ROOM: Final = 0.1
"""The same in a large room: kept units are written to the cache once more, and read with every request."""
KEPT_TOKENS_IN_SMALL_ROOM: Final = 600
"""Tokens. A room is large if `KEPT_SHARE` of it is more than this. Chosen: some ten messages of a chat."""
WHOLE_TURN_SHARE: Final = 0.5
"""Share. The cut is not placed inside a current turn of at most this size."""
OLD_UNIT_SHARE: Final = 0.5
"""Share of one old unit. A larger one is shortened to this."""
QUESTION_AND_STEP_SHARE: Final = 0.85
"""Share of the current question and the newest step together. Larger ones are shortened."""
FINAL_SIZE_TOKENS: Final = 2000
"""Tokens. If an old unit may have at least so many, a newest step that is too large is shortened to an old unit's limit
at once: it keeps this size, so the next request begins like this one. In a smaller room it gets all the remaining room
while it is the newest step."""
STEPS_PER_TURN: Final = 2
"""Requests of a turn that count as one turn of growth, if turns have more of them."""


class Unit(NamedTuple):
    """The smallest part that is kept or folded: the user messages of a turn (``step`` is -1), or one step. Costs are
    tokens."""

    turn: int
    step: int
    indices: tuple[int, ...]
    cost: int
    trimmed_cost: int
    """Without reasoning and media, with large results shortened."""
    stubbed_cost: int
    """With each result reduced to a stub."""
    can_end_request: bool = True
    """User messages and tool results can be the end of a request; a plain answer cannot."""


class Cut(msgspec.Struct, frozen=True):
    """Where a conversation is cut. All places are positions of units."""

    first_kept: int = 0
    """Units before this are folded. If the cut is inside a turn, the user messages of this turn are kept too."""
    stubs_end: int = 0
    """Kept units before this are stubbed."""
    trims_end: int = 0
    """Kept units from ``stubs_end`` up to this are trimmed."""
    digest_tokens: int = 0
    """Tokens for the digest of the folded part."""
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
    recall: int
    """Tokens for quotes, from the first fold on."""
    low_water: float
    """Share of the free room that the kept units may have after old results were trimmed."""
    max_turns: int | None
    prices: Prices = UNKNOWN_PRICES


def rounded_room(budget: Budget) -> int:
    """Return the room in tokens, with reserve and tools rounded up in coarse steps: a slightly different request does
    not move a cut."""
    step = max(budget.window // 128, 1)
    taken = budget.reserve + budget.tools
    return budget.window - budget.margin - -(-taken // step) * step


class ReplayState(NamedTuple):
    """The state of a replay after a unit."""

    cut: Cut
    quote_tokens: int
    """Tokens of the quotes of the current turn."""
    cost_change: int
    """Tokens that the cut adds to the cost of all units; negative if it saves tokens. See `_CostSums.cost_change`."""


class Replay(NamedTuple):
    """The replay of a conversation. The replay of a longer conversation continues it."""

    units: tuple[Unit, ...]
    cuts: tuple[Cut, ...]
    """The cut after each unit."""
    before_last: ReplayState = ReplayState(Cut(), 0, 0)
    """The state before the last unit. A longer conversation continues here, because the last unit is replayed again."""


def replay(units: Sequence[Unit], room: Room) -> list[Cut]:
    """Return the cut after each unit, as the conversation grew."""
    return list(grow(units, room, None).cuts)


def grow(units: Sequence[Unit], room: Room, earlier: Replay | None) -> Replay:
    """Replay a conversation's growth, or continue ``earlier``, a replay of its beginning in the same room.

    The last unit of ``earlier`` is replayed again: it ended a request then, and may not end one now. A replay of other
    units is not used.
    """
    sums = _CostSums(units, room)
    cuts: list[Cut] = []
    done = len(earlier.units) - 1 if earlier is not None else 0
    if earlier is not None and 0 < done < len(units) and tuple(units[:done]) == earlier.units[:done]:
        cuts += earlier.cuts[:done]
        state = earlier.before_last
    else:
        state = ReplayState(Cut(), 0, sums.cost_change(Cut(), 0))
    before_last = state
    for newest in range(len(cuts), len(units)):
        before_last = state
        state = _after_unit(sums, state, newest)
        cuts.append(state.cut)
    return Replay(tuple(units), tuple(cuts), before_last)


def _after_unit(sums: "_CostSums", state: ReplayState, newest: int) -> ReplayState:
    """Return the state after one more unit: move the cut if a request that ends here does not fit."""
    cut, quotes, cost_change = state
    unit, begins_turn = sums.units[newest], sums.units[newest].step < 0
    if begins_turn:
        quotes = cut.quote_tokens
    # A plain answer does not end a request: the unit after it decides.
    if unit.can_end_request or newest == len(sums.units) - 1:
        cost = sums.uncut_cost[newest] + cost_change + cut.digest_tokens
        if cost > sums.room.free - quotes or sums.too_many_turns(cut, newest):
            # A turn that began before the first fold has no quotes, and gets none later.
            cut = _moved(sums, cut, newest, None if begins_turn else quotes)
            quotes = cut.quote_tokens if begins_turn else quotes
            cost_change = sums.cost_change(cut, newest)
    return ReplayState(cut, quotes, cost_change)


def prefix_breaks(units: Sequence[Unit], room: Room) -> bool:
    """Return whether the newest request begins unlike the one before it although the cut did not move: there was no
    request before, or its newest step was larger than an old unit may be, and is shortened now."""
    ends = [place for place, unit in enumerate(units) if unit.can_end_request or place == len(units) - 1]
    return len(ends) < 2 or units[ends[-2]].cost > _old_unit_limit(room)


def calls_often(units: Sequence[Unit]) -> bool:
    """Return whether a conversation is an agent's: calls and results are a large part of it, or many turns have calls."""
    calling = [unit for unit in units if _has_calls(unit)]
    if not calling:
        return False
    call_tokens, tokens = sum([unit.cost for unit in calling]), sum([unit.cost for unit in units])
    return _is_agent(call_tokens, tokens, len({unit.turn for unit in calling}), units[-1].turn + 1)


def is_autonomous(units: Sequence[Unit], results: int) -> bool:
    """Return whether an agent works on its own between two messages of the user: it has many results for each turn."""
    return bool(units) and results > AUTONOMOUS_RESULTS * (units[-1].turn + 1)


def _calls_often_until(units: Sequence[Unit]) -> list[bool]:
    """Return for each unit whether the conversation up to it calls tools often."""
    often: list[bool] = []
    tokens = call_tokens = calling_turns = 0
    last_calling_turn = -1
    for unit in units:
        tokens += unit.cost
        if _has_calls(unit):
            call_tokens += unit.cost
            calling_turns += unit.turn != last_calling_turn
            last_calling_turn = unit.turn
        often.append(_is_agent(call_tokens, tokens, calling_turns, unit.turn + 1))
    return often


def _has_calls(unit: Unit) -> bool:
    """Return whether a unit is a step with results. Simulated growth has no messages, so it has no calls."""
    return unit.step >= 0 and unit.can_end_request and bool(unit.indices)


def _is_agent(call_tokens: int, tokens: int, calling_turns: int, turns: int) -> bool:
    return call_tokens > AGENT_CALL_TOKENS_SHARE * tokens or calling_turns > AGENT_CALLING_TURNS_SHARE * turns


def unit_limits(units: Sequence[Unit], room: Room) -> list[int]:
    """Return the most tokens of each unit when it is kept and the last one is the newest."""
    limits = [_old_unit_limit(room)] * len(units)
    if units:
        start = next(place for place, unit in enumerate(units) if unit.turn == units[-1].turn)
        has_question = units[start].step < 0
        question = _question_cost(units[start], room) if has_question else 0
        limits[-1] = _newest_cost(units[-1].cost, room, _newest_limit(room, question))
        if has_question:
            limits[start] = question
    return limits


def kept_after_cut(room: Room) -> float:
    """Return the most tokens of the units that are kept right after a cut."""
    return min(KEPT_SHARE * room.free, max(KEPT_SHARE_IN_LARGE_ROOM * room.free, KEPT_TOKENS_IN_SMALL_ROOM))


def _old_unit_limit(room: Room) -> int:
    """Return the most tokens of one old unit."""
    return max(int(room.free * OLD_UNIT_SHARE), 1)


def _question_cost(unit: Unit, room: Room) -> int:
    """Return the tokens of the current question, at most its share of the room."""
    return min(unit.cost, int(room.free * QUESTION_AND_STEP_SHARE))


def _newest_limit(room: Room, question: int) -> int:
    """Return the most tokens of the newest step, beside a question of so many tokens."""
    return max(int(room.free * QUESTION_AND_STEP_SHARE) - question, _old_unit_limit(room) // 2)


def _newest_cost(cost: int, room: Room, limit: int) -> int:
    """Return the tokens that the newest step keeps of its cost."""
    if cost > limit and _old_unit_limit(room) >= FINAL_SIZE_TOKENS:
        return min(limit, _old_unit_limit(room))
    return min(cost, limit)


def gets_final_size(unit: Unit, room: Room) -> bool:
    """Return whether a newest unit that is too large is shortened to an old unit's limit at once."""
    return unit.step >= 0 and _old_unit_limit(room) >= FINAL_SIZE_TOKENS


def _running_sums(costs: Sequence[int], limit: int) -> list[int]:
    """Return the running sums of costs, each at most ``limit``."""
    return [0, *accumulate([cost if cost < limit else limit for cost in costs])]


class _CostSums:
    """Running sums of the units' costs, so that the cost of any cut is found without adding up its units."""

    def __init__(self, units: Sequence[Unit], room: Room) -> None:
        self.units = units
        self.room = room
        self.limit = _old_unit_limit(room)
        self.full = _running_sums([unit.cost for unit in units], self.limit)
        self.trimmed = _running_sums([unit.trimmed_cost for unit in units], self.limit)
        self.stubbed = _running_sums([unit.stubbed_cost for unit in units], self.limit)
        self.turn_starts: list[int] = []
        """The first unit of each turn."""
        self.turn_start_of: list[int] = []
        """For each unit the first unit of its turn."""
        self.question_of: list[int] = []
        """For each unit the unit with the user messages of its turn; -1 without one."""
        self.requests = list(accumulate([unit.can_end_request for unit in units]))
        """For each unit the number of requests so far."""
        self._calls_often: list[bool] | None = None
        """See `calls_often_at`."""
        self.uncut_cost: list[int] = []
        """For each unit the cost of all units up to it in full, with the newest unit and its question at their own
        limits."""
        turn = question = -1
        start = question_cost = question_extra = 0
        newest_limit = _newest_limit(room, 0)
        for place, unit in enumerate(units):
            before, with_unit = self.full[place], self.full[place + 1]
            if unit.turn != turn:
                turn = unit.turn
                start = place
                self.turn_starts.append(place)
                question = place if unit.step < 0 else -1
                question_cost = _question_cost(unit, room) if question >= 0 else 0
                # The sums count a question like an old unit, but the current one may be larger.
                question_extra = question_cost - (with_unit - before) if question >= 0 else 0
                newest_limit = _newest_limit(room, question_cost)
            self.turn_start_of.append(start)
            self.question_of.append(question)
            if place != question:
                with_unit = before + _newest_cost(unit.cost, room, newest_limit)
            self.uncut_cost.append(with_unit + question_extra)

    def kept_cost(self, cut: Cut, newest: int) -> int:
        """Return the tokens of the kept units when ``newest`` is the last unit."""
        return self.cost_change(cut, newest) + self.uncut_cost[newest]

    def cost_change(self, cut: Cut, newest: int) -> int:
        """Return the tokens that a cut adds to the cost of all units. Later growth does not change this number."""
        first = cut.first_kept
        stubs_end = min(max(cut.stubs_end, first), newest)
        trims_end = max(min(max(cut.trims_end, first), newest), stubs_end)
        stubs = self.stubbed[stubs_end] - self.stubbed[first]
        trims = self.trimmed[trims_end] - self.trimmed[stubs_end]
        change = stubs + trims - self.full[trims_end]
        question = self.question_of[first] if self.units else -1
        if 0 <= question < first:  # the cut is inside a turn, whose question is kept
            change += min(self.units[question].cost, self.limit)
        return change

    def calls_often_at(self, newest: int) -> bool:
        """Return whether the conversation up to a unit calls tools often; found out when a cut moves, which most requests do not."""
        if self._calls_often is None:
            self._calls_often = _calls_often_until(self.units)
        return self._calls_often[newest]

    def tokens_per_request(self, newest: int) -> float:
        """Return the tokens by which a request has grown on average."""
        return max(self.full[newest + 1] / max(self.requests[newest], 1), 1.0)

    def too_many_turns(self, cut: Cut, newest: int) -> bool:
        most = self.room.max_turns
        return most is not None and self.units[newest].turn - self.units[cut.first_kept].turn >= max(most, 1)


def _moved(sums: _CostSums, cut: Cut, newest: int, quotes: int | None) -> Cut:
    """Return the next cut. Old results are trimmed if that frees enough room and costs no more than folding. Else units are folded up
    to the first boundary that leaves room to grow.

    ``quotes`` is the tokens of the current turn's quotes; None if they are not chosen yet.
    """
    limit = sums.room.free - (sums.room.recall if quotes is None else quotes)
    first = _first_kept(sums, cut, newest)
    folded = _with_shares(sums, _cut_at(first), newest, limit, quotes)
    if sums.too_many_turns(cut, newest):
        return folded
    size = sums.kept_cost(folded, newest) + folded.digest_tokens
    price_of_folding = _price(sums, newest, size, size, limit)
    for trimmed, unchanged in _trimmed_cuts(sums, cut, newest):
        kept = sums.kept_cost(trimmed, newest)
        size = kept + cut.digest_tokens
        fits = size <= sums.room.low_water * limit
        if fits and _price(sums, newest, size, kept - unchanged, limit) <= price_of_folding:
            return trimmed
    return folded


def _cut_at(first: int) -> Cut:
    """Return a cut that keeps all units from ``first`` on in full."""
    return Cut(first, first, first)


def _price(sums: _CostSums, newest: int, size: int, rewritten: int, limit: int) -> float:
    """Return the expected price for each token of growth until the room is full again.

    It is the price of what is written to the cache now, and of what the requests until then read from it. ``size`` is
    the tokens of digest and kept units, ``rewritten`` those that the cache does not have.
    """
    prices = sums.room.prices
    growth = max(limit - size, 1)
    return prices.written * rewritten / growth + prices.read * (size + growth / 2) / sums.tokens_per_request(newest)


def _trimmed_cuts(sums: _CostSums, cut: Cut, newest: int) -> list[tuple[Cut, int]]:
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


def _first_kept(sums: _CostSums, cut: Cut, newest: int) -> int:
    """Return the first unit to keep: the first turn boundary that leaves room to grow, else the start of the current
    turn, else a step in it."""
    limit = kept_after_cut(sums.room)
    boundary = _turn_boundary(sums, cut, newest, limit)
    if boundary is not None:
        return boundary
    current = sums.turn_start_of[newest]
    fits_whole = sums.kept_cost(_cut_at(current), newest) <= sums.room.free * WHOLE_TURN_SHARE
    if cut.first_kept <= current and (fits_whole or newest == current):
        return current
    steps = [place for place in range(max(current, cut.first_kept), newest + 1) if sums.units[place].step >= 0]
    for step in steps:
        if sums.kept_cost(_cut_at(step), newest) <= limit:
            return step
    return steps[-1]


def _turn_boundary(sums: _CostSums, cut: Cut, newest: int, limit: float) -> int | None:
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


def _with_shares(sums: _CostSums, cut: Cut, newest: int, limit: int, quotes: int | None) -> Cut:
    """Return the cut with the tokens of its digest and quotes.

    If several turns fit beside the digest, it gets its usual share. If a few requests fit, it gets a smaller share. Else
    every request moves the cut: then a digest of everything serves better than quotes, and it gets all the remaining room
    and most of the quotes' share.
    """
    if cut.first_kept == 0:
        return replace(cut, quote_tokens=0)
    recall = sums.room.recall
    shares = AGENT if sums.calls_often_at(newest) else CHAT
    left = max(limit - sums.kept_cost(cut, newest), 0)
    if usual := _usual_digest(sums, newest, left, shares):
        quotes_kept_free = int(min(recall * shares.quotes, shares.most_quote_tokens))
        return replace(cut, digest_tokens=usual, quote_tokens=quotes_kept_free)
    # The digest may take what the current turn's quotes leave of their share.
    unspent = recall if quotes is None else 0
    small_quotes = int(recall * shares.small_quotes)
    if small := _small_digest(sums, newest, left + max(unspent - small_quotes, 0), shares):
        return replace(cut, digest_tokens=small, quote_tokens=small_quotes)
    tight_quotes = int(recall * shares.tight_quotes)
    tight_quotes = tight_quotes if tight_quotes >= LEAST_QUOTE_TOKENS else 0
    digest = left + max(unspent - tight_quotes, 0)
    return replace(cut, digest_tokens=digest, quote_tokens=tight_quotes, tight=True)


def _usual_digest(sums: _CostSums, newest: int, left: int, shares: Shares) -> int:
    """Return the tokens of a usual digest; 0 if several turns do not fit beside it, or if a chat has long messages."""
    free = sums.room.free
    if shares is CHAT and LEAST_ROOM_TO_GROW <= free < LONG_MESSAGE_REQUESTS * sums.tokens_per_request(newest):
        return 0
    size = int(free * shares.digest)
    turns = max(sums.units[newest].turn + 1, sums.requests[newest] / STEPS_PER_TURN)
    return size if left - size >= GROWTH_TURNS * sums.full[newest + 1] / turns else 0


def _small_digest(sums: _CostSums, newest: int, left: int, shares: Shares) -> int:
    """Return the tokens of a digest beside which a few more requests fit; 0 if the room holds too few requests."""
    free, request = sums.room.free, sums.tokens_per_request(newest)
    least, most = shares.small_digest
    size = int(min(max(left - GROWTH_REQUESTS * request, least * free), most * free))
    can_grow = free >= LEAST_ROOM_TO_GROW and free >= shares.tight_requests * request
    return size if can_grow and left - size >= LEAST_GROWTH_REQUESTS * request else 0
