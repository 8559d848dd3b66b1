"""HTTP headers on their way through: which travel on, which end at the gateway, which the gateway adds."""

from collections.abc import Iterable
from typing import Final

from multidict import CIMultiDict, CIMultiDictProxy

# RFC 9110 section 7.6.1, and those that describe one connection's framing.
HOP_BY_HOP: Final = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_NOT_FORWARDED: Final = HOP_BY_HOP | {"host", "content-length", "expect"}
OURS: Final = "x-turnfold-"

Headers = CIMultiDict[str] | CIMultiDictProxy[str]


def forwarded(headers: Headers) -> CIMultiDict[str]:
    """The client's headers as the upstream gets them: all but hop-by-hop ones and our own."""
    dropped = _named_by_connection(headers)
    return CIMultiDict(
        (name, value)
        for name, value in headers.items()
        if (lower := name.lower()) not in _NOT_FORWARDED and lower not in dropped and not lower.startswith(OURS)
    )


def returned(headers: Headers) -> CIMultiDict[str]:
    """The upstream's headers as the client gets them: all but hop-by-hop ones, and none that claims to be ours."""
    dropped = _named_by_connection(headers)
    return CIMultiDict(
        (name, value)
        for name, value in headers.items()
        if (lower := name.lower()) not in HOP_BY_HOP and lower not in dropped and not lower.startswith(OURS)
    )


def readable_encodings(accept_encoding: str) -> str:
    """Narrow a client's Accept-Encoding to what the gateway can read along: gzip, deflate, or nothing at all.

    A refusal must be readable for a retry, and brotli or zstd would need another dependency each.
    """
    offered = (token.strip() for token in accept_encoding.lower().split(","))
    kept = [token for token in offered if token.split(";")[0].strip() in ("gzip", "deflate")]
    return ", ".join(kept) or "identity"


def _named_by_connection(headers: Headers) -> Iterable[str]:
    if "connection" not in headers:
        return ()
    return {token.strip().lower() for value in headers.getall("connection") for token in value.split(",")}
