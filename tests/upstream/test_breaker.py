"""Something that fails is left alone for a while, and tried again with a single call."""

import pytest

from gateway.upstream.breaker import Breaker
from tests.fakes import Clock


def test_it_opens_after_failures_in_a_row_only() -> None:
    breaker = Breaker(failures=3, clock=Clock())
    for outcome in (breaker.failed, breaker.failed, breaker.succeeded, breaker.failed, breaker.failed):
        assert breaker.begin_call()
        outcome()
    assert breaker.begin_call()
    breaker.failed()
    assert breaker.open
    assert not breaker.begin_call()


def test_a_pause_ends_with_one_trial() -> None:
    clock = Clock()
    breaker = Breaker(failures=1, pause_s=10, clock=clock)
    breaker.failed()
    clock.now = 10
    assert [breaker.begin_call() for _ in range(3)] == [True, False, False]
    breaker.succeeded()
    assert [breaker.begin_call() for _ in range(3)] == [True, True, True]


@pytest.mark.parametrize(("trials", "pause_s"), [(0, 10), (1, 20), (2, 40), (3, 60), (4, 60)])
def test_pauses_double_up_to_the_longest(trials: int, pause_s: float) -> None:
    clock = Clock()
    breaker = Breaker(failures=1, pause_s=10, longest_s=60, clock=clock)
    breaker.failed()
    for _ in range(trials):
        clock.now += 60
        assert breaker.begin_call()
        breaker.failed()
    clock.now += pause_s - 1
    assert not breaker.begin_call()
    clock.now += 1
    assert breaker.begin_call()


def test_calls_that_were_under_way_when_it_opened_do_not_lengthen_the_pause() -> None:
    clock = Clock()
    breaker = Breaker(failures=3, pause_s=1, clock=clock)
    for _ in range(100):
        breaker.failed()
    clock.now = 1
    assert breaker.begin_call()


def test_a_trial_that_never_ended_is_followed_by_another() -> None:
    clock = Clock()
    breaker = Breaker(failures=1, pause_s=1, clock=clock)
    breaker.failed()
    clock.now = 1
    assert breaker.begin_call()
    clock.now = 2
    assert breaker.begin_call()
