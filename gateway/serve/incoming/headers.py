"""HTTP headers: which are forwarded, which end at the gateway, which the gateway adds."""

from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Final

from aiohttp import hdrs
from multidict import CIMultiDict, CIMultiDictProxy, istr

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
REQUEST_ID: Final = istr("x-turnfold-request-id")
ACTION: Final = istr("x-turnfold-action")
WHY: Final = istr("x-turnfold-why")
WINDOW: Final = istr("x-turnfold-window")
TOKENS_BEFORE: Final = istr("x-turnfold-tokens-before")
TOKENS_AFTER: Final = istr("x-turnfold-tokens-after")
TURNS_FOLDED: Final = istr("x-turnfold-turns-folded")
ATTEMPTS: Final = istr("x-turnfold-attempts")
WARNING: Final = istr("x-turnfold-warning")
KEPT: Final = 64
"""Lists of header names for which it is remembered which end here, a number. A client sends the same list each time; 8 MB if
clients invent as many as they can."""
USUAL_HEADERS: Final = 40
"""Headers up to which that is remembered, a number. Chosen: requests of libraries have 10 to 25."""

Headers = CIMultiDict[str] | CIMultiDictProxy[str]


def forwarded(headers: Headers) -> CIMultiDict[str]:
    """Return the client's headers for the upstream: all except hop-by-hop headers and our own."""
    return _without(headers, _not_forwarded)


def returned(headers: Headers) -> CIMultiDict[str]:
    """Return the upstream's headers for the client: all except hop-by-hop headers and any in our name."""
    found = _without(headers, _not_returned)
    if not "".join(found.values()).isprintable():
        return CIMultiDict([(name, clean(value)) for name, value in found.items()])
    return found


def _without(headers: Headers, ends_here: Callable[[str], bool]) -> CIMultiDict[str]:
    """Return a copy without the headers that end here. Copying all and removing a few is several times as fast as choosing."""
    names = tuple(headers)
    ending = _usually_ending(names, ends_here) if len(names) <= USUAL_HEADERS else _ending(names, ends_here)
    found = CIMultiDict(headers)
    for name in (*ending, *_named_by_connection(headers)):
        found.popall(name, None)
    return found


def _ending(names: tuple[str, ...], ends_here: Callable[[str], bool]) -> tuple[str, ...]:
    return tuple({name for name in names if ends_here(name.lower())})


_usually_ending: Final = lru_cache(maxsize=KEPT)(_ending)


def clean(text: str) -> str:
    """Return a header's value or a reason phrase without control characters, which are forbidden (RFC 9110 section
    5.5)."""
    return (
        text
        if text.isprintable()
        else "".join(each for each in text if each == "\t" or (each >= " " and each != "\x7f"))
    )


def _not_forwarded(name: str) -> bool:
    return name in _NOT_FORWARDED or name.startswith(OURS)


def _not_returned(name: str) -> bool:
    return name in HOP_BY_HOP or name.startswith(OURS)


def _named_by_connection(headers: Headers) -> Collection[str]:
    values = headers.getall(hdrs.CONNECTION, ())
    if not values or (len(values) == 1 and values[0].lower() in _USUAL):
        return ()
    return {token.strip().lower() for value in values for token in value.split(",")} - _ABOUT_BODY


_USUAL: Final = frozenset({"keep-alive", "close"})
_ABOUT_BODY: Final = frozenset({"content-type", "content-encoding"})
"""Headers that say how a body is read. They travel on, also if a client names them as those of one connection: else the upstream would read the
body in another way than the gateway."""
