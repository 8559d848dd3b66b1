"""Foresight: find the messages that the next cut will fold, so that their summary can be written in advance.

A cut is a function of the conversation's growth (`gateway.context.cut.replay`). So growth is simulated in small steps
until the cut moves. Real growth is coarser and moves the cut at least as far.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from gateway.context.cut import replay
from gateway.context.cut.boundary import kept_after_cut
from gateway.context.cut.cutting import layout_of
from gateway.context.cut.layout import Layout
from gateway.context.cut.source import Source
from gateway.context.cut.units import CALLS, GROWTH, USER, Unit

GROWTH_STEP: Final = 1 / 48
"""Share of the free room by which one step of the simulation grows."""
FINE_STEPS: Final = 32
"""Number of small steps into which the last step is divided when it moved the cut too far."""
MOST_STEPS: Final = 96
"""Most steps of the simulation. Together they grow by twice the room, which certainly moves a cut."""
LATE_SHARE: Final = 0.25
"""Share of the free room. If the folded messages without a summary are larger, they are summarised before those that will
be folded next. This happens when the gateway first sees a long conversation."""
LEAST_SHARE: Final = 0.1
"""Share of the free room. A smaller part is not worth a summary: the digest has it."""


class SummaryGoal(msgspec.Struct, frozen=True):
    """A summary to make: of the first ``covers`` messages. Without pinned ones, these cost ``replaced_tokens``."""

    covers: int
    replaced_tokens: int


class Move(NamedTuple):
    """The next move of a cut, if the conversation grows in a certain way."""

    first_kept: int
    """The first unit that is kept after it."""
    grown: float
    """Tokens by which the conversation grows before it."""
    kept: float
    """The most tokens of units that are kept right after it."""


def messages_before_cut(source: Source) -> int:
    """Return the number of messages before the cut; 0 when nothing is folded. A usable summary covers no more."""
    layout = layout_of(source)
    return _messages_before(layout, layout.cut.first_kept)


def next_summary(source: Source, covered: int) -> SummaryGoal | None:
    """Return the next summary to make; the newest summary covers ``covered`` messages.

    None when the newest summary covers what the next cut folds, or when too little is known of the next cut. The result
    stays the same while the conversation grows a little: one summary for each cut is enough.
    """
    layout = layout_of(source)
    cut = messages_before_cut(source)
    if covered > cut:
        return None
    is_late = _cost_between(layout, covered, cut) > LATE_SHARE * layout.room.free
    covers = cut if is_late else _messages_before(layout, _first_certainly_kept(layout))
    if _cost_between(layout, covered, covers) < max(LEAST_SHARE * layout.room.free, 1):
        return None
    return SummaryGoal(covers, _cost_between(layout, 0, covers))


def _first_certainly_kept(layout: Layout) -> int:
    """Return the first unit that the next cut certainly keeps. 0 when this is unknown, or when the next cut also folds many
    messages that are still to come: a later summary can cover them.

    The cut moves when the room is used up or, with a limit of turns, when there are too many. The earlier of the two cuts
    is certain.
    """
    units = layout.units
    moves = [move for move in (_move_by_size(layout), _move_by_turns(layout)) if move is not None] if units else []
    if not moves:
        return 0
    move = min(moves, key=lambda move: move.first_kept)
    # The current question may stay current until then: cover nothing after the start of the current turn or, if the cut is
    # inside this turn, nothing of its newest step.
    current = next(position for position, unit in enumerate(units) if unit.turn == units[-1].turn)
    certain = min(move.first_kept, current if current > layout.cut.first_kept else len(units) - 1)
    if certain == move.first_kept:
        return certain
    # The conversation may grow by several turns instead of one. Then the cut folds all but the newest of them. It keeps
    # whole turns only, so it may fold one more small turn.
    mean_turn = _mean_turn(layout)
    one_more = mean_turn if mean_turn <= LEAST_SHARE * layout.room.free else 0.0
    uncovered = sum(unit.cost for unit in units[certain:]) + move.grown - move.kept + one_more
    return certain if uncovered <= LATE_SHARE * layout.room.free else 0


def _move_by_size(layout: Layout) -> Move | None:
    """Return the move when the room is used up by new steps; None without one."""
    room = layout.room
    step = max(int(room.free * GROWTH_STEP), 1)
    first, steps = _first_move(layout, _growth(layout, [step] * MOST_STEPS))
    if first:
        # The last step moved the cut too far: repeat it in small steps.
        small = max(step // FINE_STEPS, 1)
        first, _ = _first_move(layout, _growth(layout, [step] * (steps - 1) + [small] * 3 * FINE_STEPS))
    return Move(first, steps * step, kept_after_cut(room)) if first else None


def _move_by_turns(layout: Layout) -> Move | None:
    """Return the move when there are too many turns; None without a limit."""
    room = layout.room
    if room.max_turns is None:
        return None
    new_turns = [_new_turn(layout, number) for number in range(1, room.max_turns + 2)]
    first, turns = _first_move(layout, new_turns)
    mean_turn = _mean_turn(layout)
    kept = min(kept_after_cut(room), room.max_turns * room.low_water * mean_turn)
    return Move(first, turns * mean_turn, kept) if first else None


def _mean_turn(layout: Layout) -> float:
    """Return the tokens of a turn on average."""
    return sum(unit.cost for unit in layout.units) / len({unit.turn for unit in layout.units})


def _first_move(layout: Layout, growth: Sequence[Unit]) -> tuple[int, int]:
    """Return the first kept unit after the cut's first move under this growth, and the number of new units before the
    move. Zeros when it does not move."""
    cuts = replay.replay([*layout.units, *growth], layout.room)[len(layout.units) :]
    for steps, cut in enumerate(cuts):
        if cut.first_kept > layout.cut.first_kept:
            return cut.first_kept, steps
    return 0, 0


def _growth(layout: Layout, costs: Sequence[int]) -> list[Unit]:
    """Return new steps of these costs: of the current turn if it is calling tools, else of a new turn.

    New steps of the current turn can be trimmed as far as its earlier steps, because trimming delays a cut.
    """
    newest = layout.units[-1]
    if newest.kind is not CALLS:
        turn = _new_turn(layout, 1)
        return [turn, *[Unit(turn.turn, GROWTH, (), cost, cost, cost) for cost in costs]]
    steps = [unit for unit in layout.units if unit.turn == newest.turn and unit.kind is not USER]
    full = max(sum(unit.cost for unit in steps), 1)
    trimmed_share = sum(unit.trimmed_cost for unit in steps) / full
    stubbed_share = sum(unit.stubbed_cost for unit in steps) / full
    return [Unit(newest.turn, GROWTH, (), cost, int(cost * trimmed_share), int(cost * stubbed_share)) for cost in costs]


def _new_turn(layout: Layout, number: int) -> Unit:
    """Return the user messages of the turn that comes ``number`` turns after the current one. They have hardly any tokens: the steps grow."""
    return Unit(layout.units[-1].turn + number, USER, (), 1, 1, 1)


def _cost_between(layout: Layout, first: int, end: int) -> int:
    """Return the cost of the units from one message up to another one."""
    return sum(unit.cost for unit in layout.units if first <= unit.indices[0] < end)


def _messages_before(layout: Layout, position: int) -> int:
    """Return the index of a unit's first message; the number of all messages after the last unit."""
    if position < len(layout.units):
        return layout.units[position].indices[0] if position else 0
    return max((index for unit in layout.units for index in unit.indices), default=-1) + 1
