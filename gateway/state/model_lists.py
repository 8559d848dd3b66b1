"""Windows from model lists: what each upstream states, when its list was read, and which keys it refused."""

import time
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

import msgspec
import structlog
from msgspec.structs import replace

from gateway.state.facts import Fact
from providers.model_list import ANY_MODEL
from providers.origins import Origin

log = structlog.get_logger(__name__)

T = TypeVar("T")

LIST_TTL_S: Final = 3600.0
"""Time after which a list is read again: servers are restarted with other windows."""
LOADED_TTL_S: Final = 60.0
"""The same for servers that load models on demand. Chosen: a model that was loaded with another window is noticed soon."""
FIRST_RETRY_S: Final = 5.0
"""Time after which a failed list, or one without a loaded model, is requested again; doubled each time, up to `LIST_TTL_S`."""
SMALLEST_STATED: Final = 256
"""Tokens. No server runs with less: a smaller number has another meaning."""
REFUSED_KEYS: Final = 1024
"""Refused keys kept per upstream."""


class ModelList(msgspec.Struct, frozen=True):
    """The contents of one upstream's list. Times are seconds since 1970."""

    windows: Mapping[str, int] = msgspec.field(default_factory=dict)
    running: Mapping[str, int] = msgspec.field(default_factory=dict)
    """Models whose stated window is the one they are running with, not a possible maximum."""
    origins: Mapping[str, Origin] = msgspec.field(default_factory=dict)
    """The model behind a name, where the server states it."""
    since: float = 0.0
    next_request: float = 0.0
    """When to request the list again."""
    pause_s: float = FIRST_RETRY_S
    refused: frozenset[str] = frozenset()
    """Hashes of refused keys."""

    def is_due(self, now: float) -> bool:
        """Return whether the list is due to be requested. No pause is longer than `LIST_TTL_S`: the clock was set back."""
        return not now < self.next_request <= now + LIST_TTL_S

    def evidence_of(self, model: str) -> str:
        """Return where the facts about a model come from, and which model stands behind its name, for operators."""
        source = f"the {'running server' if model in self.running else 'upstream'}'s model list"
        origin = self.origins.get(model)
        return f"{source}: {origin.name}" if origin and origin.name not in ("", model) else source


class ModelLists:
    """The model lists of all upstreams, in this process."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lists: dict[str, ModelList] = {}

    def window(self, upstream: str, model: str) -> int | None:
        """Return the window that the upstream's list states."""
        listed = self._lists.get(upstream)
        return listed.windows.get(model) if listed else None

    def running(self, upstream: str, model: str) -> int | None:
        """Return the window with which the server runs a model, if the list states that: it is more reliable than any catalogue."""
        listed = self._lists.get(upstream)
        return _stated(listed.running, model) if listed else None

    def origin(self, upstream: str, model: str) -> Origin | None:
        """Return the model that stands behind a name at an upstream, if its list states it."""
        listed = self._lists.get(upstream)
        return _stated(listed.origins, model) if listed else None

    def names(self) -> set[str]:
        """Return every model whose window is in a list."""
        return {model for listed in self._lists.values() for model in listed.windows if model != ANY_MODEL}

    def is_due(self, upstream: str) -> bool:
        """Return whether a list is due to be requested, by any key."""
        listed = self._lists.get(upstream)
        return listed is None or listed.is_due(self._clock())

    def begin_request(self, upstream: str, key: str) -> bool:
        """Begin to request the list with the key of this hash if it is due, and return whether it is."""
        listed, now = self._lists.get(upstream, ModelList()), self._clock()
        if not listed.is_due(now) or key in listed.refused:
            return False
        self._lists[upstream] = replace(
            listed, next_request=now + listed.pause_s, pause_s=min(2 * listed.pause_s, LIST_TTL_S)
        )
        return True

    def store(
        self,
        upstream: str,
        windows: Mapping[str, int],
        running: Mapping[str, int],
        origins: Mapping[str, Origin],
        *,
        on_demand: bool = False,
    ) -> None:
        """Store a list. With ``on_demand`` it states loaded models only: what was stated of other models when they were loaded
        stays."""
        now, known = self._clock(), self._lists.get(upstream, ModelList())
        nothing_loaded = on_demand and not running
        if on_demand:
            running, origins = {**known.running, **running}, {**known.origins, **origins}
        windows = {model: tokens for model, tokens in {**windows, **running}.items() if tokens >= SMALLEST_STATED}
        running = {model: tokens for model, tokens in running.items() if tokens >= SMALLEST_STATED}
        if known.windows != windows:
            log.info("windows_told", upstream=upstream, models=len(windows))
        since = known.since if known.windows == windows else now
        if nothing_loaded:
            self._lists[upstream] = replace(known, windows=windows, running=running, origins=origins, since=since)
        else:
            next_request = now + (LOADED_TTL_S if on_demand else LIST_TTL_S)
            self._lists[upstream] = ModelList(windows, running, origins, since, next_request)

    def note_refused_key(self, upstream: str, key: str) -> None:
        """Remember that a key may not read the list; other keys may try at once."""
        listed = self._lists.get(upstream, ModelList())
        keys = listed.refused if len(listed.refused) < REFUSED_KEYS else frozenset[str]()
        self._lists[upstream] = replace(listed, next_request=0.0, pause_s=FIRST_RETRY_S, refused=keys | {key})
        log.info("windows_not_told", upstream=upstream, reason="key_refused")

    def note_failure(self, upstream: str, reason: str) -> None:
        """Log that a list could not be read. `begin_request` has already set the time of the next attempt."""
        log.info("windows_not_told", upstream=upstream, reason=reason)

    def facts(self) -> list[Fact]:
        """Return the facts from lists, for operators."""
        return [
            Fact(
                kind="stated", what="told window", upstream=upstream, model=model, caller="", value=tokens, holds="everyone",
                evidence=listed.evidence_of(model), since=listed.since, until=listed.next_request,
            )
            for upstream, listed in self._lists.items()
            for model, tokens in sorted(listed.windows.items())
        ]  # fmt: skip

    def forget(self) -> None:
        """Drop everything, so that lists are requested again."""
        self._lists.clear()


def _stated(facts: Mapping[str, T], model: str) -> T | None:
    """Return the fact about a model, or the one that its server states for every name."""
    return facts.get(model) or facts.get(ANY_MODEL)
