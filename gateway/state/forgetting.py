"""Forgetting: what was forgotten, when, and how every process hears of it.

One small value in the store says it. Each process looks at it once a second; facts older than it are not believed, should a process that
has not heard yet write one back.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from gateway.state.facts import Model, Windows
from gateway.state.store import values
from gateway.state.store.base import Store
from gateway.state.tasks import Tasks

VERSION: Final = 1
KIND: Final = "forgotten"
KEY: Final = "all"
KEPT_S: Final = 30 * 86400.0
"""Longer than any fact is kept."""
EVERY_S: Final = 1.0
"""How often a process looks: the longest that a forgotten fact is still used."""
MOST_NAMES: Final = 10_000
MOST_MODELS: Final = 256
"""Models forgotten one by one; beyond that everything learned is forgotten."""


class NotForgotten(Exception):
    """The store did not keep what was forgotten, so other processes will not hear of it."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Since when facts are believed. Times are seconds since 1970."""

    at: float = 0.0
    """Everything learned before this is forgotten."""
    models: Mapping[str, float] = field(default_factory=dict)
    """The same for one model at one upstream."""
    memories: float = 0.0
    """When copies in memory were last to be dropped: after anything was forgotten, a caller's memory included."""

    def covers(self, model: Model, since: float) -> bool:
        """Whether a fact of that time is forgotten."""
        return since <= max(self.at, self.models.get(f"{model[0]}\n{model[1]}", 0.0))

    def left_of(self, model: Model, known: Windows) -> Windows:
        """What is left of what was known of a model's window."""
        stated = tuple(one for one in known.stated if not self.covers(model, one.since))
        if known.largest and self.covers(model, known.largest_since):
            known = replace(known, largest=0, largest_since=0.0, largest_until=0.0)
        return replace(known, stated=stated)


def read(stored: bytes | None) -> Forgotten:
    """Read what was forgotten; nothing where there is none."""
    value = values.unpack(
        stored, VERSION, at=values.number(0, 1e11), memories=values.number(0, 1e11), models=lambda models: isinstance(models, dict)
    )  # fmt: skip
    if value is None:
        return Forgotten()
    models = {name: at for name, at in value["models"].items() if type(at) in (int, float)}
    return Forgotten(value["at"], models, value["memories"])


async def forget_caller(store: Store, key_hash: str, now: float) -> int:
    """Delete everything of one caller, in the store and, within a second, in all processes; answer how many values went."""
    gone = await store.forget(key_hash)
    await _write(store, replace(read(await store.get(KIND, KEY)), memories=now))
    return gone


async def forget_everything(store: Store, now: float) -> int:
    """The same for everybody, and for all that was learned of upstreams."""
    gone = await store.forget(None)
    await _write(store, Forgotten(now, {}, now))
    return gone


async def forget_learned(store: Store, now: float, upstream: str = "", model: str = "") -> int:
    """Forget what was learned of one upstream's model, or of all; summaries stay. Answer how many facts are believed no more."""
    names = await store.names("window", MOST_NAMES) + await store.names("ratio", MOST_NAMES)
    gone = sum(not model or name == f"{upstream}\n{model}" for name in names)
    known = read(await store.get(KIND, KEY))
    if not model or len(known.models) >= MOST_MODELS:
        await _write(store, Forgotten(now, {}, now))
    else:
        await _write(store, replace(known, models={**known.models, f"{upstream}\n{model}": now}, memories=now))
    return gone


async def _write(store: Store, forgotten: Forgotten) -> None:
    """Tell all processes. Raises NotForgotten where the store does not keep it."""
    value = values.pack(VERSION, at=forgotten.at, models=dict(forgotten.models), memories=forgotten.memories)
    await store.put(KIND, KEY, value, ttl_s=KEPT_S)
    if await store.get(KIND, KEY) != value:
        raise NotForgotten("the store did not keep the order to forget; running processes keep what they know")


class Watch:
    """Looks once a second whether something was forgotten elsewhere, and says so to ``heard``."""

    def __init__(
        self, store: Store, tasks: Tasks, heard: Callable[[Forgotten], None], every_s: float = EVERY_S
    ) -> None:
        self._store = store
        self._tasks = tasks
        self._heard = heard
        self._every_s = every_s
        self._known: Forgotten | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def start(self) -> None:
        """Begin to look."""
        self._tick()

    def close(self) -> None:
        """Stop looking."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    async def look(self) -> None:
        """Look now."""
        stored = await self._store.get(KIND, KEY)
        if stored is None and self._known is not None:
            return  # the store is away, or empty: there is nothing to hear
        known = read(stored)
        if known != self._known:
            first, self._known = self._known is None, known
            if not first or known != Forgotten():
                self._heard(known)

    def _tick(self) -> None:
        if not self._closed:
            self._tasks.start(self.look(), "forgotten")
            self._timer = asyncio.get_running_loop().call_later(self._every_s, self._tick)


def now() -> float:
    """The time at which something is forgotten."""
    return time.time()
