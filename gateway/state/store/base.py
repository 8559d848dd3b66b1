"""The store protocol: a small, bounded, expiring place for derived values that may be lost at any time.

The kinds of values: ``summary``, ``window``, ``guess``, ``ratio``, ``usage``, ``id`` (known at an upstream), and
``forgotten``, the time since which facts are valid. Besides these, ``job`` is a claim on background work for one replica, and ``count`` a number that all processes add to.
"""

from collections.abc import Sequence
from typing import Protocol


class Store(Protocol):
    """Derived values by (kind, key). Values are opaque bytes that carry their own version.

    Only `forget` raises when the store is slow, full, locked, read-only, corrupt or gone. Other reads return None,
    writes are dropped, and the failure is counted and logged: no value here is worth a failed request (promise 6).
    ``scope`` is a hash of the caller's credentials and upstream ("" for facts about an upstream); `forget` deletes by
    scope.
    """

    async def get(self, kind: str, key: str) -> bytes | None: ...

    async def get_many(self, kind: str, keys: Sequence[str]) -> dict[str, bytes]:
        """Read several values at once; missing values are left out of the result."""
        ...

    async def names(self, kind: str, most: int) -> list[str]:
        """Return the keys of at most ``most`` values of one kind, for operators; no request waits for it."""
        ...

    async def put(self, kind: str, key: str, value: bytes, *, ttl_s: float, scope: str = "") -> None: ...

    async def claim(self, key: str, *, ttl_s: float) -> bool:
        """Claim a job that has no owner; True for exactly one caller until the claim is released or expires."""
        ...

    async def release(self, key: str) -> None: ...

    async def add(self, key: str, amount: int, *, ttl_s: float) -> int | None:
        """Add to a number that begins at 0 and is gone ``ttl_s`` after it began, in one step; return the sum.

        None where the store does not work: then nothing is known of the others.
        """
        ...

    async def forget(self, scope: str | None) -> int:
        """Delete everything of one scope or key hash, or everything (None); return how many values were deleted.

        Everything includes claims and counts: a running job may be done twice, and rates begin anew. They are no values, so the
        result does not count them. This method raises: an operator requested it and must know whether it worked.
        """
        ...

    async def close(self) -> None: ...
