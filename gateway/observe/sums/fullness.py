"""How full the models' windows are."""

from array import array
from typing import Any, Final

import msgspec

from gateway.observe.shape import RecordJson
from gateway.observe.sums import bounds
from gateway.observe.sums.record import folded, prompt_tokens_of

SHARES: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5, 2.0)
"""Upper ends of the classes of fullness, prompt over window; one more class is above them."""


class Fullness(msgspec.Struct):
    """How full a model's window was; the window is the newest request's."""

    window: int
    entry: str
    smallest: int
    largest: int
    folded: int = 0
    shares: "array[float]" = msgspec.field(default_factory=lambda: array("f"))

    def add(self, record: RecordJson, tokens: int) -> None:
        """Add one record whose prompt is known."""
        self.smallest, self.largest = min(self.smallest, record["window"]), max(self.largest, record["window"])
        self.folded += folded(record)
        self.shares.append(tokens / record["window"])

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        shares = sorted(self.shares)
        counts = [0] * (len(SHARES) + 1)
        at = 0
        for share in shares:
            while at < len(SHARES) and share > SHARES[at] + 1e-6:  # shares are kept with seven digits
                at += 1
            counts[at] += 1
        return {
            "window": self.window, "entry": self.entry, "smallest": self.smallest, "largest": self.largest, "folded": self.folded,
            "requests": len(shares), "counts": counts, "over": sum(counts[SHARES.index(1.0) + 1 :]),
            "median": _quantile(shares, 0.5), "p95": _quantile(shares, 0.95), "most": round(shares[-1], 6),
        }  # fmt: skip


def _quantile(shares: list[float], share: float) -> float:
    return round(shares[min(int(share * len(shares)), len(shares) - 1)], 6)


class ModelFullness:
    """The fullness of each model's window, by upstream and model."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Fullness] = {}

    def add(self, record: RecordJson) -> None:
        """Add one record."""
        tokens, window = prompt_tokens_of(record), record["window"]
        if tokens is None or not window:
            return
        name = (record["upstream"], record["model"])
        if name not in self._known and len(self._known) >= bounds.MOST_MODELS:
            name = ("", bounds.OTHERS)
        if name not in self._known:
            self._known[name] = Fullness(window, record["entry"], window, window)
        self._known[name].add(record, tokens)

    def as_json(self) -> list[dict[str, Any]]:
        """Return it as JSON, the busiest model first."""
        rows = [
            {"upstream": upstream, "model": model, **one.as_json()} for (upstream, model), one in self._known.items()
        ]
        return sorted(rows, key=lambda row: -row["requests"])
