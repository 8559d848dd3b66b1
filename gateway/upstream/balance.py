"""Choose one of several upstreams: by weight, by conversation, and by recent failures."""

import time
from collections.abc import Callable, Sequence
from hashlib import blake2b
from math import ceil, log
from typing import Final

FIRST_PAUSE_S: Final = 1.0
"""How long a failed upstream is skipped when there is another; doubled with each failure in a row."""
LONGEST_PAUSE_S: Final = 60.0
"""The longest of these pauses. Chosen: a recovered upstream is used again within a minute."""
MOST_PAIRS: Final = 4096
"""Pairs of upstream and caller whose failures are kept. Clients choose their keys, so the number is bounded."""

OVERLOAD_FACTOR: Final = 1.25
"""Factor of its fair share of running requests above which an upstream counts as overloaded (Mirrokni, Thorup and
Zadimoghaddam, https://arxiv.org/abs/1608.01350)."""
ALWAYS_KEPT: Final = 8
"""Running requests up to which an upstream never counts as overloaded. Chosen: a cache hit is worth more than balancing so little load."""

Choices = Sequence[tuple[str, int]]
"""Upstream names with their weights."""


class Balance:
    """Weighted choice with passive health checks: upstreams are not probed; one that failed is avoided ("rests") for a while.

    A failure that concerns one caller's key (its rate, its quota) makes the upstream rest for this caller only.
    ``caller`` is the hash of the sent credentials, empty for a failure that concerns all callers.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._credit: dict[str, float] = {}
        self._running: dict[str, int] = {}
        self._pause_s: dict[tuple[str, str], float] = {}
        self._resting_until: dict[tuple[str, str], float] = {}

    def order(self, choices: Choices, conversation: bytes = b"", caller: str = "") -> list[str]:
        """Return all upstreams in the order to try them, resting ones last.

        A conversation (any bytes that stay the same through its turns) keeps its upstream while the choices stay the
        same, so that the provider's prompt cache keeps hitting: weighted rendezvous hashing with bounded loads, so an
        upstream that is much busier than its share passes conversations to their next one. Without a conversation:
        smooth weighted round-robin.
        """
        if len(choices) == 1:
            return [choices[0][0]]
        ranked = self._by_conversation(choices, conversation) if conversation else self._by_turns(choices, caller)
        overloaded = self._overloaded(choices) if conversation else frozenset[str]()
        return sorted(ranked, key=lambda name: (self.resting(name, caller), name in overloaded))

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

    def failed(self, upstream: str, retry_after_s: float | None = None, caller: str = "") -> None:
        """Make an upstream rest: for the time of its ``retry-after``, else longer with each failure in a row."""
        pair = (upstream, caller)
        if len(self._pause_s) >= MOST_PAIRS and pair not in self._pause_s:
            self._clear_callers()
        pause = self._pause_s.get(pair, FIRST_PAUSE_S)
        self._pause_s[pair] = min(pause * 2, LONGEST_PAUSE_S)
        rest = pause if retry_after_s is None else min(max(retry_after_s, 0.0), 10 * LONGEST_PAUSE_S)
        self._resting_until[pair] = self._clock() + rest

    def succeeded(self, upstream: str, caller: str = "") -> None:
        """End an upstream's rest: it answered this caller."""
        for pair in ((upstream, ""), (upstream, caller)):
            if pair in self._pause_s:
                del self._pause_s[pair]
                self._resting_until.pop(pair, None)

    def resting(self, upstream: str, caller: str = "") -> bool:
        """Return whether an upstream failed lately, for all callers or for this one."""
        now = self._clock()
        pairs = ((upstream, ""), (upstream, caller))
        return any(self._resting_until.get(pair, 0.0) > now for pair in pairs)

    def _clear_callers(self) -> None:
        """Drop the failures of single callers."""
        self._pause_s = {pair: pause for pair, pause in self._pause_s.items() if not pair[1]}
        self._resting_until = {pair: until for pair, until in self._resting_until.items() if not pair[1]}

    @staticmethod
    def _by_conversation(choices: Choices, conversation: bytes) -> list[str]:
        """Return the upstreams in the order of their weighted rendezvous hashes with the conversation."""

        def score(choice: tuple[str, int]) -> float:
            digest = blake2b(conversation, key=choice[0].encode()[:64], digest_size=8).digest()
            return -max(choice[1], 0) / log((int.from_bytes(digest) + 1) / (2**64 + 1))

        return [name for name, _ in sorted(choices, key=score, reverse=True)]

    def _by_turns(self, choices: Choices, caller: str) -> list[str]:
        """Smooth weighted round-robin as in nginx, among upstreams that do not rest."""
        awake = [choice for choice in choices if not self.resting(choice[0], caller)] or list(choices)
        for name, weight in awake:
            self._credit[name] = self._credit.get(name, 0.0) + weight
        first = max(awake, key=lambda choice: self._credit[choice[0]])[0]
        self._credit[first] -= sum(weight for _, weight in awake)
        rest = sorted((choice for choice in choices if choice[0] != first), key=lambda choice: -choice[1])
        return [first, *(name for name, _ in rest)]
