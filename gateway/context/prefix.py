"""Where the cut stands: a replay of the conversation's growth that moves it only when the window is full.

The answer is a function of the messages and of rounded sizes alone. Whoever folds the same conversation again, on any
replica and after any restart, gets the same cut; whoever folds a longer one gets the same cut until the room is
used up again. This file sees units and their costs, never a text.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final

from gateway.context.budget import Budget

# Shares of the free room: what is left of the room when the pinned messages stand in it.
STANDS: Final = 0.3
"""Units that stand verbatim right after a cut take at most so much, so that the rest can grow for some turns."""
TURN_STANDS: Final = 0.5
"""The current turn is not cut into as long as it takes at most so much."""
DIGEST: Final = 0.3
"""A digest takes so much, where the conversation can grow for several turns beside it."""
OLD_UNIT: Final = 0.5
"""One old unit that is larger is shrunk to this."""
LIVE_UNIT: Final = 0.85
"""The current user message and the newest step may be this large before they are shrunk."""


@dataclass(frozen=True, slots=True)
class Unit:
    """What stands or goes as one: the user messages of a turn (``step`` is -1) or one step. Costs are tokens."""

    turn: int
    step: int
    indices: tuple[int, ...]
    cost: int
    cut: int
    """With reasoning and media gone and large results cut."""
    stub: int
    """With every result reduced to a line."""


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


@dataclass(frozen=True, slots=True)
class Room:
    """The room a cut is measured against, in tokens: what is left beside the pinned messages, and the shares of it."""

    free: int
    recall: int
    low_water: float
    max_turns: int | None

    @property
    def limit(self) -> int:
        """What the digest and all that stands may take together."""
        return self.free - self.recall


def rounded_room(budget: Budget) -> int:
    """The room with reserve and tools rounded up in coarse steps, so that a slightly different request does not move a cut."""
    step = max(budget.window // 128, 1)
    taken = budget.reserve + budget.tools
    return budget.window - budget.margin - -(-taken // step) * step


def replay(units: Sequence[Unit], room: Room) -> list[Cut]:
    """Answer the cut after each unit, as the conversation grew."""
    sums = _Sums(units, room)
    cuts: list[Cut] = []
    cut = Cut()
    for newest in range(len(units)):
        if sums.standing(cut, newest) + cut.digest > room.limit or sums.too_many_turns(cut, newest):
            cut = _move(sums, cut, newest)
        cuts.append(cut)
    return cuts


class _Sums:
    """Running sums of what units cost in each form, and the questions a replay asks of them."""

    def __init__(self, units: Sequence[Unit], room: Room) -> None:
        self.units = units
        self.room = room
        self.cap = max(int(room.free * OLD_UNIT), 1)
        self.live = max(int(room.free * LIVE_UNIT), 1)
        self.full = [0, *accumulate(min(unit.cost, self.cap) for unit in units)]
        self.trim = [0, *accumulate(min(unit.cut, self.cap) for unit in units)]
        self.stub = [0, *accumulate(min(unit.stub, self.cap) for unit in units)]
        self.user: list[int] = []
        """For each unit the user messages of its turn, or -1."""
        start = -1
        for position, unit in enumerate(units):
            if position == 0 or unit.turn != units[position - 1].turn:
                start = position if unit.step < 0 else -1
            self.user.append(start)
        self.starts = [p for p, unit in enumerate(units) if p == 0 or unit.turn != units[p - 1].turn]

    def standing(self, cut: Cut, newest: int) -> int:
        """What stands after a cut when ``newest`` is the last unit, the live units in their full size."""
        trimmed = min(max(cut.trimmed, cut.first), newest)
        stubbed = min(max(cut.stubbed, cut.first), newest)
        trimmed = max(trimmed, stubbed)
        total = self.stub[stubbed] - self.stub[cut.first] if stubbed > cut.first else 0
        total += self.trim[trimmed] - self.trim[stubbed] + self.full[newest + 1] - self.full[trimmed]
        total += self._live_extra(newest)
        asker = self.asker(cut)
        if asker >= 0:
            total += min(self.units[asker].cost, self.cap)
        user = self.user[newest]
        if 0 <= user != newest:
            total += self._live_extra(user)
        return total

    def asker(self, cut: Cut) -> int:
        """The user messages that stand although the cut is behind them, for it is inside their turn; else -1."""
        user = self.user[cut.first]
        return user if user < cut.first else -1

    def _live_extra(self, position: int) -> int:
        return max(min(self.units[position].cost, self.live) - self.cap, 0)

    def turn_start(self, newest: int) -> int:
        """The first unit of the turn that ``newest`` belongs to."""
        position = newest
        while position > 0 and self.units[position - 1].turn == self.units[newest].turn:
            position -= 1
        return position

    def too_many_turns(self, cut: Cut, newest: int) -> bool:
        most = self.room.max_turns
        return most is not None and self.units[newest].turn - self.units[cut.first].turn >= max(most, 1)


def _move(sums: _Sums, cut: Cut, newest: int) -> Cut:
    """Trim old results where that is enough, else cut at the first boundary that leaves room to grow."""
    if not sums.too_many_turns(cut, newest):
        for candidate in _trims(sums, cut, newest):
            if sums.standing(candidate, newest) + cut.digest <= sums.room.low_water * sums.room.limit:
                return candidate
    first = _boundary(sums, cut, newest)
    moved = Cut(first, first, first)
    digest = _digest_size(sums, moved, newest)
    return replace(moved, digest=digest)


def _trims(sums: _Sums, cut: Cut, newest: int) -> list[Cut]:
    """The ways to trim what stands without folding more of it: first cut results, then stubs."""
    keep = sums.room.free * STANDS
    frontier = newest
    while frontier > cut.first and sums.full[newest + 1] - sums.full[frontier - 1] <= keep:
        frontier -= 1
    return [
        replace(cut, trimmed=max(frontier, cut.trimmed)),
        replace(cut, trimmed=max(frontier, cut.trimmed), stubbed=max(frontier, cut.stubbed)),
    ]


def _boundary(sums: _Sums, cut: Cut, newest: int) -> int:
    """The first turn boundary that leaves room, else the current turn, else a step in it."""
    keep = sums.room.free * STANDS
    current = sums.turn_start(newest)
    most = sums.room.max_turns
    oldest = -1 if most is None else sums.units[newest].turn - max(int(most * sums.room.low_water), 1)
    for start in sums.starts:
        if cut.first < start <= newest and sums.units[start].turn > oldest:
            if sums.standing(Cut(start, start, start), newest) <= keep:
                return start
    if sums.standing(Cut(current, current, current), newest) <= sums.room.free * TURN_STANDS and cut.first <= current:
        return current
    steps = [p for p in range(max(current, cut.first), newest + 1) if sums.units[p].step >= 0]
    for position in steps:
        if sums.standing(Cut(position, position, position), newest) <= keep:
            return position
    return steps[-1] if steps else current


def _digest_size(sums: _Sums, cut: Cut, newest: int) -> int:
    """A share of the room where several more turns will fit beside it, else all that is left."""
    if cut.first == 0:
        return 0
    room = sums.room
    left = room.limit - sums.standing(cut, newest)
    wanted = int(room.free * DIGEST)
    turns = sums.units[newest].turn + 1
    typical = sums.full[newest + 1] / max(turns, 1)
    growth = left - wanted
    if growth < 2 * typical:
        return max(left, 0)
    return max(min(wanted, left), 0)
