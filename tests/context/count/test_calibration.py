"""Calibration: learns a model's ratio at once, moves in coarse steps, and believes nothing absurd."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.context.count.calibration import LEAST, MOST, SLACK_ABOVE, Calibration, coarse, truncated


def learned(*reports: tuple[int, int]) -> Calibration:
    calibration = Calibration()
    for estimated, billed in reports:
        calibration = calibration.observe(estimated, billed)
    return calibration


def test_one_report_is_enough_to_be_right_the_next_time() -> None:
    """Cases 36, 122."""
    for factor in (0.6, 1.3, 1.5, 2.5, 6.0):
        ratio = learned((1000, int(1000 * factor))).ratio

        assert factor * 0.98 <= ratio <= factor * 1.06


@pytest.mark.parametrize("absurd", [0, -5, 1, 10**9, 40_000])
def test_one_absurd_report_poisons_nothing(absurd: int) -> None:
    before = learned((1000, 1500), (2000, 3010), (3000, 4480))

    assert before.observe(1000, absurd).ratio == before.ratio


def test_an_extreme_but_possible_report_moves_nothing_once_there_is_another() -> None:
    assert learned((1000, 1500), (1000, 7000)).ratio == learned((1000, 1500)).ratio
    assert learned((1000, 1000), (1000, 7000), (1000, 1010)).ratio == 1.0


def test_a_small_request_teaches_nothing() -> None:
    assert learned((20, 90)) == Calibration()


def test_a_count_that_is_right_stays_untouched() -> None:
    assert learned((1000, 1010), (5000, 4950), (900, 915)).ratio == 1.0


@given(st.lists(st.floats(1.28, 1.32), min_size=2, max_size=40))
def test_a_ratio_that_trembles_does_not_move(factors: list[float]) -> None:
    calibration = learned((10_000, 13_000))
    for factor in factors:
        assert calibration.observe(10_000, int(10_000 * factor)).ratio == calibration.ratio
        calibration = calibration.observe(10_000, int(10_000 * factor))


@given(st.lists(st.tuples(st.integers(-10, 10**7), st.integers(-10, 10**9)), max_size=30))
def test_a_ratio_stays_within_belief(reports: list[tuple[int, int]]) -> None:
    ratio = learned(*reports).ratio

    assert coarse(LEAST) <= ratio <= coarse(MOST) * SLACK_ABOVE


@pytest.mark.parametrize(
    ("counted", "error", "billed", "expected"),
    [
        (8000, 0.01, 4096, True),
        (8000, 0.01, 7900, False),
        (8000, 0.01, 6200, False),
        (8000, 0.3, 4096, False),
        (8000, 0.3, 2000, True),
        (100, 0.01, 10, False),
        (8000, 0.01, 0, False),
    ],
)
def test_a_bill_far_below_what_was_sent_means_that_the_head_was_cut_off(
    counted: int, error: float, billed: int, expected: bool
) -> None:
    assert truncated(counted, error, billed) is expected
