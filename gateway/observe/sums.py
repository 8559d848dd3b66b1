"""The sums of many records: the figures of the dashboard and of `turnfold report`. Records are added newest first.

A value that cannot be known is None. All that is kept is bounded, because names of models, conversations and sessions
are the clients'.
"""

from array import array
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import floor
from typing import Any, Final, NamedTuple

from gateway.observe.shape import Shown

SHARES: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5, 2.0)
"""Upper ends of the classes of fullness, prompt over window; one more class is above them."""
STEPS_S: Final = (1, 5, 15, 60, 300, 900, 3600, 10_800, 43_200, 86_400, 604_800, 2_419_200)
"""Seconds of one piece of time; each divides the next, so that pieces can be joined."""
MOST_PIECES: Final = 60
"""Pieces of time that are told apart. Chosen: what a chart can show."""
MOST_MODELS: Final = 200
"""Models that are told apart; the others are summed as one."""
MOST_CONVERSATIONS: Final = 20_000
"""Conversations that are told apart at one time, 10 MB."""
MOST_NAMES: Final = 200
"""Values of one field that are offered as a filter."""
OTHERS: Final = "(others)"
"""The name of all models beyond `MOST_MODELS`."""
CACHE_LIVES_S: Final = 300.0
"""Seconds after which a prompt cache is taken to be empty, for models without a published rule: the shortest published one."""
MILLION: Final = 1e6
"""Tokens that a price is for."""

TOTALS: Final = (
    "requests", "folded", "would_fold", "retries", "refusals", "errors", "lossy", "billed", "billed_tokens", "cached_tokens",
)  # fmt: skip
"""What is counted of all records."""

Price = Mapping[str, Any]
"""US dollars for a million prompt tokens: ``input``, ``cached``; ``lifetime_s`` of the provider's cache, or None."""


def asked(one: Shown) -> int | None:
    """Return the prompt tokens as the client sent them: counted, or where the size was proof enough, as billed."""
    found: int | None = one["tokens_before"] if one["tokens_before"] is not None else one["prompt_tokens"]
    return found


def folded(one: Shown) -> bool:
    """Return whether a request was folded and sent so."""
    return one["mode"] == "enforce" and one["action"] in ("fold", "retry")


def would_fold(one: Shown) -> bool:
    """Return whether a request in mode observe would have been folded."""
    return one["mode"] == "observe" and bool(one["steps"])


def failed(one: Shown) -> bool:
    """Return whether a request ended in an error."""
    return one["status"] >= 400 or bool(one["error"])


def refused(one: Shown) -> bool:
    """Return whether the client saw a request refused as too long."""
    return one["status"] >= 400 and (bool(one["refusals"]) or one["why"] == "too_large")


def loses(one: Shown) -> bool:
    """Return whether whole turns, lines, images or a part of the question did not reach the model."""
    return any(one["lost"].values())


@dataclass(slots=True)
class OfMode:
    """The sums of all requests of one mode. Tokens, where nothing else is said."""

    requests: int = 0
    refused: int = 0
    """Requests that the upstream refused as too long at least once."""
    failed: int = 0
    """Requests that the client saw refused as too long."""
    folded: int = 0
    """Requests that were folded, or would have been."""
    before: int = 0
    after: int = 0
    uncounted: int = 0
    """Billed prompt tokens of requests that were not counted because they surely fit."""

    @property
    def saved_share(self) -> float:
        """The share of all prompt tokens that folding saves."""
        whole = self.before + self.uncounted
        return (self.before - self.after) / whole if whole else 0.0

    def add(self, one: Shown) -> None:
        """Add one record."""
        self.requests += 1
        self.refused += bool(one["refusals"])
        self.failed += refused(one)
        before, after = one["tokens_before"], one["tokens_after"]
        if before is None or after is None:
            self.uncounted += one["prompt_tokens"] or 0
            return
        self.before += before
        self.after += min(after, before)
        self.folded += after < before


@dataclass(slots=True)
class Loser:
    """A conversation of which something did not reach the model: the most that one of its requests lost."""

    model: str
    key: str
    session: str
    last: str
    requests: int = 0
    observed: bool = True
    """Whether all of these requests were in mode observe, so that nothing was lost in truth."""
    lost: dict[str, int] = field(default_factory=dict)

    @property
    def weight(self) -> tuple[int, int, int]:
        """Order conversations: a cut question is worst, then lines, then turns."""
        return self.lost.get("question_characters", 0), self.lost.get("lines", 0), self.lost.get("turns", 0)

    def add(self, one: Shown) -> None:
        """Add one record."""
        self.requests += 1
        self.observed = self.observed and one["mode"] == "observe"
        self.lost = {name: max(count, self.lost.get(name, 0)) for name, count in one["lost"].items()}


@dataclass(slots=True)
class Fullness:
    """How full a model's window was; the window is the newest request's."""

    window: int
    entry: str
    smallest: int
    largest: int
    folded: int = 0
    shares: "array[float]" = field(default_factory=lambda: array("f"))

    def add(self, one: Shown, tokens: int) -> None:
        """Add one record whose prompt is known."""
        self.smallest, self.largest = min(self.smallest, one["window"]), max(self.largest, one["window"])
        self.folded += folded(one)
        self.shares.append(tokens / one["window"])

    def shown(self) -> dict[str, Any]:
        """Return it as JSON."""
        shares = sorted(self.shares)
        counts = [0] * (len(SHARES) + 1)
        place = 0
        for share in shares:
            while place < len(SHARES) and share > SHARES[place] + 1e-6:  # shares are kept with seven digits
                place += 1
            counts[place] += 1
        return {
            "window": self.window, "entry": self.entry, "smallest": self.smallest, "largest": self.largest, "folded": self.folded,
            "requests": len(shares), "counts": counts, "over": sum(counts[SHARES.index(1.0) + 1 :]),
            "median": _quantile(shares, 0.5), "p95": _quantile(shares, 0.95), "most": round(shares[-1], 6),
        }  # fmt: skip


def _quantile(shares: list[float], share: float) -> float:
    return round(shares[min(int(share * len(shares)), len(shares) - 1)], 6)


class Folded(NamedTuple):
    """A folded request, until the one before it in its conversation is known. Counts are tokens."""

    model: str
    at: float
    whole: int
    sent: int
    cached: int


@dataclass(slots=True)
class Saved:
    """What folding one model's requests saved. Tokens, where nothing else is said."""

    price: Price | None
    reads: bool = False
    """Whether a bill says that the provider caches."""
    requests: int = 0
    tokens: int = 0
    cache_lost: int = 0
    """What caches would have given and did not."""
    cache_difference: int = 0
    """The same, less what caches gave beyond it."""

    def add(self, one: Folded, before: tuple[int, float] | None) -> None:
        """Add a folded request; ``before`` is the prompt and the time of the one before it, sent whole."""
        lives_s = self.price["lifetime_s"] if self.price and self.price["lifetime_s"] is not None else CACHE_LIVES_S
        would_read = one.cached
        if before is not None and one.at - before[1] < lives_s:
            would_read = min(before[0], one.whole)
        self.requests += 1
        self.tokens += one.whole - one.sent
        self.cache_lost += max(would_read - one.cached, 0)
        self.cache_difference += would_read - one.cached

    @property
    def caches(self) -> bool:
        """Whether this provider caches: by its published rule, or because a bill says so."""
        return self.reads or bool(self.price and self.price["lifetime_s"])

    @property
    def gross(self) -> float | None:
        """Dollars of what was not sent."""
        return self.tokens * self.price["input"] / MILLION if self.price else None

    @property
    def cache(self) -> float | None:
        """Dollars that broken caches cost."""
        if self.price is None:
            return None
        return self.cache_difference * (self.price["input"] - self.price["cached"]) / MILLION if self.caches else 0.0


class Sums:
    """All sums of a set of records."""

    def __init__(self, price_of: Callable[[str], Price | None] = lambda model: None) -> None:
        self._price_of = price_of
        self.totals: Counter[str] = Counter()
        self.why: Counter[str] = Counter()
        self.modes: dict[str, OfMode] = {}
        self.losers: dict[str, Loser] = {}
        self.oldest: float | None = None
        self._pieces: dict[int, list[int]] = {}
        self._step = 0
        self._fullness: dict[tuple[str, str], Fullness] = {}
        self._stages: dict[str, list[int]] = {}
        self._rungs: dict[int, list[int]] = {}
        self._signs: Counter[tuple[str, str]] = Counter()
        self._saved: dict[str, Saved] = {}
        self._waiting: OrderedDict[str, Folded] = OrderedDict()
        self._names: dict[str, set[str]] = {"key": set(), "model": set(), "session": set()}

    def add(self, one: Shown) -> None:
        """Add one record, which is not newer than those before it."""
        self._count(one)
        self._add_to_time(one)
        self._add_fullness(one)
        self._add_steps(one)
        self._add_saving(one)
        if one["conversation"] and loses(one):
            self._add_loser(one)

    def worst(self, most: int) -> list[tuple[str, Loser]]:
        """Return the conversations that lost most."""
        return sorted(self.losers.items(), key=lambda pair: pair[1].weight, reverse=True)[:most]

    def shown(self, most_losers: int = 10) -> dict[str, Any]:
        """Return everything as JSON."""
        return {
            **{name: self.totals[name] for name in TOTALS},
            "oldest": self.oldest,
            "names": {name: sorted(values) for name, values in self._names.items()},
            "over_time": self._over_time(),
            "classes": [*SHARES, None],
            "fullness": sorted(
                ({"upstream": upstream, "model": model, **one.shown()} for (upstream, model), one in self._fullness.items()),
                key=lambda one: -one["requests"],
            ),
            "stages": sorted(
                ({"stage": name, "requests": requests, "saved": saved} for name, (requests, saved) in self._stages.items()),
                key=lambda one: -one["saved"],
            ),
            "rungs": [{"rung": rung, "calls": calls, "refused": refused} for rung, (calls, refused) in sorted(self._rungs.items())],
            "signs": [{"upstream": upstream, "sign": sign, "count": count} for (upstream, sign), count in self._signs.most_common(MOST_NAMES)],
            "losers": [
                {
                    "conversation": name, "session": one.session, "model": one.model, "key": one.key, "last": one.last,
                    "requests": one.requests, "observed": one.observed, "lost": one.lost,
                }
                for name, one in self.worst(most_losers)
            ],
            "savings": self._savings(),
        }  # fmt: skip

    def _count(self, one: Shown) -> None:
        self.why[one["why"]] += 1
        if one["mode"]:
            self.modes.setdefault(one["mode"], OfMode()).add(one)
        billed, cached = one["prompt_tokens"], one["cached_tokens"]
        self.totals.update({
            "requests": 1, "folded": folded(one), "would_fold": would_fold(one), "retries": max(one["attempts"] - 1, 0),
            "refusals": len(one["refusals"]), "errors": failed(one), "lossy": loses(one), "billed": billed is not None,
            "billed_tokens": billed or 0, "cached_tokens": cached or 0 if billed is not None else 0,
        })  # fmt: skip
        for name, values in self._names.items():
            if one[name] and len(values) < MOST_NAMES:
                values.add(one[name])

    def _add_to_time(self, one: Shown) -> None:
        if not one["at"]:
            return
        self.oldest = one["at"] if self.oldest is None else min(self.oldest, one["at"])
        self._add_piece(floor(one["at"] / STEPS_S[self._step]), [1, int(folded(one)), int(failed(one))])
        while max(self._pieces) - min(self._pieces) >= MOST_PIECES and self._step < len(STEPS_S) - 1:
            joined = STEPS_S[self._step + 1] // STEPS_S[self._step]
            finer, self._pieces = self._pieces, {}
            self._step += 1
            for place, counts in finer.items():
                self._add_piece(place // joined, counts)

    def _add_piece(self, place: int, counts: list[int]) -> None:
        known = self._pieces.get(place, [0, 0, 0])
        self._pieces[place] = [one + other for one, other in zip(known, counts, strict=True)]

    def _over_time(self) -> dict[str, Any] | None:
        if not self._pieces:
            return None
        step = STEPS_S[self._step]
        places = range(min(self._pieces), max(self._pieces) + 1)
        rows = [self._pieces.get(place, [0, 0, 0]) for place in places]
        names = ("all", "folded", "failed")
        return {"step": step, "times": [place * step for place in places]} | {
            name: [row[column] for row in rows] for column, name in enumerate(names)
        }

    def _add_fullness(self, one: Shown) -> None:
        tokens, window = asked(one), one["window"]
        if tokens is None or not window:
            return
        name = (one["upstream"], one["model"])
        if name not in self._fullness and len(self._fullness) >= MOST_MODELS:
            name = ("", OTHERS)
        if name not in self._fullness:
            self._fullness[name] = Fullness(window, one["entry"], window, window)
        self._fullness[name].add(one, tokens)

    def _add_steps(self, one: Shown) -> None:
        for step in one["steps"] if one["mode"] == "enforce" else ():
            known = self._stages.setdefault(step["stage"], [0, 0])
            known[0] += 1
            known[1] += step["saved"]
        for call in one["calls"]:
            counts = self._rungs.setdefault(call["rung"], [0, 0])
            counts[0] += 1
            counts[1] += bool(call["sign"])
        for sign in one["refusals"]:
            if (one["upstream"], sign) in self._signs or len(self._signs) < MOST_NAMES:
                self._signs[one["upstream"], sign] += 1

    def _add_saving(self, one: Shown) -> None:
        if one["cached_tokens"]:
            self._saved_of(one["model"]).reads = True
        tokens = asked(one)
        if one["mode"] != "enforce" or one["status"] >= 400 or tokens is None:
            return
        name = one["conversation"] or one["request_id"]
        if (later := self._waiting.pop(name, None)) is not None:
            self._saved_of(later.model).add(later, (tokens, one["at"]))
        if not folded(one) or one["tokens_before"] is None:
            return
        sent = one["prompt_tokens"] if one["prompt_tokens"] is not None else one["tokens_after"]
        self._waiting[name] = Folded(one["model"], one["at"], tokens, sent, one["cached_tokens"] or 0)
        if len(self._waiting) > MOST_CONVERSATIONS:
            _, first = self._waiting.popitem(last=False)
            self._saved_of(first.model).add(first, None)

    def _saved_of(self, model: str) -> Saved:
        name = model if model in self._saved or len(self._saved) < MOST_MODELS else OTHERS
        if name not in self._saved:
            self._saved[name] = Saved(self._price_of(name))
        return self._saved[name]

    def _savings(self) -> dict[str, Any]:
        for one in self._waiting.values():
            self._saved_of(one.model).add(one, None)
        self._waiting.clear()
        rows = {model: one for model, one in self._saved.items() if one.requests}
        priced = [one for one in rows.values() if one.price is not None]
        gross, cache = (_total(getattr(one, name) for one in priced) for name in ("gross", "cache"))
        return {
            "requests": sum(one.requests for one in rows.values()),
            "unpriced": sum(one.requests for one in rows.values() if one.price is None),
            "tokens": sum(one.tokens for one in rows.values()),
            "cache_lost": sum(one.cache_lost for one in rows.values() if one.caches),
            "gross": gross,
            "cache": cache,
            "net": gross - cache if gross is not None and cache is not None else None,
            "models": [
                {
                    "model": model, "requests": one.requests, "tokens": one.tokens, "cache_lost": one.cache_lost if one.caches else 0,
                    "price": one.price, "net": one.gross - one.cache if one.gross is not None and one.cache is not None else None,
                }
                for model, one in sorted(rows.items(), key=lambda pair: -pair[1].tokens)
            ],
        }  # fmt: skip

    def _add_loser(self, one: Shown) -> None:
        name = one["conversation"]
        if name not in self.losers:
            if len(self.losers) >= MOST_CONVERSATIONS:
                del self.losers[min(self.losers, key=lambda each: self.losers[each].weight)]
            self.losers[name] = Loser(one["model"], one["key"], one["session"], one["time"])
        self.losers[name].add(one)


def _total(amounts: Iterable[float]) -> float | None:
    found = list(amounts)
    return sum(found) if found else None
