"""How a value is wrapped before it leaves the process: with a version and a check that it is ours and undamaged."""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

PLAIN: Final = b"TF1p"
"""Product, version of the wrapping, and how it was wrapped; `gateway.state.store.encryption` has another. Whatever starts otherwise is not ours and is ignored."""

CHECK_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class Sealing:
    """``seal(place, value)`` wraps; ``unseal(place, sealed)`` answers the value, or None for anything foreign or damaged.

    ``place`` is bound to the value: one that was moved under another key is foreign there.
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
"""Not secret, but a flipped bit or a foreign value is noticed."""
