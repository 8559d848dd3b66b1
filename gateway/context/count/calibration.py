"""Calibration: learn from bills the ratio between a model's real token counts and ours.

Cuts are measured with this ratio. A ratio that drifted with every answer would move cuts and break the provider's
prompt cache, so it moves in coarse steps and with hysteresis. One report near the current ratio is enough to move it. A
report far away changes nothing until later reports agree with it. Two of the last three reports must agree, so correct
bills repair any ratio within three requests.
"""

from dataclasses import dataclass, replace
from math import ceil, log
from typing import Final

RATIO_STEP: Final = 1.05
"""Factor between two steps of the ratio. Chosen: 5 % is within an estimate's error and rarely moves a cut."""
KEPT: Final = 9
"""Reports kept. Chosen: enough for a median, few enough to forget an old tokenizer soon."""
RECENT: Final = 3
"""Newest reports, of which two must agree."""
LEAST_RATIO: Final = 0.2
"""Ratio; see `MOST_RATIO`."""
MOST_RATIO: Final = 8.0
"""Ratios. A report outside `LEAST_RATIO` to `MOST_RATIO` does not count the same text: characters, bytes, sums of several calls."""
SMALLEST_PROMPT: Final = 1000
"""Tokens. In a smaller request the template's frame outweighs the text, so its bill says little about the text."""
NEAR: Final = 1.6
"""Factor. A report within this factor of the current ratio is believed at once."""
AGREE: Final = 1.15
"""Factor. Reports within this factor of each other agree."""
FAR: Final = 3
"""Reports that must agree to move the ratio further than `NEAR`. A number in a believed refusal counts as two reports.
"""
EXACT: Final = 0.03
"""Distance from 1 below which our count is treated as exact."""
SLACK_BELOW: Final = 0.985
"""Factor; see `SLACK_ABOVE`."""
SLACK_ABOVE: Final = 1.08
"""Factors. The current ratio stays while it is between `SLACK_BELOW` and `SLACK_ABOVE` times the median."""
SAME_BILL: Final = 0.005
"""Share by which two bills of one truncated size differ. Chosen: servers cut to a number of tokens, or to a block of 16 to 64."""
OTHER_SIZE: Final = 1.05
"""Factor. Prompts that differ by more have the same bill only where something was left out."""
ABSURD: Final = 3.0
"""Factor. A bill this many times higher than the current ratio predicts does not count this prompt."""

Report = tuple[int, int]
"""Our token count and the billed one."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The calibration of one model at one upstream."""

    ratio: float = 1.0
    """Our counts are multiplied by this."""
    reports: tuple[Report, ...] = ()
    """The last reports, oldest first."""
    confirmed: bool = False
    """Two reports agreed on the current ratio."""
    absurd: int = 0
    """How many of the next bills are ignored because the last one was absurd."""

    def observe(self, counted: int, billed: int, *, stated: bool = False) -> "Calibration":
        """Learn from one request: our unscaled token count and the upstream's."""
        known = replace(self, absurd=max(self.absurd - 1, 0))
        if billed > ABSURD * self.ratio * (counted + SMALLEST_PROMPT // 4) and not stated:
            known = replace(known, absurd=KEPT)
        if counted < SMALLEST_PROMPT or billed <= 0 or not LEAST_RATIO <= billed / counted <= MOST_RATIO:
            return known
        report = (counted, billed)
        if report in self.reports:
            return known  # the same request again is not a second report
        if not stated and (capped := self._capped(counted, billed)):
            return known._without(capped, report)
        return replace(known, reports=(*self.reports, *[report] * (2 if stated else 1))[-KEPT:])._settled()

    def _capped(self, counted: int, billed: int) -> tuple[Report, ...]:
        """Return the reports with this bill for prompts of another size: a server that truncates bills what it read, however much was sent."""
        return tuple(
            (other, same)
            for other, same in self.reports
            if abs(same - billed) <= SAME_BILL * billed and _apart(other, counted) > OTHER_SIZE
        )

    def _without(self, capped: tuple[Report, ...], report: Report) -> "Calibration":
        """Return the calibration without truncated prompts. The smallest one stays, so that further ones are known; alone it decides nothing."""
        smallest = min(*capped, report)
        left = tuple(each for each in self.reports if each not in capped)
        if not left:
            return Calibration(reports=(smallest,), absurd=self.absurd)
        return replace(self, reports=(smallest, *left))

    def stopped_at(self, counted: int, billed: int) -> bool:
        """Return whether bills have stopped growing while the prompts grow."""
        return bool(self._capped(counted, billed))

    def _settled(self) -> "Calibration":
        """Move the ratio to the value that the reports agree on."""
        seen = [billed / counted for counted, billed in self.reports]
        pair = _agreeing(seen[-RECENT:])
        alone = len(set(self.reports)) == 1 and _apart(seen[-1], self.ratio) <= NEAR
        if pair is None and not alone:
            return self
        agreed = [one for one in seen if _apart(one, pair if pair is not None else seen[-1]) <= AGREE]
        ordered = sorted(agreed)
        middles = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
        middle = min(middles, key=lambda one: _apart(one, self.ratio))
        far = _apart(middle, self.ratio) > NEAR and _apart(middle, 1.0) > NEAR
        if far and len(agreed) < FAR:
            return self
        confirmed = self.confirmed or pair is not None
        if confirmed and SLACK_BELOW * middle <= self.ratio <= SLACK_ABOVE * middle:
            return replace(self, confirmed=True)
        return replace(self, ratio=coarse(middle), confirmed=pair is not None)


def _agreeing(recent: list[float]) -> float | None:
    """Return the newest report that agrees with another recent report."""
    for place in range(len(recent) - 1, 0, -1):
        if any(_apart(recent[place], other) <= AGREE for other in recent[:place]):
            return recent[place]
    return None


def _apart(one: float, other: float) -> float:
    """Return the larger number divided by the smaller one."""
    return max(one, other) / min(one, other)


def coarse(ratio: float) -> float:
    """Return the nearest step of the ratio, preferably slightly above."""
    if abs(ratio - 1.0) <= EXACT:
        return 1.0
    return round(RATIO_STEP ** ceil(log(ratio) / log(RATIO_STEP) - 0.3), 4)
