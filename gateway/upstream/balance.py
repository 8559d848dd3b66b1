"""Choose one of several upstreams: by weight, by conversation, and by recent failures."""

import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from hashlib import blake2b
from math import ceil, log
from typing import Final

import msgspec

FIRST_PAUSE_S: Final = 1.0
"""How long a failed upstream is skipped when there is another; doubled with each failure in a row."""
LONGEST_PAUSE_S: Final = 60.0
"""The longest of these pauses. Chosen: a recovered upstream is used again within a minute."""
LONGEST_FOR_QUOTA_S: Final = 600.0
"""The longest ``retry-after`` that is followed about a caller's own quota, in seconds. Chosen: longer ones are about quotas of hours, and a
call costs little. Any other is followed for `LONGEST_PAUSE_S`."""
LONGEST_FOR_ALL_S: Final = 10.0
"""The longest rest, in seconds, for callers whose own requests did not fail. Then one of them finds out, at the cost of one call."""
CONFIRMED_WITHIN_S: Final = 60.0
"""Seconds in which the requests of two callers must fail so that the upstream rests for all. Chosen as the longest pause."""
MOST_RESTS: Final = 4096
"""Rests that are kept, the newest. Clients choose their keys and models, so the number is bounded."""

Owner = tuple[str, str, str]
"""Upstream, model and caller. If their requests fail, the upstream rests for them."""

OVERLOAD_FACTOR: Final = 1.25
"""Factor of its fair share of running requests above which an upstream counts as overloaded (Mirrokni, Thorup and
Zadimoghaddam, https://arxiv.org/abs/1608.01350)."""
ALWAYS_KEPT: Final = 8
"""Running requests up to which an upstream never counts as overloaded. Chosen: a cache hit is worth more than balancing so little load."""

EVERYONE: Final = ""
"""The caller of a rest that holds for all callers."""

Choices = Sequence[tuple[str, int]]
"""Upstream names with their weights."""


class Rest(msgspec.Struct):
    """The rest of an upstream from one model's requests, of one caller or of all."""

    failed_at: float
    caller: str
    """Whose request failed last."""
    pause_s: float = FIRST_PAUSE_S
    """How long it rests after the next failure."""
    until: float = 0.0


class Balance:
    """Weighted choice with passive health checks: upstreams are not probed; one that failed is avoided ("rests") for a while.

    It rests for the caller and the model whose request failed, because one request may fail alone: it is too large, its model is not loaded, its
    key has no quota left. If requests of two callers for a model fail, the upstream rests for all requests for this model, but not for long.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._credit: dict[str, float] = {}
        self._running: dict[str, int] = {}
        self._rests: OrderedDict[Owner, Rest] = OrderedDict()

    def order(self, choices: Choices, conversation: bytes = b"", resting: Collection[str] = ()) -> list[str]:
        """Return all upstreams in the order to try them, those that are ``resting`` for the caller last.

        A conversation (any bytes that stay the same through its turns) keeps its upstream while the choices stay the
        same, so that the provider's prompt cache keeps hitting: weighted rendezvous hashing with bounded loads, so an
        upstream that is much busier than its share passes conversations to their next one. Without a conversation:
        smooth weighted round-robin.
        """
        if len(choices) == 1:
            return [choices[0][0]]
        ranked = self._by_conversation(choices, conversation) if conversation else self._by_turns(choices, resting)
        overloaded = self._overloaded(choices) if conversation else frozenset[str]()
        return sorted(ranked, key=lambda name: (name in resting, name in overloaded))

    def began(self, upstream: str) -> None:
        """Count a request that starts at an upstream."""
        self._running[upstream] = self._running.get(upstream, 0) + 1

    def ended(self, upstream: str) -> None:
        """Count a request that has ended at an upstream."""
        left = self._running.get(upstream, 0) - 1
        if left > 0:
            self._running[upstream] = left
        else:
            self._running.pop(upstream, None)

    def _overloaded(self, choices: Choices) -> frozenset[str]:
        """Return the upstreams that work on much more than their share of the running requests."""
        total = 1 + sum(self._running.get(name, 0) for name, _ in choices)
        weights = sum(max(weight, 0) for _, weight in choices) or 1
        return frozenset(
            name
            for name, weight in choices
            if self._running.get(name, 0) >= max(ceil(OVERLOAD_FACTOR * total * weight / weights), ALWAYS_KEPT)
        )

    def failed(self, owner: Owner, retry_after_s: float | None = None, *, own_quota: bool = False) -> None:
        """Make an upstream rest for the time of its ``retry-after``, else longer with each failure in a row. ``own_quota``: the failure is about
        what this caller may use, and says nothing about the upstream."""
        upstream, model, caller = owner
        self._rest(owner, caller, retry_after_s, LONGEST_FOR_QUOTA_S if own_quota else LONGEST_PAUSE_S)
        if own_quota:
            return
        everyone = upstream, model, EVERYONE
        known, now = self._rests.get(everyone), self._clock()
        if known is not None and known.caller != caller and now - known.failed_at <= CONFIRMED_WITHIN_S:
            self._rest(everyone, caller, retry_after_s, LONGEST_FOR_ALL_S)
        elif known is None or known.until <= now:
            self._keep(everyone, Rest(now, caller))

    def succeeded(self, owner: Owner) -> None:
        """End an upstream's rest: it answered this caller."""
        upstream, model, _ = owner
        self._rests.pop(owner, None)
        self._rests.pop((upstream, model, EVERYONE), None)

    def resting(self, owner: Owner) -> bool:
        """Return whether an upstream failed lately for this caller's requests for a model, or for all callers'."""
        upstream, model, _ = owner
        now = self._clock()
        rests = (self._rests.get(owner), self._rests.get((upstream, model, EVERYONE)))
        return any(rest is not None and rest.until > now for rest in rests)

    def rests_for_some(self, upstream: str) -> bool:
        """Return whether an upstream rests for some caller, for operators."""
        now = self._clock()
        return any(name == upstream and rest.until > now for (name, _, _), rest in self._rests.items())

    def _rest(self, owner: Owner, caller: str, retry_after_s: float | None, longest_s: float) -> None:
        known, now = self._rests.get(owner), self._clock()
        pause_s = known.pause_s if known is not None else FIRST_PAUSE_S
        rest_s = min(pause_s if retry_after_s is None else max(retry_after_s, 0.0), longest_s)
        self._keep(owner, Rest(now, caller, min(pause_s * 2, LONGEST_PAUSE_S), now + rest_s))

    def _keep(self, owner: Owner, rest: Rest) -> None:
        self._rests[owner] = rest
        self._rests.move_to_end(owner)
        if len(self._rests) > MOST_RESTS:
            self._rests.popitem(last=False)

    @staticmethod
    def _by_conversation(choices: Choices, conversation: bytes) -> list[str]:
        """Return the upstreams in the order of their weighted rendezvous hashes with the conversation."""

        def score(choice: tuple[str, int]) -> float:
            digest = blake2b(conversation, key=choice[0].encode()[:64], digest_size=8).digest()
            return -max(choice[1], 0) / log((int.from_bytes(digest) + 1) / (2**64 + 1))

        return [name for name, _ in sorted(choices, key=score, reverse=True)]

    def _by_turns(self, choices: Choices, resting: Collection[str]) -> list[str]:
        """Smooth weighted round-robin as in nginx, among upstreams that do not rest."""
        awake = [choice for choice in choices if choice[0] not in resting] or list(choices)
        for name, weight in awake:
            self._credit[name] = self._credit.get(name, 0.0) + weight
        first = max(awake, key=lambda choice: self._credit[choice[0]])[0]
        self._credit[first] -= sum(weight for _, weight in awake)
        rest = sorted((choice for choice in choices if choice[0] != first), key=lambda choice: -choice[1])
        return [first, *(name for name, _ in rest)]
