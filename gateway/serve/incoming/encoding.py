"""Content encodings that the gateway can read: gzip and deflate, which need no further dependency."""

import zlib
from functools import lru_cache
from typing import Final

from gateway.serve.incoming.headers import Headers

ASKED_FOR: Final = frozenset({"gzip", "deflate"})
READ: Final = ASKED_FOR | {"x-gzip"}
KEPT: Final = 64
"""Values of Accept-Encoding whose readable part is remembered, a number: each client library has one of its own."""


@lru_cache(maxsize=KEPT)
def readable_encodings(accept_encoding: str) -> str:
    """Reduce a client's Accept-Encoding to encodings that the gateway can read: gzip, deflate, or none.

    A refusal must be readable for a retry, and brotli or zstd would need another dependency each.
    """
    offered = (token.strip() for token in accept_encoding.lower().split(","))
    kept = [token for token in offered if token.split(";")[0].strip() in ASKED_FOR]
    return ", ".join(kept) or "identity"


def inflater(headers: Headers) -> "zlib._Decompress | None":
    """Return a decoder for a body with these headers; None when it is not encoded, or in an unknown way."""
    if headers.get("Content-Encoding", "identity").lower() not in READ:
        return None
    return zlib.decompressobj(wbits=47)  # 47: gzip or zlib, detected by the header
