"""Calibration: learn from bills the ratio between a model's real token counts and ours.

Cuts are measured with this ratio. A ratio that drifted with every answer would move cuts and break the provider's
prompt cache, so it moves in coarse steps and with hysteresis. One report near the current ratio is enough to move it. A
report far away changes nothing until later reports agree with it. Two of the last three reports must agree, so correct
bills repair any ratio within three requests.
"""

from math import ceil, log
from typing import Final

import msgspec
from msgspec.structs import replace

RATIO_STEP: Final = 1.05
"""Factor between two steps of the ratio. Chosen: 5 % is within an estimate's error and rarely moves a cut."""
MOST_REPORTS: Final = 9
"""Reports that are kept. Chosen: enough for a median, few enough to forget an old tokenizer soon."""
RECENT_REPORTS: Final = 3
"""Number of newest reports that are compared: two of them must agree."""
LEAST_RATIO: Final = 0.2
"""Ratio; see `MOST_RATIO`."""
MOST_RATIO: Final = 8.0
"""Ratio. An upstream's number outside `LEAST_RATIO` to `MOST_RATIO` times our count counts something else: characters, bytes, or several
calls."""
SMALLEST_PROMPT: Final = 1000
"""Tokens. In a smaller request the template's frame is larger than the text, so its bill says little about the text."""
NEAR_FACTOR: Final = 1.6
"""Factor. A report within this factor of the current ratio is believed at once."""
AGREEMENT_FACTOR: Final = 1.15
"""Factor. Reports within this factor of each other agree."""
FAR_REPORTS: Final = 3
"""Number of reports that must agree to move the ratio further than `NEAR_FACTOR`. A number in a believed refusal counts as
two reports."""
EXACT_DISTANCE: Final = 0.03
"""Distance of a ratio from 1 below which our count is treated as exact."""
SLACK_BELOW: Final = 0.985
"""Factor; see `SLACK_ABOVE`."""
SLACK_ABOVE: Final = 1.08
"""Factor. The current ratio stays while it is between `SLACK_BELOW` and `SLACK_ABOVE` times the median."""
SAME_BILL_SHARE: Final = 0.005
"""Share by which two bills of one truncated size differ. Chosen: servers cut to a number of tokens, or to a block of 16 to 64."""
OTHER_SIZE_FACTOR: Final = 1.05
"""Factor. Prompts that differ by more have the same bill only where something was left out."""
ABSURD_FACTOR: Final = 3.0
"""Factor. A bill this many times higher than the current ratio predicts does not count this prompt."""

Report = tuple[int, int]
"""Our token count and the billed one."""


class Calibration(msgspec.Struct, frozen=True):
    """The calibration of one model at one upstream."""

    ratio: float = 1.0
    """Our counts are multiplied by this."""
    reports: tuple[Report, ...] = ()
    """The last reports, oldest first."""
    confirmed: bool = False
    """Whether two reports agreed on the current ratio."""
    ignored_bills: int = 0
    """How many of the next bills are ignored because the last one was absurd."""
    counter: str = ""
    """The name of the counter whose counts were compared with bills; empty for any."""

    def of(self, counter: str) -> "Calibration":
        """Return what is known of this counter's counts. Those of another one, as after a change of the configured tokenizer,
        say nothing."""
        return self if self.counter in ("", counter) else Calibration()

    def observe(self, counted: int, billed: int, *, stated: bool = False, counter: str = "") -> "Calibration":
        """Learn from one request: our unscaled token count and the upstream's."""
        known = self.of(counter)
        if known is not self:
            return known.observe(counted, billed, stated=stated, counter=counter)
        calibration = replace(self, ignored_bills=max(self.ignored_bills - 1, 0))
        if billed > ABSURD_FACTOR * self.ratio * (counted + SMALLEST_PROMPT // 4) and not stated:
            calibration = replace(calibration, ignored_bills=MOST_REPORTS)
        if counted < SMALLEST_PROMPT or billed <= 0 or not LEAST_RATIO <= billed / counted <= MOST_RATIO:
            return calibration
        report = (counted, billed)
        if report in self.reports:
            return calibration  # the same request again is not a second report
        if not stated and (truncated := self._truncated(counted, billed)):
            return calibration._without(truncated, report)
        reports = (*self.reports, *[report] * (2 if stated else 1))[-MOST_REPORTS:]
        return replace(calibration, reports=reports, counter=counter)._with_agreed_ratio()

    def _truncated(self, counted: int, billed: int) -> tuple[Report, ...]:
        """Return the reports of truncated prompts: those with this bill and another size. A server that truncates bills
        the tokens that it read, however many were sent."""
        return tuple(
            (other_count, other_bill)
            for other_count, other_bill in self.reports
            if abs(other_bill - billed) <= SAME_BILL_SHARE * billed
            if _factor_between(other_count, counted) > OTHER_SIZE_FACTOR
        )

    def _without(self, truncated: tuple[Report, ...], report: Report) -> "Calibration":
        """Return the calibration without truncated prompts. The smallest one stays, so that further ones are recognised;
        alone it decides nothing."""
        smallest = min(*truncated, report)
        others = tuple(other for other in self.reports if other not in truncated)
        if not others:
            return Calibration(reports=(smallest,), ignored_bills=self.ignored_bills, counter=self.counter)
        return replace(self, reports=(smallest, *others))

    def has_stopped_growing(self, counted: int, billed: int) -> bool:
        """Return whether bills have stopped growing while the prompts grow."""
        return bool(self._truncated(counted, billed))

    def _with_agreed_ratio(self) -> "Calibration":
        """Return the calibration with the ratio that the reports agree on."""
        ratios = [billed / counted for counted, billed in self.reports]
        confirming = _confirmed_ratio(ratios[-RECENT_REPORTS:])
        is_only_report = len(set(self.reports)) == 1
        if confirming is None and not (is_only_report and _factor_between(ratios[-1], self.ratio) <= NEAR_FACTOR):
            return self
        newest = confirming if confirming is not None else ratios[-1]
        agreed = sorted([ratio for ratio in ratios if _factor_between(ratio, newest) <= AGREEMENT_FACTOR])
        medians = agreed[(len(agreed) - 1) // 2], agreed[len(agreed) // 2]
        median = min(medians, key=lambda ratio: _factor_between(ratio, self.ratio))
        is_far = _factor_between(median, self.ratio) > NEAR_FACTOR and _factor_between(median, 1.0) > NEAR_FACTOR
        if is_far and len(agreed) < FAR_REPORTS:
            return self
        confirmed = self.confirmed or confirming is not None
        if confirmed and SLACK_BELOW * median <= self.ratio <= SLACK_ABOVE * median:
            return replace(self, confirmed=True)
        return replace(self, ratio=coarse_ratio(median), confirmed=confirming is not None)


def _confirmed_ratio(recent: list[float]) -> float | None:
    """Return the newest ratio that agrees with another recent one; None if no two agree."""
    for index in range(len(recent) - 1, 0, -1):
        if any(_factor_between(recent[index], other) <= AGREEMENT_FACTOR for other in recent[:index]):
            return recent[index]
    return None


def _factor_between(one: float, other: float) -> float:
    """Return the larger number divided by the smaller one."""
    return max(one, other) / min(one, other)


def coarse_ratio(ratio: float) -> float:
    """Return the nearest step of the ratio, preferably slightly above."""
    if abs(ratio - 1.0) <= EXACT_DISTANCE:
        return 1.0
    return round(RATIO_STEP ** ceil(log(ratio) / log(RATIO_STEP) - 0.3), 4)
