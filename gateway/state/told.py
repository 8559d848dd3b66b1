"""What model lists tell: the windows of an upstream's models, when they were asked for, and with whose key not to ask again."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import structlog

from gateway.state.facts import Fact
from providers.windows import ANY_MODEL

log = structlog.get_logger(__name__)

TOLD_TTL_S: Final = 3600.0
"""A list is read again after so long: servers are restarted with other windows."""
FIRST_RETRY_S: Final = 5.0
"""A list that could not be read is asked for again so soon, then twice as late each time, at most once in `TOLD_TTL_S`."""
SMALLEST_TOLD: Final = 256
"""Tokens. No server is started with less: such a number means something else."""
REFUSED_KEYS: Final = 1024
"""Keys remembered of each upstream that it did not let read its list."""


@dataclass(frozen=True, slots=True)
class Told:
    """What one upstream told. Times are seconds since 1970."""

    windows: Mapping[str, int] = field(default_factory=dict)
    running: Mapping[str, int] = field(default_factory=dict)
    """Those of which the server says that it runs with them, and not what a model could have."""
    since: float = 0.0
    next: float = 0.0
    """When to ask again."""
    pause_s: float = FIRST_RETRY_S
    refused: frozenset[str] = frozenset()
    """Hashes of keys that were refused."""


class Lists:
    """The model lists of all upstreams, in this process."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._told: dict[str, Told] = {}

    def window(self, upstream: str, model: str) -> int | None:
        """The window that the upstream's list tells."""
        told = self._told.get(upstream)
        return told.windows.get(model) if told else None

    def running(self, upstream: str, model: str) -> int | None:
        """The same where the server says that it runs with it: better knowledge than any catalogue's."""
        told = self._told.get(upstream)
        return (told.running.get(model) or told.running.get(ANY_MODEL)) if told else None

    def names(self) -> set[str]:
        """Every model whose window some list tells."""
        return {model for told in self._told.values() for model in told.windows if model != ANY_MODEL}

    def due(self, upstream: str) -> bool:
        """Whether it is time to ask an upstream, if with the right key."""
        told = self._told.get(upstream)
        return told is None or self._clock() >= told.next

    def wants(self, upstream: str, key: str) -> bool:
        """Whether to ask an upstream now, with the key of this hash; a yes counts as having asked."""
        told, now = self._told.get(upstream, Told()), self._clock()
        if now < told.next or key in told.refused:
            return False
        self._told[upstream] = replace(told, next=now + told.pause_s, pause_s=min(2 * told.pause_s, TOLD_TTL_S))
        return True

    def read(self, upstream: str, windows: Mapping[str, int], running: Mapping[str, int]) -> None:
        """Remember a list."""
        now = self._clock()
        windows = {model: tokens for model, tokens in {**windows, **running}.items() if tokens >= SMALLEST_TOLD}
        running = {model: tokens for model, tokens in running.items() if tokens >= SMALLEST_TOLD}
        if (known := self._told.get(upstream, Told())).windows != windows:
            log.info("windows_told", upstream=upstream, models=len(windows))
        since = known.since if known.windows == windows else now
        self._told[upstream] = Told(windows, running, since, now + TOLD_TTL_S)

    def refused(self, upstream: str, key: str) -> None:
        """Remember that a key may not read the list: other keys may, at once."""
        told = self._told.get(upstream, Told())
        keys = told.refused if len(told.refused) < REFUSED_KEYS else frozenset[str]()
        self._told[upstream] = replace(told, next=0.0, pause_s=FIRST_RETRY_S, refused=keys | {key})
        log.info("windows_not_told", upstream=upstream, reason="key_refused")

    def failed(self, upstream: str, reason: str) -> None:
        """A list could not be read: `wants` has set when it is tried again."""
        log.info("windows_not_told", upstream=upstream, reason=reason)

    def facts(self) -> list[Fact]:
        """What lists told, for operators."""
        return [
            Fact("stated", "told window", upstream, model, tokens, "everyone",
                 "the running server's model list" if model in told.running else "the upstream's model list",
                 told.since, told.next)
            for upstream, told in self._told.items()
            for model, tokens in sorted(told.windows.items())
        ]  # fmt: skip

    def forget(self) -> None:
        """Let go of everything, so that lists are asked for again."""
        self._told.clear()
