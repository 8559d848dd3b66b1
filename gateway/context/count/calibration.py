"""Calibration: by how much one model's real counts differ from ours, learned from what its upstream bills.

The ratio in use moves in coarse steps and with hysteresis, because a cut is measured with it: a ratio that drifted with every answer would
move cuts and break the provider's prompt cache. It is the median of the last reports (of two in the middle the one nearer to the ratio in use), so that one absurd
report changes nothing once there is another, and reports beyond belief are not even kept.
"""

from dataclasses import dataclass, replace
from math import ceil, log
from statistics import median_high, median_low
from typing import Final

STEP: Final = 1.05
KEPT: Final = 9
"""Reports remembered; five that agree outvote all others."""
LEAST: Final = 0.2
MOST: Final = 8.0
"""Reports beyond these are no counts of the same text: characters, bytes, sums of several calls."""
SMALLEST: Final = 200
"""Tokens. In a smaller request the frame outweighs the text, and teaches nothing about it."""
EXACT: Final = 0.03
"""As near to 1 as this, our count is simply right."""
SLACK_BELOW: Final = 0.985
SLACK_ABOVE: Final = 1.08
"""The ratio in use stays while it is between these times the median."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What is known about one model at one upstream."""

    ratio: float = 1.0
    """What our counts are multiplied by."""
    reports: tuple[float, ...] = ()
    """The last ratios seen, oldest first."""

    def observe(self, estimated: int, billed: int) -> "Calibration":
        """Learn from one request: what our unscaled count said, and what the upstream counted. Both in tokens."""
        if estimated < SMALLEST or billed <= 0:
            return self
        seen = billed / estimated
        if not LEAST <= seen <= MOST:
            return self
        reports = (*self.reports, seen)[-KEPT:]
        middle = min(median_low(reports), median_high(reports), key=lambda one: abs(log(one / self.ratio)))
        if self.reports and SLACK_BELOW * middle <= self.ratio <= SLACK_ABOVE * middle:
            return replace(self, reports=reports)
        return Calibration(coarse(middle), reports)


def coarse(ratio: float) -> float:
    """The step a ratio is rounded to: rather a little above it than below."""
    if abs(ratio - 1.0) <= EXACT:
        return 1.0
    return round(STEP ** ceil(log(ratio) / log(STEP) - 0.3), 4)


def truncated(counted: int, error: float, billed: int) -> bool:
    """Whether a server read far less than it was sent: it cut the head off and said nothing.

    ``error`` is the count's own; a tokenizer that we only guess may honestly need far fewer tokens.
    """
    least = counted * (1 - max(2 * error, 0.1))
    return counted >= SMALLEST and 0 < billed < 0.8 * least
