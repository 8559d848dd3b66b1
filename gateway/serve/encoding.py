"""Content encodings that the gateway can read along: gzip and deflate, and nothing that needs another dependency."""

import zlib
from typing import Final

from gateway.serve.headers import Headers

ASKED_FOR: Final = frozenset({"gzip", "deflate"})
READ: Final = ASKED_FOR | {"x-gzip"}


def readable_encodings(accept_encoding: str) -> str:
    """Narrow a client's Accept-Encoding to what the gateway can read along: gzip, deflate, or nothing at all.

    A refusal must be readable for a retry, and brotli or zstd would need another dependency each.
    """
    offered = (token.strip() for token in accept_encoding.lower().split(","))
    kept = [token for token in offered if token.split(";")[0].strip() in ASKED_FOR]
    return ", ".join(kept) or "identity"


def inflater(headers: Headers) -> "zlib._Decompress | None":
    """What decodes a body with these headers; None where it is not encoded, or in a way we cannot read."""
    if headers.get("Content-Encoding", "identity").lower() not in READ:
        return None
    return zlib.decompressobj(wbits=47)  # 47: gzip or zlib, told by the header
