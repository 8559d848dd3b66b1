"""Find the cut: replay the conversation's growth, and move the cut only when the window is full.

The result is a function of the messages and of rounded sizes alone. Folding the same conversation again, on any replica
and after any restart, gives the same cut; a longer one gets the same cut until the room is used up again. This module
sees units and their costs, never a text.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final, NamedTuple

from gateway.context.cut.budget import Budget
from gateway.context.cut.shares import (
    AGENT,
    CALLED_TOKENS,
    CALLING_TURNS,
    CHAT,
    GROWTH_REQUESTS,
    GROWTH_TURNS,
    LEAST_FREE,
    LEAST_GROWTH,
    LEAST_QUOTES,
    LONG_CHAT,
    Shares,
)

# Shares of the free room, which is the room without the pinned messages.
STANDS: Final = 0.15
"""Share for the verbatim units right after a cut, so that the rest can grow for some turns."""
STANDS_IN_LARGE: Final = 0.1
"""The same in a large room: what stands after a cut is written once more and read with every request."""
MOST_IN_SMALL: Final = 600
"""Tokens. A room whose first share holds more is large; a small one has so many at least. Chosen: some ten messages of a chat."""
TURN_STANDS: Final = 0.5
"""Share up to which the current turn is not cut into."""
OLD_UNIT: Final = 0.5
"""Share of one old unit; a larger one is shrunk to this."""
LIVE: Final = 0.85
"""Share of the current user messages and the newest step together; larger ones are shrunk."""
LASTING: Final = 2000
"""Tokens. A newest step that must be cut, and of which so many stand as an old one, is cut to that size at once, so that the next
request begins like this one. In a smaller room it gets all that is left while it is the newest."""
STEPS_A_TURN: Final = 2
"""Steps of a longer turn that count as one turn of growth."""


class Unit(NamedTuple):
    """The smallest part that stands or is folded: the user messages of a turn (``step`` is -1) or one step. Costs are
    tokens."""

    turn: int
    step: int
    indices: tuple[int, ...]
    cost: int
    trimmed_cost: int
    """Without reasoning and media, with large results cut."""
    stubbed_cost: int
    """With every result reduced to a line."""
    asks: bool = True
    """Whether a request can end with it: user messages and results can, a plain answer cannot."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a conversation is cut. Units before ``first`` are folded, except the user messages of a turn that is cut
    inside.

    Of the standing units, those before ``stubbed`` have their results as one line, those before ``trimmed`` have them
    cut.
    """

    first: int = 0
    stubbed: int = 0
    trimmed: int = 0
    digest: int = 0
    """Tokens for the digest of the folded part."""
    quotes: int = 0
    """Tokens for quotes in turns that begin under this cut."""
    full: bool = False
    """Whether no room is left to grow: the next request moves the cut again."""


class Prices(NamedTuple):
    """The prices of a prompt token at its provider's cache; those of one that is not cached are 1."""

    written: float = 1.0
    read: float = 0.0
    """Zero: of a server of one's own, where only work costs."""


WORK: Final = Prices()
"""The prices where a provider's are not known: what is processed costs, what is read does not."""


@dataclass(frozen=True, slots=True)
class Room:
    """The room a cut is measured against, in tokens, without the pinned messages, and its shares."""

    free: int
    recall: int
    """Tokens for excerpts, from the first fold on."""
    low_water: float
    max_turns: int | None
    prices: Prices = WORK


def rounded_room(budget: Budget) -> int:
    """Return the room with reserve and tools rounded up in coarse steps, so that a slightly different request does not
    move a cut."""
    step = max(budget.window // 128, 1)
    taken = budget.reserve + budget.tools
    return budget.window - budget.margin - -(-taken // step) * step


class Replay(NamedTuple):
    """A conversation's growth, which a longer one continues."""

    units: tuple[Unit, ...]
    cuts: tuple[Cut, ...]
    """The cut after each unit."""
    before_last: tuple[Cut, int, int] = (Cut(), 0, 0)
    """What the last unit was met with, because a unit behind it may change its cut: the cut, the tokens of quotes, and the tokens
    that the cut saves."""


def replay(units: Sequence[Unit], room: Room) -> list[Cut]:
    """Return the cut after each unit, as the conversation grew."""
    return list(grow(units, room, None).cuts)


def grow(units: Sequence[Unit], room: Room, earlier: Replay | None) -> Replay:
    """Replay a conversation's growth. ``earlier`` is a replay in the same room: it is continued where the units are its own, but
    for its last one."""
    growth = _Growth(units, room)
    done = len(earlier.units) - 1 if earlier is not None else 0
    # The last unit is always met anew, for it is treated as the last.
    if earlier is None or not 0 < done < len(units) or tuple(units[:done]) != earlier.units[:done]:
        done, cuts, cut, quotes, before = 0, list[Cut](), Cut(), 0, growth.before(Cut(), 0)
    else:
        cuts, (cut, quotes, before) = list(earlier.cuts[:done]), earlier.before_last
    before_last = cut, quotes, before
    for newest, unit in enumerate(units[done:], done):
        before_last = cut, quotes, before
        if unit.step < 0:
            quotes = cut.quotes
        # A plain answer does not end a request: the unit after it decides.
        if unit.asks or newest == len(units) - 1:
            full = before + growth.grown[newest] + cut.digest > room.free - quotes
            if full or growth.too_many_turns(cut, newest):
                # A turn that began before the first fold has no quotes, and gets none later.
                cut = _move(growth, cut, newest, None if unit.step < 0 else quotes)
                quotes = cut.quotes if unit.step < 0 else quotes
                before = growth.before(cut, newest)
        cuts.append(cut)
    return Replay(tuple(units), tuple(cuts), before_last)


def breaks(units: Sequence[Unit], room: Room) -> bool:
    """Return whether the newest request begins unlike the one before it although the cut stands: there was none, or the step
    before was larger than an old one may be."""
    asks = [place for place, unit in enumerate(units) if unit.asks or place == len(units) - 1]
    return len(asks) < 2 or units[asks[-2]].cost > _cap(room)


def calls_often(units: Sequence[Unit]) -> bool:
    """Return whether calls and results are much of a conversation, as an agent's, and not what a chat looks up now and then."""
    return _calling(units)[-1] if units else False


def _calling(units: Sequence[Unit]) -> list[bool]:
    """Return for each unit whether tools were often called so far. Simulated growth has no messages and counts as no call."""
    often: list[bool] = []
    tokens = called_tokens = calling_turns = 0
    last = -1
    for unit in units:
        tokens += unit.cost
        if unit.step >= 0 and unit.asks and unit.indices:
            called_tokens += unit.cost
            calling_turns += unit.turn != last
            last = unit.turn
        often.append(called_tokens > CALLED_TOKENS * tokens or calling_turns > CALLING_TURNS * (unit.turn + 1))
    return often


def allowances(units: Sequence[Unit], room: Room) -> list[int]:
    """Return the limit of each standing unit when the last one is the newest."""
    allowed = [_cap(room)] * len(units)
    if units:
        start = next(place for place, unit in enumerate(units) if unit.turn == units[-1].turn)
        asks = units[start].step < 0
        asked = _asked(units[start], room) if asks else 0
        allowed[-1] = _newest(units[-1].cost, room, _step(room, asked))
        if asks:
            allowed[start] = asked
    return allowed


def stands_after(room: Room) -> float:
    """Return the most tokens of verbatim units right after a cut."""
    return min(STANDS * room.free, max(STANDS_IN_LARGE * room.free, MOST_IN_SMALL))


def _cap(room: Room) -> int:
    """Return the limit of one old unit."""
    return max(int(room.free * OLD_UNIT), 1)


def _asked(unit: Unit, room: Room) -> int:
    """Return the limit of the current user messages: nearly everything, if needed."""
    return min(unit.cost, int(room.free * LIVE))


def _step(room: Room, asked: int) -> int:
    """Return the limit of the newest step, besides the user messages."""
    return max(int(room.free * LIVE) - asked, _cap(room) // 2)


def _newest(cost: int, room: Room, most: int) -> int:
    """Return the limit of the newest step, of at most ``most``."""
    return min(cost, most, _cap(room)) if cost > most and _cap(room) >= LASTING else min(cost, most)


def lasts(unit: Unit, room: Room) -> bool:
    """Return whether a step that is too large for its room gets the size of an old one at once."""
    return unit.step >= 0 and _cap(room) >= LASTING


def _sums(costs: Sequence[int], cap: int) -> list[int]:
    """Return the running sums of costs, each at most ``cap``."""
    return [0, *accumulate([cost if cost < cap else cap for cost in costs])]


class _Growth:
    """Running sums of the units' costs in each form, for a replay."""

    def __init__(self, units: Sequence[Unit], room: Room) -> None:
        self.units = units
        self.room = room
        self.cap = _cap(room)
        self.full = _sums([unit.cost for unit in units], self.cap)
        self.trim = _sums([unit.trimmed_cost for unit in units], self.cap)
        self.stub = _sums([unit.stubbed_cost for unit in units], self.cap)
        self.starts: list[int] = []
        self.start: list[int] = []
        """For each unit the first unit of its turn."""
        self.user: list[int] = []
        """For each unit the user messages of its turn, or -1."""
        self.asks = list(accumulate([unit.asks for unit in units]))
        """For each unit the number of requests so far."""
        self.calls_often = _calling(units)
        """For each unit whether tools were often called so far."""
        self.grown: list[int] = []
        """For each unit the full cost of all units up to it, with the newest unit and its user messages at their
        limits."""
        asked = start = 0
        more_asked = 0
        user = turn = -1
        step = _step(room, 0)
        for position, unit in enumerate(units):
            cost, before, full = unit.cost, self.full[position], self.full[position + 1]
            if unit.turn != turn:
                turn = unit.turn
                start = position
                self.starts.append(position)
                user = position if unit.step < 0 else -1
                asked = _asked(unit, room) if user >= 0 else 0
                more_asked = asked - (full - before) if user >= 0 else 0
                step = _step(room, asked)
            self.start.append(start)
            self.user.append(user)
            self.grown.append(
                full + more_asked if position == user else before + _newest(cost, room, step) + more_asked
            )

    def standing(self, cut: Cut, newest: int) -> int:
        """Return the cost of what stands after a cut when ``newest`` is the last unit."""
        return self.before(cut, newest) + self.grown[newest]

    def before(self, cut: Cut, newest: int) -> int:
        """Return the effect of a cut on the units before it, as a difference: it does not depend on later growth."""
        stubbed = min(max(cut.stubbed, cut.first), newest)
        trimmed = max(min(max(cut.trimmed, cut.first), newest), stubbed)
        total = self.stub[stubbed] - self.stub[cut.first] + self.trim[trimmed] - self.trim[stubbed] - self.full[trimmed]
        asker = self.user[cut.first] if self.units else -1
        if 0 <= asker < cut.first:
            total += min(self.units[asker].cost, self.cap)
        return total

    def each(self, newest: int) -> float:
        """Return the tokens by which a request has grown on average."""
        return max(self.full[newest + 1] / max(self.asks[newest], 1), 1.0)

    def too_many_turns(self, cut: Cut, newest: int) -> bool:
        most = self.room.max_turns
        return most is not None and self.units[newest].turn - self.units[cut.first].turn >= max(most, 1)


def _move(growth: _Growth, cut: Cut, newest: int, quotes: int | None) -> Cut:
    """Trim old results where that is enough and costs no more than a new cut, else cut at the first boundary that leaves room
    to grow.

    ``quotes`` is the size of the current turn's quotes; None when they are still to come.
    """
    limit = growth.room.free - (growth.room.recall if quotes is None else quotes)
    first = _boundary(growth, cut, newest)
    moved = _share_out(growth, Cut(first, first, first), newest, limit, quotes)
    if not growth.too_many_turns(cut, newest):
        stands = growth.standing(moved, newest) + moved.digest
        most = _price(growth, newest, stands, stands, limit)
        for candidate, unchanged in _trims(growth, cut, newest):
            stands = growth.standing(candidate, newest) + cut.digest
            enough = stands <= growth.room.low_water * limit
            if enough and _price(growth, newest, stands, stands - cut.digest - unchanged, limit) <= most:
                return candidate
    return moved


def _price(growth: _Growth, newest: int, stands: int, rewritten: int, limit: int) -> float:
    """Return the expected price of a token by which the conversation grows until the room is full again: its share of what is
    written anew now, and of what the requests until then read."""
    room = growth.room
    left = max(limit - stands, 1)
    return room.prices.written * rewritten / left + room.prices.read * (stands + left / 2) / growth.each(newest)


def _trims(growth: _Growth, cut: Cut, newest: int) -> list[tuple[Cut, int]]:
    """Return the ways to trim standing units without folding more: first cut results, then stubs; each with the tokens that stand
    unchanged before the first trimmed unit."""
    keep = growth.room.free * STANDS
    frontier = newest
    while frontier > cut.first and growth.full[newest + 1] - growth.full[frontier - 1] <= keep:
        frontier -= 1
    trimmed = replace(cut, trimmed=max(frontier, cut.trimmed))
    stubbed = max(cut.stubbed, cut.first)
    stubs = growth.stub[stubbed] - growth.stub[cut.first]
    trims = growth.trim[max(cut.trimmed, stubbed)] - growth.trim[stubbed]
    return [(trimmed, stubs + trims), (replace(trimmed, stubbed=max(frontier, cut.stubbed)), stubs)]


def _boundary(growth: _Growth, cut: Cut, newest: int) -> int:
    """Return the first turn boundary that leaves room, else the current turn, else a step in it."""
    keep = stands_after(growth.room)
    current = growth.start[newest]
    most = growth.room.max_turns
    oldest = -1 if most is None else growth.units[newest].turn - max(int(most * growth.room.low_water), 1)
    low = bisect_left(
        growth.starts, oldest + 1, bisect_right(growth.starts, cut.first), key=lambda at: growth.units[at].turn
    )
    high = bisect_right(growth.starts, newest)
    if low < high:
        # The later the cut, the less stands.
        found = bisect_left(growth.starts, -keep, low, high, key=lambda at: -growth.standing(Cut(at, at, at), newest))
        if found < high:
            return growth.starts[found]
    whole = growth.standing(Cut(current, current, current), newest) <= growth.room.free * TURN_STANDS
    if cut.first <= current and (whole or newest == current):
        return current
    steps = [position for position in range(max(current, cut.first), newest + 1) if growth.units[position].step >= 0]
    for position in steps:
        if growth.standing(Cut(position, position, position), newest) <= keep:
            return position
    return steps[-1]


def _share_out(growth: _Growth, cut: Cut, newest: int, limit: int, quotes: int | None) -> Cut:
    """Give the digest its share if several more turns fit besides it, a smaller one if a few requests do, else all the remaining
    room and most of the quotes' share.

    If each request moves the cut anyway, a digest of everything serves better than quotes.
    """
    if cut.first == 0:
        return replace(cut, quotes=0)
    recall = growth.room.recall
    shares = AGENT if growth.calls_often[newest] else CHAT
    left = max(limit - growth.standing(cut, newest), 0)
    if usual := _usual_digest(growth, newest, left, shares):
        return replace(cut, digest=usual, quotes=int(min(recall * shares.quotes, shares.most_quotes)))
    to_come = 0 if quotes is not None else recall
    fewer = int(recall * shares.small_quotes)
    if small := _small_digest(growth, newest, left + max(to_come - fewer, 0), shares):
        return replace(cut, digest=small, quotes=fewer)
    few = int(recall * shares.tight_quotes)
    few = few if few >= LEAST_QUOTES else 0
    return replace(cut, digest=left + max(to_come - few, 0), quotes=few, full=True)


def _usual_digest(growth: _Growth, newest: int, left: int, shares: Shares) -> int:
    """Return the size of a digest besides which several turns fit; 0 if they do not, or if a chat has long messages."""
    free = growth.room.free
    if shares is CHAT and LEAST_FREE <= free < LONG_CHAT * growth.each(newest):
        return 0
    size = int(free * shares.digest)
    turns = max(growth.units[newest].turn + 1, growth.asks[newest] / STEPS_A_TURN)
    return size if left - size >= GROWTH_TURNS * growth.full[newest + 1] / turns else 0


def _small_digest(growth: _Growth, newest: int, left: int, shares: Shares) -> int:
    """Return the size of a digest besides which a small room can hold a few more requests; 0 if it holds too few to spare any."""
    free, each = growth.room.free, growth.each(newest)
    least, most = shares.small_digest
    size = int(min(max(left - GROWTH_REQUESTS * each, least * free), most * free))
    roomy = free >= LEAST_FREE and free >= shares.tight * each
    return size if roomy and left - size >= LEAST_GROWTH * each else 0
