"""A circuit breaker: after a few failures in a row calls stop for a while, longer each time."""

import time
from collections.abc import Callable


class Breaker:
    """Closed while calls succeed; open for a pause after failures; then one trial decides.

    The pause doubles with each failed trial, up to ``longest_s``.
    """

    def __init__(
        self,
        *,
        failures: int = 3,
        pause_s: float = 1.0,
        longest_s: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._allowed_failures = failures
        self._first_pause_s = pause_s
        self._longest_s = longest_s
        self._clock = clock
        self._failed = 0
        self._pause_s = pause_s
        self._next_trial = 0.0
        self._trying = False

    @property
    def open(self) -> bool:
        """Return whether the last result was a failure: calls are refused, or one trial is due."""
        return self._failed >= self._allowed_failures

    def begin_call(self) -> bool:
        """Begin a call if one may be made now, and return whether it may; while open, one trial in each pause."""
        if not self.open:
            return True
        now = self._clock()
        if now < self._next_trial:
            return False
        self._trying = True
        self._next_trial = now + self._pause_s
        return True

    def succeeded(self) -> None:
        self._failed = 0
        self._trying = False
        self._pause_s = self._first_pause_s

    def failed(self) -> None:
        """Count a failure. Calls already running when the circuit opened fail late and are not counted."""
        if self.open and not self._trying:
            return
        if self._trying:
            self._pause_s = min(self._pause_s * 2, self._longest_s)
        self._trying = False
        self._failed += 1
        self._next_trial = self._clock() + self._pause_s
