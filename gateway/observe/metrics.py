"""Prometheus metrics from the exchange records.

Observing must cost a request almost nothing, so plain numbers are added here and become Prometheus families only when
they are scraped. Labels are bounded: upstreams and window entries come from the configuration and the catalogue, never
from the client.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple

from gateway.observe.exchange import Exchange

SECONDS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
SHARES: Final = (0.1, 0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)
BATCH: Final = 64
"""Exchanges that are added together. Chosen: it saves nearly as much as a larger number, and the pause is short."""
MOST_KEYS: Final = 200
"""Client keys with counters of their own. Chosen: more than teams have, few enough for any scraper."""
OTHER_KEYS: Final = "(others)"
"""The label under which all further keys are counted; no key can have this name."""
Labels = tuple[str, ...]

_BILLED: Final = tuple((kind, attrgetter(f"{kind}_tokens")) for kind in ("prompt", "completion", "cached", "written"))
_TIMES: Final = (
    ("decision_seconds", attrgetter("decided_s")),
    ("first_byte_seconds", attrgetter("first_byte_s")),
    ("request_seconds", attrgetter("total_s")),
)


def _kind_of(one: Exchange) -> tuple[Any, ...]:
    """Return the fields that decide under which labels an exchange is counted. Half of the cost of `attrgetter`."""
    return (
        one.upstream, one.entry, one.action, one.status, one.mode, one.attempts, one.refusals, one.error, one.why, one.warning,
    )  # fmt: skip


class Gauge(NamedTuple):
    """One number that goes up and down, by label values."""

    name: str
    text: str
    labels: Labels
    numbers: Sequence[tuple[Labels, float]]


class Histogram:
    """Counts in buckets, and their sum."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, values: Sequence[float]) -> None:
        for value in values:
            self.counts[bisect_left(self.bounds, value)] += 1
        self.total += sum(values)

    def buckets(self) -> list[tuple[str, float]]:
        """Return cumulative counts by upper bound, as Prometheus expects."""
        running, rows = 0, []
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            running += count
            rows.append((bound, float(running)))
        return rows


class Metrics:
    """The numbers of one process and their export."""

    def __init__(self) -> None:
        self._counters: dict[str, dict[Labels, float]] = {name: defaultdict(float) for name in _COUNTERS}
        self._histograms: dict[str, dict[Labels, Histogram]] = {
            name: defaultdict(lambda bounds=bounds: Histogram(bounds))  # type: ignore[misc]
            for name, (_, _, bounds) in _HISTOGRAMS.items()
        }
        self._waiting: list[Exchange] = []
        self._keys: set[str] = set()

    def observe(self, exchange: Exchange) -> None:
        """Add one exchange. Exchanges are added in batches, which takes a third of the time."""
        self._waiting.append(exchange)
        if len(self._waiting) >= BATCH:
            self._add_waiting()

    def _add_waiting(self) -> None:
        """Add the waiting exchanges to the counters, grouped by their labels."""
        waiting, self._waiting = self._waiting, []
        groups: dict[tuple[Any, ...], list[Exchange]] = defaultdict(list)
        for exchange in waiting:
            groups[_kind_of(exchange)].append(exchange)
            if exchange.key:
                self._add_to_key(exchange)
        for group in groups.values():
            self._add(group[0], group)

    def _add(self, one: Exchange, group: list[Exchange]) -> None:
        """Add a group of exchanges that are counted under the same labels; ``one`` is any of them."""
        labels, times = (one.upstream, one.entry), len(group)
        count, mode = self._counters, one.mode or "none"
        count["requests"][(*labels, one.action, str(one.status), mode)] += times
        count["attempts"][labels] += one.attempts * times
        if one.refusals:
            count["refusals"][labels] += len(one.refusals) * times
        if one.attempts > 1:
            count["retries"][labels] += (one.attempts - 1) * times
        if one.error:
            count["errors"][(*labels, one.error)] += times
        elif one.status >= 400:
            count["upstream_errors"][(*labels, str(one.status))] += times
        if one.why and one.why != "folded":
            count["not_folded"][(one.upstream, one.why)] += times
        for warning in one.warning.split(", ") if one.warning else ():
            count["warnings"][(*labels, warning.partition(";")[0])] += times
        for kind, billed in _BILLED:
            if tokens := sum(filter(None, map(billed, group))):
                count["billed_tokens"][(*labels, kind)] += tokens
        for exchange in group:
            if exchange.tokens_before is not None or exchange.steps:
                self._add_tokens(exchange, labels, mode)
        for name, seconds in _TIMES:
            self._histograms[name][labels].add(list(map(seconds, group)))

    def _add_tokens(self, exchange: Exchange, labels: Labels, mode: str) -> None:
        """Count saved tokens. In mode observe nothing is saved; what would have been saved has counters of its own."""
        count, before, after = self._counters, exchange.tokens_before, exchange.tokens_after
        if before is not None and after is not None:
            count["tokens_before"][(*labels, mode)] += before
            count["tokens_after"][(*labels, mode)] += after if mode == "enforce" else before
            if mode != "enforce" and after < before:
                count["would_save_tokens"][labels] += before - after
                count["would_fold"][labels] += 1
            if exchange.window:
                self._histograms["window_share"][(*labels, mode)].add([before / exchange.window])
        for step in exchange.steps if mode == "enforce" else ():
            count["saved_tokens"][(*labels, step.stage)] += max(step.saved, 0)

    def _add_to_key(self, exchange: Exchange) -> None:
        """Add an exchange to the counters of its client key. Keys beyond `MOST_KEYS` share one label."""
        if exchange.key not in self._keys and len(self._keys) < MOST_KEYS:
            self._keys.add(exchange.key)
        key = exchange.key if exchange.key in self._keys else OTHER_KEYS
        self._counters["key_requests"][(key, str(exchange.status))] += 1
        for kind, tokens in (("prompt", exchange.prompt_tokens), ("completion", exchange.completion_tokens)):
            if tokens:
                self._counters["key_tokens"][(key, kind)] += tokens

    def degraded(self, part: str) -> None:
        """Count a failure of our own that the client did not notice."""
        self._counters["degraded"][(part,)] += 1

    def summarised(self, outcome: str, tokens: int) -> None:
        """Count the outcome of a background summary and its tokens."""
        self._counters["summaries"][(outcome,)] += 1
        self._counters["summary_tokens"][()] += tokens

    def summaries(self) -> dict[str, int]:
        """Return how many background summaries had each outcome."""
        return {outcome: int(number) for (outcome,), number in self._counters["summaries"].items()}

    def counters(self) -> Iterator[tuple[str, str, Labels, list[tuple[Labels, float]]]]:
        """Return every counter: name, description, label names, and numbers by label values."""
        self._add_waiting()
        for name, (text, labels) in _COUNTERS.items():
            yield f"turnfold_{name}", text, labels, list(self._counters[name].items())

    def histograms(self) -> Iterator[tuple[str, str, Labels, list[tuple[Labels, Histogram]]]]:
        """Return every histogram in the same form."""
        self._add_waiting()
        for name, (text, labels, _) in _HISTOGRAMS.items():
            yield f"turnfold_{name}", text, labels, list(self._histograms[name].items())


_WHERE: Final = ("upstream", "entry")
_COUNTERS: Final[dict[str, tuple[str, Labels]]] = {
    "requests": ("Requests by what was done, the status answered and the mode.", (*_WHERE, "action", "status", "mode")),
    "attempts": ("Calls to upstreams.", _WHERE),
    "retries": ("Calls beyond the first of a request.", _WHERE),
    "refusals": ("Answers of upstreams that said a request was too long.", _WHERE),
    "errors": ("Requests that ended in an error of the gateway's own or a broken connection.", (*_WHERE, "error")),
    "upstream_errors": ("Error statuses handed on from upstreams.", (*_WHERE, "status")),
    "not_folded": ("Requests that were not folded, by the reason.", ("upstream", "why")),
    "warnings": ("Responses that carried a warning.", (*_WHERE, "warning")),
    "billed_tokens": ("Tokens as upstreams reported them.", (*_WHERE, "kind")),
    "tokens_before": ("Prompt tokens as clients sent them, where they were counted.", (*_WHERE, "mode")),
    "tokens_after": ("Prompt tokens as they were forwarded, where they were counted.", (*_WHERE, "mode")),
    "saved_tokens": ("Tokens each folding stage saved; nothing is saved in mode observe.", (*_WHERE, "stage")),
    "would_save_tokens": ("Tokens that mode enforce would have saved, of requests that were only observed.", _WHERE),
    "would_fold": ("Requests that mode enforce would have folded, of those that were only observed.", _WHERE),
    "key_requests": ("Requests by client key and the status answered.", ("key", "status")),
    "key_tokens": ("Tokens by client key, as upstreams reported them.", ("key", "kind")),
    "summaries": ("Background summaries by what came of them.", ("outcome",)),
    "summary_tokens": ("Tokens spent on background summaries, about.", ()),
    "degraded": ("Failures of the gateway's own parts that clients did not notice.", ("part",)),
}
_HISTOGRAMS: Final[dict[str, tuple[str, Labels, tuple[float, ...]]]] = {
    "window_share": ("Prompt tokens as sent by the client over the window.", (*_WHERE, "mode"), SHARES),
    "decision_seconds": ("From the request read to the first attempt ready.", _WHERE, SECONDS),
    "first_byte_seconds": ("From the request's arrival to the first byte of the answer.", _WHERE, SECONDS),
    "request_seconds": ("From the request's arrival to the answer's end.", _WHERE, SECONDS),
}
