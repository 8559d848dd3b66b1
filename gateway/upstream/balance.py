"""Which of several upstreams gets a request: weights, the conversation it belongs to, and who failed lately."""

import time
from collections.abc import Callable, Sequence
from hashlib import blake2b
from math import log
from typing import Final

# How long an upstream that failed is passed over where there is another; doubled with each failure in a row.
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0
# Pairs of upstream and caller remembered. Callers come from outside, so they are bounded.
PAIRS: Final = 4096

Choices = Sequence[tuple[str, int]]
"""Upstream names with their weights."""


class Balance:
    """Weighted choice with passive health: no upstream is probed, one that failed rests for a while.

    A failure that concerns one caller's key (its rate, its quota) lets the upstream rest for this caller alone: ``caller`` is the hash
    of the credentials that were sent, empty for a failure that concerns everybody.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._credit: dict[str, float] = {}
        self._pause_s: dict[tuple[str, str], float] = {}
        self._resting_until: dict[tuple[str, str], float] = {}

    def order(self, choices: Choices, conversation: bytes = b"", caller: str = "") -> list[str]:
        """All upstreams, the one to ask first at the front, resting ones at the back.

        A conversation (any bytes that stay the same through its turns) keeps its upstream while the choices stand, so that the
        provider's prompt cache keeps hitting: weighted rendezvous hashing. Without one, a smooth weighted round-robin.
        """
        if len(choices) == 1:
            return [choices[0][0]]
        ranked = self._hashed(choices, conversation) if conversation else self._in_turn(choices, caller)
        return sorted(ranked, key=lambda name: self.resting(name, caller))

    def failed(self, upstream: str, retry_after_s: float | None = None, caller: str = "") -> None:
        """Let an upstream rest: as long as it asked for, or longer with each failure in a row."""
        pair = (upstream, caller)
        if len(self._pause_s) >= PAIRS and pair not in self._pause_s:
            self._clear_callers()
        pause = self._pause_s.get(pair, FIRST_PAUSE_S)
        self._pause_s[pair] = min(pause * 2, LONGEST_PAUSE_S)
        rest = pause if retry_after_s is None else min(max(retry_after_s, 0.0), 10 * LONGEST_PAUSE_S)
        self._resting_until[pair] = self._clock() + rest

    def succeeded(self, upstream: str, caller: str = "") -> None:
        """Let an upstream rest no longer: it answers, and it answers this caller."""
        for pair in ((upstream, ""), (upstream, caller)):
            if pair in self._pause_s:
                del self._pause_s[pair]
                self._resting_until.pop(pair, None)

    def resting(self, upstream: str, caller: str = "") -> bool:
        """Whether an upstream failed lately, everybody or this caller, and is passed over where there is another."""
        now = self._clock()
        pairs = ((upstream, ""), (upstream, caller))
        return any(self._resting_until.get(pair, 0.0) > now for pair in pairs)

    def _clear_callers(self) -> None:
        """Keep what concerns everybody, and let go of the rest."""
        self._pause_s = {pair: pause for pair, pause in self._pause_s.items() if not pair[1]}
        self._resting_until = {pair: until for pair, until in self._resting_until.items() if not pair[1]}

    @staticmethod
    def _hashed(choices: Choices, conversation: bytes) -> list[str]:
        def score(choice: tuple[str, int]) -> float:
            digest = blake2b(conversation, key=choice[0].encode()[:64], digest_size=8).digest()
            return -max(choice[1], 0) / log((int.from_bytes(digest) + 1) / (2**64 + 1))

        return [name for name, _ in sorted(choices, key=score, reverse=True)]

    def _in_turn(self, choices: Choices, caller: str) -> list[str]:
        """Smooth weighted round-robin as nginx does it, among those that do not rest."""
        awake = [choice for choice in choices if not self.resting(choice[0], caller)] or list(choices)
        for name, weight in awake:
            self._credit[name] = self._credit.get(name, 0.0) + weight
        first = max(awake, key=lambda choice: self._credit[choice[0]])[0]
        self._credit[first] -= sum(weight for _, weight in awake)
        rest = sorted((choice for choice in choices if choice[0] != first), key=lambda choice: -choice[1])
        return [first, *(name for name, _ in rest)]
