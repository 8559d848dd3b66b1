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
    """``seal(name, value)`` wraps; ``unseal(name, sealed)`` returns the value, or None for a foreign or damaged one.

    ``name`` is the value's `stored_name`. It is bound to the value: under another name the value is foreign.
    """

    seal: Callable[[bytes, bytes], bytes]
    unseal: Callable[[bytes, bytes], bytes | None]


def stored_name(kind: str, key: str) -> bytes:
    """Return the name of a value in a store: its kind and its key."""
    return f"{kind}\0{key}".encode()


def _check(name: bytes, value: bytes) -> bytes:
    return blake2b(value, digest_size=CHECK_BYTES, key=blake2b(name).digest()).digest()


def _seal_plain(name: bytes, value: bytes) -> bytes:
    return PLAIN + _check(name, value) + value


def _unseal_plain(name: bytes, sealed: bytes) -> bytes | None:
    head, value = sealed[: len(PLAIN) + CHECK_BYTES], sealed[len(PLAIN) + CHECK_BYTES :]
    return value if head == PLAIN + _check(name, value) else None


CHECKED: Final = Sealing(_seal_plain, _unseal_plain)
"""Values stay readable, but damaged and foreign ones are recognised."""
