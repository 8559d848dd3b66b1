"""The most tokens that each kept unit may have, by its age."""

from collections.abc import Sequence
from typing import Final

from gateway.context.cut.units import USER, Room, Unit

OLD_UNIT_SHARE: Final = 0.5
"""Share of one old unit. A larger one is shortened to this."""
QUESTION_AND_STEP_SHARE: Final = 0.85
"""Share of the current question and the newest step together. Larger ones are shortened."""
FINAL_SIZE_TOKENS: Final = 2000
"""Tokens. If an old unit may have at least so many, a newest step that is too large is shortened to an old unit's limit
at once: it keeps this size, so the next request begins like this one. In a smaller room it gets all the remaining room
while it is the newest step."""


def unit_limits(units: Sequence[Unit], room: Room) -> list[int]:
    """Return the most tokens of each unit when it is kept and the last one is the newest."""
    limits = [old_unit_limit(room)] * len(units)
    if units:
        start = next(position for position, unit in enumerate(units) if unit.turn == units[-1].turn)
        has_question = units[start].kind is USER
        question = question_cost(units[start], room) if has_question else 0
        limits[-1] = newest_cost(units[-1].cost, room, newest_limit(room, question))
        if has_question:
            limits[start] = question
    return limits


def gets_final_size(unit: Unit, room: Room) -> bool:
    """Return whether a newest unit that is too large is shortened to an old unit's limit at once."""
    return unit.kind is not USER and _old_units_are_large(room)


def _old_units_are_large(room: Room) -> bool:
    """Return whether an old unit may be so large that a newest step may have its final size at once: see `FINAL_SIZE_TOKENS`."""
    return old_unit_limit(room) >= FINAL_SIZE_TOKENS


def old_unit_limit(room: Room) -> int:
    """Return the most tokens of one old unit."""
    return max(int(room.free * OLD_UNIT_SHARE), 1)


def question_cost(unit: Unit, room: Room) -> int:
    """Return the tokens of the current question, at most its share of the room."""
    return min(unit.cost, int(room.free * QUESTION_AND_STEP_SHARE))


def newest_limit(room: Room, question: int) -> int:
    """Return the most tokens of the newest step, beside a question of so many tokens."""
    return max(int(room.free * QUESTION_AND_STEP_SHARE) - question, old_unit_limit(room) // 2)


def newest_cost(cost: int, room: Room, limit: int) -> int:
    """Return the tokens that the newest step keeps of its cost; ``limit`` is its `newest_limit`."""
    if cost > limit and _old_units_are_large(room):
        return min(limit, old_unit_limit(room))
    return min(cost, limit)
