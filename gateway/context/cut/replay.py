"""Where the cut stands: a replay of the conversation's growth that moves it only when the window is full.

The answer is a function of the messages and of rounded sizes alone. Whoever folds the same conversation again, on any
replica and after any restart, gets the same cut; whoever folds a longer one gets the same cut until the room is
used up again. This file sees units and their costs, never a text.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final, NamedTuple

from gateway.context.cut.budget import Budget

# Shares of the free room: what is left of the room when the pinned messages stand in it.
STANDS: Final = 0.25
"""Units that stand verbatim right after a cut take at most so much, so that the rest can grow for some turns."""
TURN_STANDS: Final = 0.5
"""The current turn is not cut into as long as it takes at most so much."""
DIGEST: Final = 0.27
"""A digest takes so much, where the conversation can grow for several turns beside it."""
DIGEST_OF_CHAT: Final = 0.2
"""The same where no tool has been called: what people say is found by a question, what a tool returned is needed unasked."""
OLD_UNIT: Final = 0.5
"""One old unit that is larger is shrunk to this."""
LIVE: Final = 0.85
"""The current user messages and the newest step together may be this large before they are shrunk."""
FEW_QUOTES: Final = 0.2
"""What is left of the share for quotes where the conversation cannot grow beside its digest."""
LEAST_QUOTES: Final = 40
"""Tokens; fewer are not worth the frame around them."""
GROWTH_TURNS: Final = 2
"""Room for fewer typical turns than these is not worth keeping free: the digest takes it."""
STEPS_A_TURN: Final = 2
"""Of a longer turn so many steps count as a turn: what has grown by them is worth keeping free."""


class Unit(NamedTuple):
    """What stands or goes as one: the user messages of a turn (``step`` is -1) or one step. Costs are tokens."""

    turn: int
    step: int
    indices: tuple[int, ...]
    cost: int
    cut: int
    """With reasoning and media gone and large results cut."""
    stub: int
    """With every result reduced to a line."""
    asks: bool = True
    """Whether a request can end with it: user messages and results can, a plain answer cannot."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a conversation is cut. Units before ``first`` are folded, but for the user messages of a turn cut inside.

    Of those that stand, units before ``stubbed`` have their results as one line, units before ``trimmed`` have theirs cut.
    """

    first: int = 0
    stubbed: int = 0
    trimmed: int = 0
    digest: int = 0
    """What the digest of the folded part may cost, in tokens."""
    quotes: int = 0
    """What is kept for quotes in the turns that begin while the cut stands, in tokens."""


@dataclass(frozen=True, slots=True)
class Room:
    """The room a cut is measured against, in tokens: what is left beside the pinned messages, and how it is shared."""

    free: int
    recall: int
    """Kept for excerpts from the moment on when something is folded."""
    low_water: float
    max_turns: int | None


def rounded_room(budget: Budget) -> int:
    """The room with reserve and tools rounded up in coarse steps, so that a slightly different request does not move a cut."""
    step = max(budget.window // 128, 1)
    taken = budget.reserve + budget.tools
    return budget.window - budget.margin - -(-taken // step) * step


def replay(units: Sequence[Unit], room: Room) -> list[Cut]:
    """Answer the cut after each unit, as the conversation grew."""
    growth = _Growth(units, room)
    cuts: list[Cut] = []
    cut = Cut()
    quotes = 0
    before = growth.before(cut, 0)
    for newest, unit in enumerate(units):
        if unit.step < 0:
            quotes = cut.quotes
        # A plain answer is no request: what follows it decides.
        if unit.asks or newest == len(units) - 1:
            full = before + growth.grown[newest] + cut.digest > room.free - quotes
            if full or growth.too_many_turns(cut, newest):
                # A turn that began before anything was folded has no quotes, and none come into it later.
                cut = _move(growth, cut, newest, None if unit.step < 0 else quotes)
                quotes = cut.quotes if unit.step < 0 else quotes
                before = growth.before(cut, newest)
        cuts.append(cut)
    return cuts


def spare(units: Sequence[Unit], room: Room, cut: Cut, question: int) -> int:
    """What was free when the unit ``question`` was the newest, less what the longest turn before it took to be answered.

    In a chat a question is the last request of its turn: quotes may have all that is free, for they go with the next question.
    """
    if question < 0 or cut.first == 0:
        return 0
    cap = _cap(room)
    stands = sum(
        min(unit.stub if place < cut.stubbed else unit.cut if place < cut.trimmed else unit.cost, cap)
        for place, unit in enumerate(units[cut.first : question], cut.first)
    )
    steps: dict[int, int] = {}
    for unit in units[:question]:
        if unit.step >= 0 and unit.asks:
            steps[unit.turn] = steps.get(unit.turn, 0) + min(unit.cost, cap)
    needed = max(steps.values(), default=0)
    if not needed and question == len(units) - 1:
        return room.free
    return max(room.free - stands - _asked(units[question], room) - cut.digest - needed, 0)


def allowances(units: Sequence[Unit], room: Room) -> list[int]:
    """What each unit may cost where it stands, when the last one is the newest."""
    allowed = [_cap(room)] * len(units)
    if units:
        start = next(place for place, unit in enumerate(units) if unit.turn == units[-1].turn)
        asks = units[start].step < 0
        asked = _asked(units[start], room) if asks else 0
        allowed[-1] = min(units[-1].cost, _step(room, asked))
        if asks:
            allowed[start] = asked
    return allowed


def _cap(room: Room) -> int:
    """What one old unit may take."""
    return max(int(room.free * OLD_UNIT), 1)


def _asked(unit: Unit, room: Room) -> int:
    """What the current user messages take: nearly all that there is, if they must."""
    return min(unit.cost, int(room.free * LIVE))


def _step(room: Room, asked: int) -> int:
    """What the newest step may take beside what was asked."""
    return max(int(room.free * LIVE) - asked, _cap(room) // 2)


def _sums(costs: Sequence[int], cap: int) -> list[int]:
    """What the first so many cost, each at most ``cap``."""
    return [0, *accumulate([cost if cost < cap else cap for cost in costs])]


class _Growth:
    """Running sums of what units cost in each form, and the questions a replay asks of them."""

    def __init__(self, units: Sequence[Unit], room: Room) -> None:
        self.units = units
        self.room = room
        self.cap = _cap(room)
        self.full = _sums([unit.cost for unit in units], self.cap)
        self.trim = _sums([unit.cut for unit in units], self.cap)
        self.stub = _sums([unit.stub for unit in units], self.cap)
        self.starts: list[int] = []
        self.start: list[int] = []
        """For each unit the first unit of its turn."""
        self.user: list[int] = []
        """For each unit the user messages of its turn, or -1."""
        self.asks = list(accumulate([unit.asks for unit in units]))
        """For each unit how many requests there have been."""
        self.calls = list(accumulate([unit.step >= 0 and unit.asks and bool(unit.indices) for unit in units]))
        """For each unit how many steps with results there have been; simulated growth has no messages and counts as none."""
        self.grown: list[int] = []
        """For each unit what all up to it cost in full, the newest and its user messages as large as they may be while they are."""
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
            self.grown.append(full + more_asked if position == user else before + min(cost, step) + more_asked)

    def standing(self, cut: Cut, newest: int) -> int:
        """What stands after a cut when ``newest`` is the last unit."""
        return self.before(cut, newest) + self.grown[newest]

    def before(self, cut: Cut, newest: int) -> int:
        """What a cut makes of the units before it, as a difference: the same for whatever grows behind it."""
        stubbed = min(max(cut.stubbed, cut.first), newest)
        trimmed = max(min(max(cut.trimmed, cut.first), newest), stubbed)
        total = self.stub[stubbed] - self.stub[cut.first] + self.trim[trimmed] - self.trim[stubbed] - self.full[trimmed]
        asker = self.user[cut.first] if self.units else -1
        if 0 <= asker < cut.first:
            total += min(self.units[asker].cost, self.cap)
        return total

    def too_many_turns(self, cut: Cut, newest: int) -> bool:
        most = self.room.max_turns
        return most is not None and self.units[newest].turn - self.units[cut.first].turn >= max(most, 1)


def _move(growth: _Growth, cut: Cut, newest: int, quotes: int | None) -> Cut:
    """Trim old results where that is enough, else cut at the first boundary that leaves room to grow.

    ``quotes`` is what the running turn's quotes take; None where its quotes are still to come.
    """
    limit = growth.room.free - (growth.room.recall if quotes is None else quotes)
    if not growth.too_many_turns(cut, newest):
        for candidate in _trims(growth, cut, newest):
            if growth.standing(candidate, newest) + cut.digest <= growth.room.low_water * limit:
                return candidate
    first = _boundary(growth, cut, newest)
    moved = Cut(first, first, first)
    return _share_out(growth, moved, newest, limit, quotes)


def _trims(growth: _Growth, cut: Cut, newest: int) -> list[Cut]:
    """The ways to trim what stands without folding more of it: first cut results, then stubs."""
    keep = growth.room.free * STANDS
    frontier = newest
    while frontier > cut.first and growth.full[newest + 1] - growth.full[frontier - 1] <= keep:
        frontier -= 1
    trimmed = replace(cut, trimmed=max(frontier, cut.trimmed))
    return [trimmed, replace(trimmed, stubbed=max(frontier, cut.stubbed))]


def _boundary(growth: _Growth, cut: Cut, newest: int) -> int:
    """The first turn boundary that leaves room, else the current turn, else a step in it."""
    keep = growth.room.free * STANDS
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
    """Give the digest its share where several more turns will fit beside it, else all that is left, and most of the quotes' place.

    Where each turn moves the cut anyway, a digest of it all serves better than quotes.
    """
    room = growth.room
    if cut.first == 0:
        return replace(cut, quotes=0)
    left = max(limit - growth.standing(cut, newest), 0)
    wanted = int(room.free * (DIGEST if growth.calls[newest] else DIGEST_OF_CHAT))
    typical = growth.full[newest + 1] / max(growth.units[newest].turn + 1, growth.asks[newest] / STEPS_A_TURN)
    if left - wanted >= GROWTH_TURNS * typical:
        return replace(cut, digest=min(wanted, left), quotes=room.recall)
    few = int(room.recall * FEW_QUOTES)
    few = few if few >= LEAST_QUOTES else 0
    return replace(cut, digest=left + (room.recall - few if quotes is None else 0), quotes=few)
