"""Where the cut stands as a conversation grows."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.context.cut.budget import Budget
from gateway.context.cut.replay import continue_replay, replay
from gateway.context.cut.unit_limits import unit_limits
from gateway.context.cut.units import ANSWER, CALLS, USER, Cut, Room, Unit

ROOM = Room(free=1000, quote_tokens=150, low_water=0.6, max_turns=None)


def turns(costs: list[int]) -> list[Unit]:
    """Turns of a question and an answer of the same cost."""
    units: list[Unit] = []
    for number, cost in enumerate(costs):
        units.append(Unit(number, USER, (2 * number,), cost, cost, cost))
        units.append(Unit(number, ANSWER, (2 * number + 1,), cost, cost, cost))
    return units


def agent(costs: list[int], stub: int | None = None) -> list[Unit]:
    """One question and a chain of steps."""
    least = [cost if stub is None else min(cost, stub) for cost in costs]
    return [
        Unit(0, USER, (0,), 20, 20, 20),
        *(
            Unit(0, CALLS, (step + 1,), cost, cost, low)
            for step, (cost, low) in enumerate(zip(costs, least, strict=True))
        ),
    ]


UNITS = st.one_of(
    st.lists(st.integers(1, 400), min_size=1, max_size=60).map(turns),
    st.lists(st.integers(1, 400), min_size=1, max_size=60).map(agent),
)


def test_nothing_is_cut_while_all_fits() -> None:
    """Equality fits."""
    assert replay(turns([100] * 5), ROOM)[-2] == Cut()


def test_the_cut_stands_until_the_room_is_used_up_again() -> None:
    firsts = [cut.first_kept for cut in replay(turns([20] * 60), ROOM)]

    moves = sorted(set(firsts))
    assert 2 <= len(moves) - 1 <= 8
    assert all(first % 2 == 0 for first in moves)


def test_a_long_turn_is_cut_between_its_steps() -> None:
    cut = replay(agent([60] * 40), ROOM)[-1]

    assert 0 < cut.first_kept <= 40
    assert cut.digest_tokens > 0


def test_old_results_become_stubs_where_that_is_enough() -> None:
    """Case 50: nothing is folded as long as stubs make room."""
    cut = replay(agent([60] * 20, stub=10), ROOM)[-1]

    assert cut.first_kept == 0
    assert cut.stubs_end > 0


@settings(max_examples=200, deadline=None)
@given(UNITS)
def test_a_longer_conversation_had_the_same_cuts_before(units: list[Unit]) -> None:
    """Promise 4: where a cut stands depends on what was said until then alone."""
    half = len(units) // 2 or 1
    while units[half - 1].kind is ANSWER and half < len(units):
        half += 1

    assert replay(units, ROOM)[: half - 1] == replay(units[:half], ROOM)[: half - 1]
    assert replay(units, ROOM)[half - 1] == replay(units[:half], ROOM)[-1] or units[half - 1].kind is ANSWER


@settings(max_examples=200, deadline=None)
@given(UNITS, st.data())
def test_a_replay_that_is_continued_has_the_cuts_of_a_whole_one(units: list[Unit], data: st.DataObject) -> None:
    earlier = continue_replay(None, units[: data.draw(st.integers(0, len(units)))], ROOM)
    whole = continue_replay(None, units, ROOM)
    changed = [*units]
    at = data.draw(st.integers(0, len(units) - 1))
    changed[at] = replace(changed[at], cost=changed[at].cost + 50)

    assert continue_replay(earlier, units, ROOM) == whole
    assert continue_replay(whole, changed, ROOM) == continue_replay(None, changed, ROOM)
    assert continue_replay(whole, units[:at], ROOM) == continue_replay(None, units[:at], ROOM)


@settings(max_examples=200, deadline=None)
@given(UNITS)
def test_a_cut_never_moves_back_nor_beyond_the_newest(units: list[Unit]) -> None:
    cuts = replay(units, ROOM)

    assert all(one.first_kept <= other.first_kept for one, other in pairwise(cuts))
    assert all(cut.first_kept <= position for position, cut in enumerate(cuts))


def test_a_limit_of_turns_moves_the_cut_too() -> None:
    room = replace(ROOM, free=100_000, max_turns=4)

    units = turns([10] * 20)
    stands = [units[at].turn - units[cut.first_kept].turn + 1 for at, cut in enumerate(replay(units, room))]

    assert max(stands) == 4
    assert min(stands[6:]) >= 2


def test_one_giant_unit_does_not_throw_the_cut_about() -> None:
    """It counts as what shrinking makes of it."""
    units = [*turns([20] * 6), Unit(6, USER, (99,), 50_000, 50_000, 50_000)]

    assert unit_limits(units, ROOM)[-1] <= ROOM.free
    assert replay(units, ROOM)[-1].first_kept <= len(units) - 1


@pytest.mark.parametrize("tools", [10, 11, 14, 15])
def test_the_room_is_rounded(tools: int) -> None:
    """A few tokens more or less of tools give the same room, never more than there is."""
    budget = Budget(3000, 100, tools, 60)

    assert budget.rounded_room == Budget(3000, 100, 10, 60).rounded_room <= budget.room
