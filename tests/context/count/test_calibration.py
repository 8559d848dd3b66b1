"""Calibration: learns a model's ratio at once, moves in coarse_ratio steps, and believes nothing absurd."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gateway.context.count.calibration import LEAST_RATIO, MOST_RATIO, SLACK_ABOVE, Calibration, coarse_ratio


def learned(*reports: tuple[int, int]) -> Calibration:
    calibration = Calibration()
    for estimated, billed in reports:
        calibration = calibration.observe(estimated, billed)
    return calibration


def test_one_report_near_the_count_is_enough_to_be_right_the_next_time() -> None:
    """Case 36."""
    for factor in (0.7, 1.3, 1.5):
        ratio = learned((1000, int(1000 * factor))).ratio

        assert factor * 0.98 <= ratio <= factor * 1.06


def test_a_ratio_far_from_the_count_needs_reports_that_agree() -> None:
    """Case 122."""
    for factor in (0.4, 2.5, 6.0):
        reports = [(size, int(size * factor)) for size in (1000, 1500, 2000)]

        assert learned(*reports[:2]).ratio == 1.0
        assert factor * 0.98 <= learned(*reports).ratio <= factor * 1.06
        stated = Calibration().observe(*reports[0], stated=True)
        assert factor * 0.98 <= stated.observe(*reports[1]).ratio <= factor * 1.06, "a refusal's number stands for two"


@pytest.mark.parametrize("absurd", [0, -5, 1, 10**9, 7 * 1000, 40_000])
@pytest.mark.parametrize("before", [[], [(1000, 1010)], [(1000, 1500), (2000, 3010), (3000, 4480)]])
def test_one_absurd_bill_moves_nothing(before: list[tuple[int, int]], absurd: int) -> None:
    known = learned(*before)

    assert known.observe(1000, absurd).ratio == known.ratio


def test_the_same_request_again_is_no_second_witness() -> None:
    assert learned(*[(1000, 7000)] * 20).ratio == 1.0


@given(st.floats(0.3, 7.5), st.floats(0.8, 1.3))
def test_honest_bills_heal_any_ratio_within_three_requests(poisoned: float, honest: float) -> None:
    assume(max(poisoned, honest) / min(poisoned, honest) > 1.5)
    calibration = Calibration(
        coarse_ratio(poisoned), tuple((size, int(size * poisoned)) for size in range(1000, 1009)), True
    )
    for size in (1100, 1200, 1300):
        calibration = calibration.observe(size, int(size * honest))

    assert honest * 0.97 <= calibration.ratio <= honest * 1.1


def test_a_small_request_teaches_nothing() -> None:
    assert learned((252, 500)) == Calibration()


def test_a_count_that_is_right_stays_untouched() -> None:
    assert learned((1000, 1010), (5000, 4950), (1900, 1915)).ratio == 1.0


@given(st.lists(st.floats(1.28, 1.32), min_size=2, max_size=40))
def test_a_ratio_that_trembles_does_not_move(factors: list[float]) -> None:
    calibration = learned((10_000, 13_000))
    for factor in factors:
        assert calibration.observe(10_000, int(10_000 * factor)).ratio == calibration.ratio
        calibration = calibration.observe(10_000, int(10_000 * factor))


@given(st.lists(st.tuples(st.integers(-10, 10**7), st.integers(-10, 10**9)), max_size=30))
def test_a_ratio_stays_within_belief(reports: list[tuple[int, int]]) -> None:
    ratio = learned(*reports).ratio

    assert coarse_ratio(LEAST_RATIO) <= ratio <= coarse_ratio(MOST_RATIO) * SLACK_ABOVE


CUT = [(size, 4096) for size in (5000, 5600, 6300, 7100, 7900)]


@pytest.mark.parametrize("bills", [CUT, [(size, 4096 - number % 3) for number, (size, _) in enumerate(CUT)], CUT[::-1]])
def test_bills_that_stop_growing_confirm_no_ratio(bills: list[tuple[int, int]]) -> None:
    """A server that truncates silently bills its window, however much it is sent: 0.58 was learned, and the folds grew."""
    found = learned(*bills)
    assert (found.ratio, found.confirmed) == (1.0, False)


def test_bills_that_stop_growing_leave_what_whole_prompts_taught() -> None:
    whole = [(size, int(size * 1.25)) for size in (1200, 1800, 2400)]
    taught = learned(*whole)
    assert taught.confirmed
    assert learned(*whole, *CUT).ratio == taught.ratio


def test_after_cut_bills_whole_ones_are_right_within_three() -> None:
    whole = [(size, int(size * 1.4)) for size in (1500, 2100, 2900)]
    assert 1.4 * 0.98 <= learned(*CUT, *whole).ratio <= 1.4 * 1.08


def test_bills_of_alike_prompts_may_be_alike() -> None:
    assert learned((3000, 4200), (3050, 4200), (3100, 4206)).confirmed


def test_another_counter_begins_without_a_ratio() -> None:
    """A ratio is between bills and the counts of one vocabulary: an operator may name another one."""
    calibration = Calibration()
    for size in (2000, 3000):
        calibration = calibration.observe(size, int(size * 1.4), counter="unknown")
    other = calibration.observe(2000, 2010, counter="qwen3")

    assert calibration.of("unknown").ratio > 1.3
    assert calibration.of("qwen3").ratio == 1.0
    assert other.of("qwen3").ratio == 1.0
    assert other.reports == ((2000, 2010),)
