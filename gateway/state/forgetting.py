"""Deletions that an operator orders: what is deleted, and how every process learns of it.

One small value in the store holds the times of the last deletions. Each process reads it once a second. Facts from before a
deletion are not used, even if a process that has not read the value yet writes one back.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from gateway.state.facts import MOST_AHEAD_S, Model, Windows
from gateway.state.store import values
from gateway.state.store.base import Store
from gateway.state.tasks import Tasks

VERSION: Final = 1
"""Version of the stored form; other versions are ignored."""
KIND: Final = "forgotten"
KEY: Final = "all"
KEPT_S: Final = 30 * 86400.0
"""Seconds. Longer than any fact is kept."""
EVERY_S: Final = 1.0
"""Interval at which a process reads the value: the longest time that a deleted fact is still used."""
MOST_NAMES: Final = 10_000
"""Facts read to count what is deleted. Chosen to bound the answer to an operator."""
MOST_MODELS: Final = 256
"""Models forgotten one by one; beyond this number everything learned is forgotten."""

MOST_CALLERS: Final = 64
"""Deleted callers that are kept in the value. Each process reads it every second."""
EVERY_CALLER: Final = "*"
"""Stands for all callers; no key hash."""


class Order(NamedTuple):
    """An operator's order to delete."""

    kind: Literal["everything", "learned", "model", "caller"]
    """Everything; all that was learned of upstreams, or of one model; or all that is stored for one caller."""
    upstream: str = ""
    model: str = ""
    key_hash: str = ""
    """Names the caller."""


async def forget(order: Order, store: Store, forget_records: Callable[[str | None], Awaitable[int]], now: float) -> int:
    """Carry out an order, and return how many values and records were deleted.

    ``forget_records`` deletes the records of one caller (a key hash), or all records (None).
    """
    match order.kind:
        case "everything":
            return await forget_records(None) + await forget_everything(store, now)
        case "caller":
            return await forget_records(order.key_hash) + await forget_caller(store, order.key_hash, now)
        case "learned" | "model":
            return await forget_learned(store, now, order.upstream, order.model)


class NotForgotten(Exception):
    """The store did not keep the deletion time, so other processes will not learn of it."""


class Forgotten(msgspec.Struct, frozen=True):
    """The times since which facts are believed, in seconds since 1970."""

    at: float = 0.0
    """Everything learned before this time is forgotten."""
    models: Mapping[str, float] = {}
    """The same for one model at one upstream."""
    memories: float = 0.0
    """When copies in memory were last deleted; includes the memory of single callers."""
    callers: Mapping[str, float] = {}
    """For each key hash, when the caller's records were deleted; ``*`` stands for all callers."""

    def covers(self, model: Model, since: float) -> bool:
        """Return whether a fact of that time is forgotten."""
        return since <= max(self.at, self.models.get(f"{model[0]}\n{model[1]}", 0.0))

    def still_valid(self, model: Model, known: Windows) -> Windows:
        """Return the facts about a model's window without the forgotten ones."""
        stated = tuple(one for one in known.stated if not self.covers(model, one.since))
        if known.largest and self.covers(model, known.largest_since):
            known = replace(known, largest=0, largest_since=0.0, largest_until=0.0)
        return replace(known, stated=stated)


def read(stored: bytes | None, now: float) -> Forgotten:
    """Decode the stored times; an empty value when there is none. Times in the future are ignored: they are not ours, and with
    them nothing would be learned any more."""
    latest = now + MOST_AHEAD_S
    value = values.unpack(
        stored, VERSION, at=values.number(0, latest), memories=values.number(0, latest), models=lambda models: isinstance(models, dict)
    )  # fmt: skip
    if value is None:
        return Forgotten()
    callers = value.get("callers")
    named = callers if isinstance(callers, dict) else {}
    return Forgotten(value["at"], _times(value["models"], latest), value["memories"], _times(named, latest))


def _times(stored: dict[str, Any], latest: float) -> dict[str, float]:
    """Return the times among stored values, without those in the future."""
    return {name: at for name, at in stored.items() if type(at) in (int, float) and at <= latest}


async def forget_caller(store: Store, key_hash: str, now: float) -> int:
    """Delete everything of one caller from the store and, within a second, from all processes. Return the number of
    deleted values."""
    gone = await store.forget(key_hash)
    known = read(await store.get(KIND, KEY), now)
    await _write(store, replace(known, memories=now, callers=_newest({**known.callers, key_hash: now})))
    return gone


async def forget_everything(store: Store, now: float) -> int:
    """Delete everything of all callers, and everything learned about upstreams."""
    gone = await store.forget(None)
    await _write(store, Forgotten(now, {}, now, {EVERY_CALLER: now}))
    return gone


def _newest(callers: Mapping[str, float]) -> dict[str, float]:
    """Return the callers that were forgotten last. Running processes have read the others long ago."""
    return dict(sorted(callers.items(), key=lambda pair: -pair[1])[:MOST_CALLERS])


async def forget_learned(store: Store, now: float, upstream: str = "", model: str = "") -> int:
    """Forget everything learned about one upstream's model, or all; summaries stay. Return how many facts are no longer
    valid."""
    names = await store.names("window", MOST_NAMES) + await store.names("ratio", MOST_NAMES)
    gone = sum(not model or name.startswith(f"{upstream}\n{model}\n") for name in names)
    known = read(await store.get(KIND, KEY), now)
    if not model or len(known.models) >= MOST_MODELS:
        await _write(store, Forgotten(now, {}, now, known.callers))
    else:
        await _write(store, replace(known, models={**known.models, f"{upstream}\n{model}": now}, memories=now))
    return gone


async def _write(store: Store, forgotten: Forgotten) -> None:
    """Tell all processes. Raises NotForgotten when the store does not keep the value."""
    value = values.pack(
        VERSION, at=forgotten.at, models=dict(forgotten.models), memories=forgotten.memories, callers=dict(forgotten.callers)
    )  # fmt: skip
    await store.put(KIND, KEY, value, ttl_s=KEPT_S)
    if await store.get(KIND, KEY) != value:
        raise NotForgotten("the store did not keep the order to forget; running processes keep what they know")


class Watch:
    """Checks once a second whether another process deleted something, and then calls ``on_deletion``."""

    def __init__(self, store: Store, tasks: Tasks, on_deletion: Callable[[Forgotten], None]) -> None:
        self._store = store
        self._tasks = tasks
        self._on_deletion = on_deletion
        self._known: Forgotten | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def start(self) -> None:
        """Start checking."""
        self._tick()

    def close(self) -> None:
        """Stop checking."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    async def check(self) -> None:
        """Check now."""
        stored = await self._store.get(KIND, KEY)
        if stored is None and self._known is not None:
            return  # the store is unreachable or empty: there is no news
        known = read(stored, now())
        if known != self._known:
            first, self._known = self._known is None, known
            if not first or known != Forgotten():
                self._on_deletion(known)

    def _tick(self) -> None:
        if not self._closed:
            self._tasks.start(self.check(), "forgotten")
            self._timer = asyncio.get_running_loop().call_later(EVERY_S, self._tick)


def now() -> float:
    """Return the current time in seconds since 1970."""
    return time.time()
