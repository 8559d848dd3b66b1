"""Content encodings that the gateway can read: gzip and deflate, which need no further dependency."""

import zlib
from functools import lru_cache
from typing import Final

from gateway.serve.incoming.headers import Headers

ASKED_FOR: Final = frozenset({"gzip", "deflate"})
READ: Final = ASKED_FOR | {"x-gzip"}
CODINGS: Final = READ | {"aes128gcm", "br", "compress", "dcb", "dcz", "exi", "pack200-gzip", "x-compress", "zstd"}
"""All encodings that a server may know (https://www.iana.org/assignments/http-parameters). Some clients write others by mistake, such as ``utf-8``."""
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
    found = _codings(headers)
    if len(found) != 1 or found[0] not in READ:
        return None
    return zlib.decompressobj(wbits=47)  # 47: gzip or zlib, detected by the header


def is_unreadable(headers: Headers) -> bool:
    """Return whether a body is encoded in a way that only a server may read, so that its bytes do not say what the server reads."""
    return bool(found := _codings(headers)) and (len(found) > 1 or found[0] not in READ)


def _codings(headers: Headers) -> list[str]:
    """Return the encodings of a body in their order. A header may stand twice, and some list ``identity``, which is none."""
    values = headers.getall("Content-Encoding", ())
    return [name for value in values for each in value.split(",") if (name := each.strip().lower()) in CODINGS]
