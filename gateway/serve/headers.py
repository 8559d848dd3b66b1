"""HTTP headers: which are forwarded, which end at the gateway, which the gateway adds."""

from collections.abc import Collection
from functools import lru_cache
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
    """Return the client's headers for the upstream: all except hop-by-hop headers and our own."""
    dropped = _named_by_connection(headers)
    pairs = [pair for pair in headers.items() if _goes_up(pair[0])]
    return CIMultiDict([pair for pair in pairs if pair[0].lower() not in dropped] if dropped else pairs)


def returned(headers: Headers) -> CIMultiDict[str]:
    """Return the upstream's headers for the client: all except hop-by-hop headers and any in our name."""
    dropped = _named_by_connection(headers)
    pairs = [pair for pair in headers.items() if _goes_down(pair[0])]
    if dropped:
        pairs = [pair for pair in pairs if pair[0].lower() not in dropped]
    if not "".join([value for _, value in pairs]).isprintable():
        pairs = [(name, clean(value)) for name, value in pairs]
    return CIMultiDict(pairs)


def clean(text: str) -> str:
    """Return a header's value or a reason phrase without control characters, which are forbidden (RFC 9110 section
    5.5)."""
    return (
        text
        if text.isprintable()
        else "".join(each for each in text if each == "\t" or (each >= " " and each != "\x7f"))
    )


# The same few names come with every request; a thousand more, invented by a client, do no harm.
@lru_cache(maxsize=1024)
def _goes_up(name: str) -> bool:
    return (lower := name.lower()) not in _NOT_FORWARDED and not lower.startswith(OURS)


@lru_cache(maxsize=1024)
def _goes_down(name: str) -> bool:
    return (lower := name.lower()) not in HOP_BY_HOP and not lower.startswith(OURS)


def _named_by_connection(headers: Headers) -> Collection[str]:
    values = headers.getall("Connection", ())
    if not values or (len(values) == 1 and values[0].lower() in _USUAL):
        return ()
    return {token.strip().lower() for value in values for token in value.split(",")}


_USUAL: Final = frozenset({"keep-alive", "close"})
