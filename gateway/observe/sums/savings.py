"""The savings of folding: the tokens that were not sent, less the cost of broken prompt caches."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from gateway.observe.shape import RecordJson
from gateway.observe.sums import bounds
from gateway.observe.sums.record import folded, prompt_tokens_of

CACHE_LIFETIME_S: Final = 300.0
"""Seconds after which a prompt cache counts as empty, for models without a published rule: the shortest published lifetime."""
MILLION: Final = 1e6
"""Tokens to which a price applies."""

Price = Mapping[str, Any]
"""US dollars for a million prompt tokens: ``input``, ``cached``; ``lifetime_s`` of the provider's cache, or None."""


class FoldedRequest(NamedTuple):
    """A folded request that waits until the earlier request of its conversation is added. Counts are tokens."""

    model: str
    at: float
    whole: int
    sent: int
    cached: int


class ModelSavings(msgspec.Struct):
    """The savings of folding for one model. Numbers are tokens if nothing else is stated."""

    price: Price | None
    reads: bool = False
    """Whether some bill states cached tokens, so that the provider caches."""
    requests: int = 0
    tokens: int = 0
    cache_lost: int = 0
    """Tokens that would have been read from the cache without folding, and were not."""
    cache_difference: int = 0
    """The same, minus tokens that were read from the cache beyond that."""

    def add(self, one: FoldedRequest, before: tuple[int, float] | None) -> None:
        """Add a folded request. ``before`` has the prompt tokens and the time of the request before it, as its client sent it; None when
        that is unknown."""
        lifetime_s = (
            self.price["lifetime_s"] if self.price and self.price["lifetime_s"] is not None else CACHE_LIFETIME_S
        )
        would_read = one.cached
        if before is not None and one.at - before[1] < lifetime_s:
            would_read = min(before[0], one.whole)
        self.requests += 1
        self.tokens += one.whole - one.sent
        self.cache_lost += max(would_read - one.cached, 0)
        self.cache_difference += would_read - one.cached

    @property
    def caches(self) -> bool:
        """Whether this provider caches: by its published rule, or because a bill states cached tokens."""
        return self.reads or bool(self.price and self.price["lifetime_s"])

    @property
    def gross(self) -> float | None:
        """Dollars for the tokens that were not sent."""
        return self.tokens * self.price["input"] / MILLION if self.price else None

    @property
    def cache(self) -> float | None:
        """Dollars: the cost of broken caches."""
        if self.price is None:
            return None
        return self.cache_difference * (self.price["input"] - self.price["cached"]) / MILLION if self.caches else 0.0

    @property
    def net(self) -> float | None:
        """Dollars saved, less the cost of broken caches."""
        return self.gross - self.cache if self.gross is not None and self.cache is not None else None


class Savings:
    """The savings of folding, by model. Records are added newest first."""

    def __init__(self, price_of: Callable[[str], Price | None]) -> None:
        self._price_of = price_of
        self._known: dict[str, ModelSavings] = {}
        self._waiting: OrderedDict[str, FoldedRequest] = OrderedDict()

    def add(self, record: RecordJson) -> None:
        """Add one record."""
        if record["cached_tokens"]:
            self._of(record["model"]).reads = True
        tokens = prompt_tokens_of(record)
        if record["mode"] != "enforce" or record["status"] >= 400 or tokens is None:
            return
        name = record["conversation"] or record["request_id"]
        if (later := self._waiting.pop(name, None)) is not None:
            self._of(later.model).add(later, (tokens, record["at"]))
        if not folded(record) or record["tokens_before"] is None:
            return
        sent = record["prompt_tokens"] if record["prompt_tokens"] is not None else record["tokens_after"]
        self._waiting[name] = FoldedRequest(record["model"], record["at"], tokens, sent, record["cached_tokens"] or 0)
        if len(self._waiting) > bounds.MOST_CONVERSATIONS:
            _, first = self._waiting.popitem(last=False)
            self._of(first.model).add(first, None)

    def _of(self, model: str) -> ModelSavings:
        name = model if model in self._known or len(self._known) < bounds.MOST_MODELS else bounds.OTHERS
        if name not in self._known:
            self._known[name] = ModelSavings(self._price_of(name))
        return self._known[name]

    def as_json(self) -> dict[str, Any]:
        """Return the savings as JSON. Requests that still wait are added without the request before them."""
        for one in self._waiting.values():
            self._of(one.model).add(one, None)
        self._waiting.clear()
        rows = {model: one for model, one in self._known.items() if one.requests}
        priced = [one for one in rows.values() if one.price is not None]
        gross, cache, net = (_total(getattr(one, name) for one in priced) for name in ("gross", "cache", "net"))
        return {
            "requests": sum(one.requests for one in rows.values()),
            "unpriced": sum(one.requests for one in rows.values() if one.price is None),
            "tokens": sum(one.tokens for one in rows.values()),
            "cache_lost": sum(one.cache_lost for one in rows.values() if one.caches),
            "gross": gross,
            "cache": cache,
            "net": net,
            "models": [
                {
                    "model": model, "requests": one.requests, "tokens": one.tokens, "cache_lost": one.cache_lost if one.caches else 0,
                    "price": one.price, "net": one.net,
                }
                for model, one in sorted(rows.items(), key=lambda pair: -pair[1].tokens)
            ],
        }  # fmt: skip


def _total(amounts: Iterable[float]) -> float | None:
    found = list(amounts)
    return sum(found) if found else None
