"""Find the cut: replay the conversation's growth, and move the cut only when the room is full.

The result is a function of the messages and of rounded sizes alone. Folding the same conversation again, on any replica
and after any restart, gives the same cut; a longer one gets the same cut until the room is used up again. This module
sees units and their costs, never a text.
"""

from collections.abc import Sequence
from typing import NamedTuple

from gateway.context.cut.cost_sums import CostSums
from gateway.context.cut.next_cut import next_cut
from gateway.context.cut.unit_limits import old_unit_limit
from gateway.context.cut.units import ANSWER, USER, Cut, Room, Unit


class ReplayState(NamedTuple):
    """The state of a replay after a unit."""

    cut: Cut
    quote_tokens: int
    """Tokens of the quotes of the current turn."""
    cost_change: int
    """Tokens that the cut adds to the cost of all units; negative if it saves tokens. See `CostSums.cost_change`."""


class Replay(NamedTuple):
    """The replay of a conversation. The replay of a longer conversation continues it."""

    units: tuple[Unit, ...]
    cuts: tuple[Cut, ...]
    """The cut after each unit."""
    before_last: ReplayState = ReplayState(Cut(), 0, 0)
    """The state before the last unit. A longer conversation continues here, because the last unit is replayed again."""


def replay(units: Sequence[Unit], room: Room) -> list[Cut]:
    """Return the cut after each unit, as the conversation grew."""
    return list(continue_replay(None, units, room).cuts)


def continue_replay(earlier: Replay | None, units: Sequence[Unit], room: Room) -> Replay:
    """Continue ``earlier``, a replay of a conversation's beginning in the same room; without one, replay all its growth.

    The last unit of ``earlier`` is replayed again: it ended a request then, and may not end one now. A replay of other
    units is not used.
    """
    sums = CostSums(units, room)
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


def _after_unit(sums: CostSums, state: ReplayState, newest: int) -> ReplayState:
    """Return the state after one more unit: move the cut if a request that ends here does not fit."""
    cut, quote_tokens, cost_change = state
    kind = sums.units[newest].kind
    begins_turn = kind is USER
    if begins_turn:
        quote_tokens = cut.quote_tokens
    # No request ends with an answer: the unit after it decides.
    if kind is not ANSWER or newest == len(sums.units) - 1:
        cost = sums.uncut_cost[newest] + cost_change + cut.digest_tokens
        if cost > sums.room.free - quote_tokens or sums.too_many_turns(cut, newest):
            # A turn that began before the first fold has no quotes, and gets none later.
            cut = next_cut(sums, cut, newest, None if begins_turn else quote_tokens)
            quote_tokens = cut.quote_tokens if begins_turn else quote_tokens
            cost_change = sums.cost_change(cut, newest)
    return ReplayState(cut, quote_tokens, cost_change)


def prefix_breaks(units: Sequence[Unit], room: Room) -> bool:
    """Return whether the newest request begins unlike the one before it although the cut did not move: there was no
    request before, or its newest step was larger than an old unit may be, and is shortened now."""
    ends = [position for position, unit in enumerate(units) if unit.kind is not ANSWER or position == len(units) - 1]
    return len(ends) < 2 or units[ends[-2]].cost > old_unit_limit(room)
