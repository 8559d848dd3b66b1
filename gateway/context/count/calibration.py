"""Calibration: by how much one model's real counts differ from ours, learned from what its upstream bills.

The ratio in use moves in coarse steps and with hysteresis, because a cut is measured with it: a ratio that drifted with every answer would
move cuts and break the provider's prompt cache. A report near the ratio in use moves it alone; one that is far away moves nothing until
the next ones agree with it. Of the last three reports two that agree decide, so that honest bills heal any ratio within three requests.
"""

from dataclasses import dataclass, replace
from math import ceil, log
from statistics import median_high, median_low
from typing import Final

STEP: Final = 1.05
KEPT: Final = 9
"""Reports remembered."""
RECENT: Final = 3
LEAST: Final = 0.2
MOST: Final = 8.0
"""Reports beyond these are no counts of the same text: characters, bytes, sums of several calls."""
SMALLEST: Final = 1000
"""Tokens. In a smaller request the frame outweighs the text, and teaches nothing about it."""
NEAR: Final = 1.6
"""A report no further than this from the ratio in use is believed at once."""
AGREE: Final = 1.15
"""Reports no further than this from each other say the same."""
FAR: Final = 3
"""So many reports that agree move the ratio further; a number stated in a believed refusal stands for two."""
EXACT: Final = 0.03
"""As near to 1 as this, our count is simply right."""
SLACK_BELOW: Final = 0.985
SLACK_ABOVE: Final = 1.08
"""The ratio in use stays while it is between these times the median."""
ABSURD: Final = 3.0
"""A bill so many times higher than the ratio in use says is no count of this prompt."""

Report = tuple[int, int]
"""What was counted and what was billed, in tokens."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What is known about one model at one upstream."""

    ratio: float = 1.0
    """What our counts are multiplied by."""
    reports: tuple[Report, ...] = ()
    """The last reports, oldest first."""
    confirmed: bool = False
    """Two reports agreed on the ratio in use."""
    absurd: int = 0
    """How many of the next bills are not judged: one before was absurd."""

    def observe(self, counted: int, billed: int, *, stated: bool = False) -> "Calibration":
        """Learn from one request: what our unscaled count said, and what the upstream counted. Both in tokens."""
        known = replace(self, absurd=max(self.absurd - 1, 0))
        if billed > ABSURD * self.ratio * (counted + SMALLEST // 4) and not stated:
            known = replace(known, absurd=KEPT)
        if counted < SMALLEST or billed <= 0 or not LEAST <= billed / counted <= MOST:
            return known
        report = (counted, billed)
        if report in self.reports:
            return known  # the same request again is no second witness
        return replace(known, reports=(*self.reports, *[report] * (2 if stated else 1))[-KEPT:])._settled()

    def _settled(self) -> "Calibration":
        """Move the ratio to what the reports agree on."""
        seen = [billed / counted for counted, billed in self.reports]
        pair = _agreeing(seen[-RECENT:])
        alone = len(set(self.reports)) == 1 and _apart(seen[-1], self.ratio) <= NEAR
        if pair is None and not alone:
            return self
        agreed = [one for one in seen if _apart(one, pair if pair is not None else seen[-1]) <= AGREE]
        middle = min(median_low(agreed), median_high(agreed), key=lambda one: _apart(one, self.ratio))
        far = _apart(middle, self.ratio) > NEAR and _apart(middle, 1.0) > NEAR
        if far and len(agreed) < FAR:
            return self
        confirmed = self.confirmed or pair is not None
        if confirmed and SLACK_BELOW * middle <= self.ratio <= SLACK_ABOVE * middle:
            return replace(self, confirmed=True)
        return replace(self, ratio=coarse(middle), confirmed=pair is not None)


def _agreeing(recent: list[float]) -> float | None:
    """The newest report that another recent one agrees with."""
    for place in range(len(recent) - 1, 0, -1):
        if any(_apart(recent[place], other) <= AGREE for other in recent[:place]):
            return recent[place]
    return None


def _apart(one: float, other: float) -> float:
    """How many times the larger is the smaller."""
    return max(one, other) / min(one, other)


def coarse(ratio: float) -> float:
    """The step a ratio is rounded to: rather a little above it than below."""
    if abs(ratio - 1.0) <= EXACT:
        return 1.0
    return round(STEP ** ceil(log(ratio) / log(STEP) - 0.3), 4)
