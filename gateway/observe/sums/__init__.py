"""The sums of many records: the figures of the dashboard and of `turnfold report`. Records are added newest first.

A value that cannot be known is None. The memory that is used has a limit.

- `modes`, `savings`, `fullness`, `losers`, `over_time`: one sum each.
- `record`: questions about one record. `bounds`: limits of the memory.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from gateway.observe.shape import RecordJson
from gateway.observe.sums import bounds
from gateway.observe.sums.fullness import SHARES, ModelFullness
from gateway.observe.sums.losers import Loser, Losers
from gateway.observe.sums.modes import ModeSums
from gateway.observe.sums.over_time import OverTime
from gateway.observe.sums.record import failed, folded, lost_something, would_fold
from gateway.observe.sums.savings import Price, Savings

TOTALS: Final = (
    "requests", "folded", "would_fold", "retries", "refusals", "errors", "lossy", "billed", "billed_tokens", "cached_tokens",
)  # fmt: skip
"""The numbers that are counted over all records."""


class Sums:
    """All sums of a set of records."""

    def __init__(self, price_of: Callable[[str], Price | None] = lambda model: None) -> None:
        self.totals: Counter[str] = Counter()
        self.why: Counter[str] = Counter()
        self.modes: dict[str, ModeSums] = {}
        self.losers = Losers()
        self.time = OverTime()
        self._fullness = ModelFullness()
        self._savings = Savings(price_of)
        self._stages: dict[str, list[int]] = {}
        self._rungs: dict[int, list[int]] = {}
        self._signs: Counter[tuple[str, str]] = Counter()
        self._names: dict[str, set[str]] = {"key": set(), "model": set(), "session": set()}

    def add(self, record: RecordJson) -> None:
        """Add one record, which is not newer than those before it."""
        self._count(record)
        self._add_names(record)
        self._add_steps(record)
        for part in (self.time, self._fullness, self._savings):
            part.add(record)
        if record["conversation"] and lost_something(record):
            self.losers.add(record)

    def worst(self, most: int) -> list[tuple[str, Loser]]:
        """Return the conversations that lost most."""
        return self.losers.worst(most)

    def as_json(self, most_losers: int = 10) -> dict[str, Any]:
        """Return everything as JSON."""
        stages = [
            {"stage": name, "requests": requests, "saved": saved} for name, (requests, saved) in self._stages.items()
        ]
        return {
            **{name: self.totals[name] for name in TOTALS},
            "oldest": self.time.oldest,
            "names": {name: sorted(values) for name, values in self._names.items()},
            "over_time": self.time.as_json(),
            "classes": [*SHARES, None],
            "fullness": self._fullness.as_json(),
            "stages": sorted(stages, key=lambda one: -int(one["saved"])),
            "rungs": [{"rung": rung, "calls": calls, "refused": refused} for rung, (calls, refused) in sorted(self._rungs.items())],
            "signs": [{"upstream": upstream, "sign": sign, "count": count} for (upstream, sign), count in self._signs.most_common(bounds.MOST_NAMES)],
            "losers": self.losers.as_json(most_losers),
            "savings": self._savings.as_json(),
        }  # fmt: skip

    def _count(self, record: RecordJson) -> None:
        self.why[record["why"]] += 1
        if record["mode"]:
            self.modes.setdefault(record["mode"], ModeSums()).add(record)
        billed, cached = record["prompt_tokens"], record["cached_tokens"]
        self.totals.update({
            "requests": 1, "folded": folded(record), "would_fold": would_fold(record), "retries": max(record["attempts"] - 1, 0),
            "refusals": len(record["refusals"]), "errors": failed(record), "lossy": lost_something(record), "billed": billed is not None,
            "billed_tokens": billed or 0, "cached_tokens": cached or 0 if billed is not None else 0,
        })  # fmt: skip

    def _add_names(self, record: RecordJson) -> None:
        for name, values in self._names.items():
            if record[name] and len(values) < bounds.MOST_NAMES:
                values.add(record[name])

    def _add_steps(self, record: RecordJson) -> None:
        for step in record["steps"] if record["mode"] == "enforce" else ():
            known = self._stages.setdefault(step["stage"], [0, 0])
            known[0] += 1
            known[1] += step["saved"]
        for call in record["calls"]:
            counts = self._rungs.setdefault(call["rung"], [0, 0])
            counts[0] += 1
            counts[1] += bool(call["sign"])
        for sign in record["refusals"]:
            if (record["upstream"], sign) in self._signs or len(self._signs) < bounds.MOST_NAMES:
                self._signs[record["upstream"], sign] += 1
