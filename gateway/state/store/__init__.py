"""The store for derived values that outlive a request: one protocol, three implementations.

- `base`: what a store does. `memory`, `sqlite`, `redis`: three stores.
- `wal_index`: a part of SQLite's files that must not become shorter.
- `guard`: time limits around any of them. `reason`: why one failed. `sealing`, `encryption`: how values are protected. `values`: their form.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

from gateway.state.store import memory
from gateway.state.store.base import Store
from gateway.state.store.guard import READ_TIMEOUT_S, GuardedStore
from gateway.state.store.memory import MemoryStore
from gateway.state.store.sealing import CHECKED, Sealing

__all__ = ["REDIS_SCHEMES", "Store", "open_store", "reach", "sealing_of"]

REDIS_SCHEMES: Final = ("redis", "rediss", "valkey", "valkeys", "unix")
REACH_S: Final = 2.0
"""Seconds that `turnfold check` waits for a server. Chosen: longer than a busy one takes, short for a person."""


def open_store(
    url: str,
    *,
    encryption_key: str = "",
    max_bytes: int | None = None,
    failed: Callable[[str, str], None] = lambda operation, reason: None,
    timeout_s: float = READ_TIMEOUT_S,
) -> Store:
    """Open the store of a configuration URL: ``memory://``, ``sqlite:///path`` or ``redis://host:6379/0``.

    Nothing is opened before the first use, so an unreachable store does not keep the gateway from starting. An unusable
    URL or key raises ValueError with a message for the author of the configuration. ``timeout_s`` is the longest time a
    request waits for the store. ``failed`` is called with each failed operation and its reason (for metrics).
    ``max_bytes`` bounds memory and SQLite stores.
    """
    scheme, separator, rest = url.partition("://")
    sealing = sealing_of(encryption_key)

    def guarded(store: Store) -> Store:
        return GuardedStore(store, sealing=sealing, failed=failed, timeout_s=timeout_s)

    if separator and scheme == "memory":
        return MemoryStore(max_bytes=max_bytes or memory.DEFAULT_MAX_BYTES)
    if separator and scheme == "sqlite":
        # By convention sqlite:///file is relative and sqlite:////var/lib/file absolute.
        host, slash, path = rest.partition("/")
        if host or not slash or not path or path == ":memory:":
            raise ValueError(f"store.url: {url!r} names no file: write sqlite:///turnfold.db, or memory:// for none")
        from gateway.state.store import sqlite  # noqa: PLC0415 - 1 MB that no other store needs

        return guarded(sqlite.SqliteStore(Path(path), max_bytes=max_bytes or sqlite.DEFAULT_MAX_BYTES))
    if separator and scheme in REDIS_SCHEMES:
        return guarded(_redis(url.replace("valkey", "redis", 1)))
    # The URL may contain a password: show only its scheme.
    raise ValueError(f"store.url: {scheme!r} is not one of memory://, sqlite:///path, redis://host:port/db")


def sealing_of(encryption_key: str) -> Sealing:
    """Return how values are wrapped: encrypted with a key, else only checked. Raises ValueError for an unusable key."""
    return _encrypted(encryption_key) if encryption_key else CHECKED


def _redis(url: str) -> Store:
    try:
        from gateway.state.store.redis import RedisStore  # noqa: PLC0415 - optional: imported when it is used
    except ImportError as error:
        raise ValueError("store.url: Redis needs the package redis: pip install 'turnfold[redis]'") from error
    return RedisStore(url)


async def reach(url: str) -> str:
    """Ask the server of a Redis URL for a sign of life; return why none came, or an empty text. Raises ValueError without its package."""
    store = _redis(url.replace("valkey", "redis", 1))
    try:
        async with asyncio.timeout(REACH_S):
            await store.get("reach", "")
    except Exception as error:  # noqa: BLE001 - a driver raises what it likes, and its text may quote the password
        return type(error).__name__
    finally:
        await store.close()
    return ""


def _encrypted(keys: str) -> Sealing:
    try:
        from gateway.state.store.encryption import encrypted  # noqa: PLC0415 - optional: imported when it is used
    except ImportError as error:
        raise ValueError(
            "store.encryption_key: encryption needs the package cryptography: pip install 'turnfold[encryption]'"
        ) from error
    return encrypted(keys)
