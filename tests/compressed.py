"""Encodings of bodies that the gateway reads, and how a client or a server writes them."""

import gzip
import zlib
from collections.abc import Callable
from typing import Final

from gateway.serve.incoming.encoding import zstd


def _gzip(body: bytes) -> bytes:
    return gzip.compress(body, mtime=0)


def _zstd(body: bytes) -> bytes:
    return zstd.compress(body)


PACK: Final[dict[str, Callable[[bytes], bytes]]] = {"gzip": _gzip, "deflate": zlib.compress, "zstd": _zstd}
"""For each name in `Content-Encoding`, what compresses a body."""


def zstd_with_window(body: bytes, power: int) -> bytes:
    """Compress a body so that its decoder needs two to the ``power`` bytes of memory."""
    options: dict[int, int] = {zstd.CompressionParameter.window_log: power}
    packer = zstd.ZstdCompressor(options=options)
    return packer.compress(body) + packer.flush()
