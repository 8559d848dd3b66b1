"""Wrap stored values with a version and a check that they are our own and undamaged."""

from collections.abc import Callable
from hashlib import blake2b
from typing import Final

import msgspec

PLAIN: Final = b"TF1p"
"""Product, version and method of the wrapping; `gateway.state.store.encryption` has another. Values with another start
are ignored."""

CHECK_BYTES: Final = 8
"""Bytes of the check: by chance, one damaged value in 2^64 is accepted."""


class Sealing(msgspec.Struct, frozen=True):
    """``seal(place, value)`` wraps; ``unseal(place, sealed)`` returns the value, or None for a foreign or damaged one.

    ``place`` is the `place_of` the value in its store. It is bound to the value: under another key the value is foreign.
    """

    seal: Callable[[bytes, bytes], bytes]
    unseal: Callable[[bytes, bytes], bytes | None]


def place_of(kind: str, key: str) -> bytes:
    """Return the place of a value in a store: what kind of value it is, and its key."""
    return f"{kind}\0{key}".encode()


def _check(place: bytes, value: bytes) -> bytes:
    return blake2b(value, digest_size=CHECK_BYTES, key=blake2b(place).digest()).digest()


def _seal_plain(place: bytes, value: bytes) -> bytes:
    return PLAIN + _check(place, value) + value


def _unseal_plain(place: bytes, sealed: bytes) -> bytes | None:
    head, value = sealed[: len(PLAIN) + CHECK_BYTES], sealed[len(PLAIN) + CHECK_BYTES :]
    return value if head == PLAIN + _check(place, value) else None


CHECKED: Final = Sealing(_seal_plain, _unseal_plain)
"""Values stay readable, but damaged and foreign ones are recognised."""
