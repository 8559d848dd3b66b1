"""Foresight: find the messages that the next cut will fold, so that their summary can be written in advance.

A cut is a function of the conversation's growth (`gateway.context.cut.replay`). Simulate growth in small steps until
the cut moves. Real growth is coarser and moves the cut at least as far.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gateway.context.cut import replay
from gateway.context.cut.layout import Layout, Source
from gateway.context.cut.replay import Unit

GROWTH_STEP: Final = 1 / 48
"""Share of the free room by which one step of the simulation grows."""
FINER: Final = 32
"""Factor by which the last step of the simulation is divided when it moved the cut too far."""
STEPS: Final = 96
"""Most steps of the simulation. Growth by twice the room certainly moves a cut."""
UNCOVERED: Final = 0.25
"""Share of the room: if messages this large are folded without a summary, they come first. A session attached late has
them."""

WORTH: Final = 0.1
"""Share of the room. A smaller part is not worth a call: it is in the digest."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A summary to make: of the first ``covers`` messages, which cost ``replaced`` tokens without pinned ones."""

    covers: int
    replaced: int


def cut_of(source: Source) -> int:
    """Return the number of messages before the cut; usable summaries cover no more. 0: nothing is folded."""
    made = source.layout
    return _end(made, made.cut.first)


def foresee(source: Source, covered: int) -> Wish | None:
    """Return the next summary to make; ``covered`` messages are already in the newest summary.

    None when the next cut is covered, or when there is no boundary to end at. The result stays the same while the
    conversation grows a little: one summary per cut is enough.
    """
    made = source.layout
    cut = _end(made, made.cut.first)
    if covered > cut:
        return None
    late = _cost(made, covered, cut) > UNCOVERED * made.room.free
    covers = cut if late else _end(made, _next_cut(made))
    worth_it = _cost(made, covered, covers) >= max(WORTH * made.room.free, 1)
    return Wish(covers, _cost(made, 0, covers)) if worth_it else None


def _next_cut(made: Layout) -> int:
    """Return the first unit that will certainly stand after the next cut; 0 when unknown, or when much of what that cut
    will fold is still to come: a later summary serves better.

    The cut comes when the room is used up or, with a limit of turns, when there are too many: the earlier of both is
    certain.
    """
    if not made.units:
        return 0
    step = max(int(made.room.free * GROWTH_STEP), 1)
    first, steps = _moved(made, _longer(made, [step] * STEPS))
    if first:
        # The last step moved the cut too far: repeat it in small steps.
        first, _ = _moved(made, _longer(made, [step] * (steps - 1) + [max(step // FINER, 1)] * 3 * FINER))
    grown, stands = float(steps * step), replay.stands_after(made.room)
    middling = sum(unit.cost for unit in made.units) / len({unit.turn for unit in made.units})
    if (most := made.room.max_turns) is not None:
        limited, turns = _moved(made, [_turn(made, number, 1) for number in range(1, most + 2)])
        if limited and (not first or limited < first):
            first, grown, stands = limited, turns * middling, min(stands, most * made.room.low_water * middling)
    # The current question stays current until then: never go beyond the current turn's start, or its newest step.
    tip = made.units[-1].turn
    start = next(position for position, unit in enumerate(made.units) if unit.turn == tip)
    certain = min(first, start if start > made.cut.first else len(made.units) - 1)
    if first == certain:
        return certain
    # It may grow by several turns instead of one, and the newest of them stand after the cut: the others are folded. Only whole
    # turns stand, so one more small one may be.
    more = middling if middling <= WORTH * made.room.free else 0.0
    folded = sum(unit.cost for unit in made.units[certain:]) + grown - stands + more
    return certain if folded <= UNCOVERED * made.room.free else 0


def _moved(made: Layout, growth: Sequence[Unit]) -> tuple[int, int]:
    """Return the cut after its first move under this growth, and the number of units before it; zeros when it does not
    move."""
    cuts = replay.replay([*made.units, *growth], made.room)[len(made.units) :]
    return next(((cut.first, steps) for steps, cut in enumerate(cuts) if cut.first > made.cut.first), (0, 0))


def _longer(made: Layout, costs: Sequence[int]) -> list[Unit]:
    """Return steps that follow: of the current turn in a chain of calls, else of a new one.

    Steps of the current turn can be trimmed as far as those before them, because that delays a cut.
    """
    tip = made.units[-1]
    if tip.step < 0 or not tip.asks:
        follows = _turn(made, 1, 1)
        return [
            follows,
            *(
                follows._replace(step=step, cost=cost, trimmed_cost=cost, stubbed_cost=cost)
                for step, cost in enumerate(costs)
            ),
        ]
    steps = [unit for unit in made.units if unit.turn == tip.turn and unit.step >= 0]
    whole = max(sum(unit.cost for unit in steps), 1)
    trimmed, stubbed = (
        sum(unit.trimmed_cost for unit in steps) / whole,
        sum(unit.stubbed_cost for unit in steps) / whole,
    )
    return [
        Unit(tip.turn, tip.step + number, (), cost, int(cost * trimmed), int(cost * stubbed))
        for number, cost in enumerate(costs, 1)
    ]


def _turn(made: Layout, number: int, cost: int) -> Unit:
    return Unit(made.units[-1].turn + number, -1, (), cost, cost, cost)


def _cost(made: Layout, first: int, end: int) -> int:
    """Return the cost of the units between two messages."""
    return sum(unit.cost for unit in made.units if first <= unit.indices[0] < end)


def _end(made: Layout, first: int) -> int:
    """Return the first message of a unit; the number of all messages after the last unit."""
    if first < len(made.units):
        return made.units[first].indices[0] if first else 0
    return max((index for unit in made.units for index in unit.indices), default=-1) + 1
