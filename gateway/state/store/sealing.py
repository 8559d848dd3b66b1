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

    ``place`` is bound to the value: a value moved to another key is foreign there.
    """

    seal: Callable[[bytes, bytes], bytes]
    unseal: Callable[[bytes, bytes], bytes | None]


def _check(place: bytes, value: bytes) -> bytes:
    return blake2b(value, digest_size=CHECK_BYTES, key=blake2b(place).digest()).digest()


def _seal_plain(place: bytes, value: bytes) -> bytes:
    return PLAIN + _check(place, value) + value


def _unseal_plain(place: bytes, sealed: bytes) -> bytes | None:
    head, value = sealed[: len(PLAIN) + CHECK_BYTES], sealed[len(PLAIN) + CHECK_BYTES :]
    return value if head == PLAIN + _check(place, value) else None


CHECKED: Final = Sealing(_seal_plain, _unseal_plain)
"""Not secret, but it detects flipped bits and foreign values."""
