"""Of two ways to make room, the one that is expected to cost less is taken."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.context.cut.replay import replay
from gateway.context.cut.units import CALLS, USER, Prices, Room, Unit


def agent(steps: int, cost: int, cut: int, stub: int) -> list[Unit]:
    """One question and a chain of calls with results of one size, in full, cut and as a line."""
    question = Unit(0, USER, (0,), 50, 50, 50)
    return [question, *(Unit(0, CALLS, (step + 1,), cost, cut, stub) for step in range(steps))]


def first_folded(units: list[Unit], prices: Prices) -> int:
    """The number of units before the first cut that folds something."""
    return next((cut.first_kept for cut in replay(units, Room(6000, 0, 0.6, None, prices)) if cut.first_kept), 0)


def test_the_dearer_it_is_to_read_the_earlier_old_steps_are_folded() -> None:
    """Trimmed results stand for longer and are read with every request; a new cut is written once and leaves less."""
    folded = [first_folded(agent(60, 300, 120, 50), Prices(1.0, read)) for read in (0.0, 0.25, 1.0)]

    assert folded == sorted(folded, reverse=True)
    assert folded[0] > folded[-1]


def test_results_are_not_trimmed_where_that_writes_much_and_frees_little() -> None:
    """Cut results would leave three fifths of the room; a cut leaves less than half of it."""
    assert first_folded(agent(60, 300, 180, 150), Prices()) == 20
    assert first_folded(agent(60, 300, 120, 50), Prices()) > 20


@pytest.mark.parametrize("prices", [Prices(), Prices(1.25, 0.1), Prices(1.0, 0.5), Prices(1.0, 1.0), Prices(2.0, 0.1)])
@given(costs=st.lists(st.integers(1, 900), min_size=1, max_size=80))
def test_a_longer_conversation_has_the_cuts_of_the_shorter_one(prices: Prices, costs: list[int]) -> None:
    """At any price a cut depends on what came before it, so all replicas make the same one."""
    units = [Unit(n, USER, (n,), cost, max(cost // 2, 1), max(cost // 9, 1)) for n, cost in enumerate(costs)]
    room = Room(1500, 200, 0.6, None, prices)

    whole = replay(units, room)
    for end in range(1, len(units), 7):
        assert replay(units[:end], room) == whole[:end]
        assert whole[end - 1].first_kept <= whole[end].first_kept
