"""What a store is: a small, bounded, expiring place for derived values that are safe to lose."""

from collections.abc import Sequence
from typing import Final, Protocol

KINDS: Final = ("summary", "window", "guess", "ratio", "usage", "forgotten", "job")
"""All that is ever stored. ``job`` is a claim on background work, so that one replica does it; ``forgotten`` says since when facts are believed."""


class Store(Protocol):
    """Derived values by (kind, key). Values are opaque bytes that carry their own version.

    No method but `forget` raises for a store that is slow, full, locked, read-only, corrupt or gone: reads answer None, writes are dropped, and
    the failure is counted and logged. Nothing here is worth a failed request (promise 6). ``scope`` is a hash of
    the caller's credentials and upstream ("" for facts about an upstream); `forget` deletes by it.
    """

    async def get(self, kind: str, key: str) -> bytes | None: ...

    async def get_many(self, kind: str, keys: Sequence[str]) -> dict[str, bytes]:
        """Read several values in one go; those that are missing are left out of the answer."""
        ...

    async def names(self, kind: str, most: int) -> list[str]:
        """The keys of at most so many values of one kind, for operators: no request waits for it."""
        ...

    async def put(self, kind: str, key: str, value: bytes, *, ttl_s: float, scope: str = "") -> None: ...

    async def claim(self, key: str, *, ttl_s: float) -> bool:
        """Take a job that nobody holds; True for exactly one caller until it is released or expires."""
        ...

    async def release(self, key: str) -> None: ...

    async def forget(self, scope: str | None) -> int:
        """Delete everything of one scope or key hash, or everything (None); answer how many values went.

        The one method that raises: a person asked, and must know whether it worked.
        """
        ...

    async def close(self) -> None: ...
