"""The address of a client: of its connection, or as the proxies say that the operator trusts.

Every client can write the headers `x-forwarded-for` and `forwarded`, so they are read only when the connection comes from a
trusted proxy. Each proxy appends the address that it saw, so the list is read from the right: the first address that
is no trusted proxy is the client's. What stands left of it is the client's own claim, and is never read.
"""

import asyncio
import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Final

import msgspec
from multidict import CIMultiDict, CIMultiDictProxy

from gateway.config.locations import UNIX, Network

Headers = CIMultiDict[str] | CIMultiDictProxy[str]

MOST_HOPS: Final = 32
"""Proxies in one chain that are followed, a number; real chains have one to four."""
KEPT: Final = 1024
"""Addresses whose parsed form is remembered, a number: those of proxies and busy clients."""
FOR: Final = re.compile(r"""(?:^|;)\s*for\s*=\s*("[^"]*"|[^\s;"]*)""", re.IGNORECASE)
"""The client in one element of `forwarded`: https://www.rfc-editor.org/rfc/rfc7239#section-4."""
ELEMENTS: Final = re.compile(r"""(?:[^,"]|"[^"]*")+""")
"""The elements of `forwarded`, between commas that are not quoted."""


class Proxies(msgspec.Struct, frozen=True):
    """The proxies whose word about a client's address is taken."""

    networks: tuple[Network, ...] = ()
    """Networks of trusted proxies; `unix` stands for the Unix socket."""

    def client(self, peer: str, headers: Headers) -> str:
        """Return the client's address; ``peer`` is the other end of the connection, "" on a Unix socket.

        Where `x-forwarded-for` and `forwarded` name different clients, one of them was not written by the proxy:
        the proxy's own address is then the only one that is sure.
        """
        if not self.networks or not within(peer, self.networks):
            return peer
        found = {self._first_stranger(peer, read(headers.getall(name))) for name, read in LISTS if name in headers}
        return found.pop() if len(found) == 1 else peer

    def _first_stranger(self, peer: str, hops: Iterable[str]) -> str:
        """Return the last address in the chain that is no trusted proxy; the farthest known one if all are."""
        last = peer
        for _, hop in zip(range(MOST_HOPS), hops, strict=False):
            address = written(hop)
            if not address:
                return last
            last = address
            if not within(address, self.networks):
                return last
        return last


def within(address: str, networks: tuple[Network, ...]) -> bool:
    """Return whether an address is in one of the networks; "" is the Unix socket."""
    parsed = _parsed(address)
    if parsed is None:
        return UNIX in networks and not address
    return any(parsed in network for network in networks if network != UNIX)


def peer_of(transport: asyncio.BaseTransport | None) -> str:
    """Return the address at the other end of a connection; "" on a Unix socket, or when the other end has gone."""
    name = transport.get_extra_info("peername") if transport is not None else None
    return written(name[0]) if isinstance(name, tuple) and name else ""


@lru_cache(maxsize=KEPT)
def written(hop: str) -> str:
    """Return an address without quotes, brackets, port and zone, in its usual spelling; "" if it is none."""
    found = hop.strip().strip('"')
    if found.startswith("["):
        found = found[1:].partition("]")[0]
    elif found.count(":") == 1:
        found = found.partition(":")[0]
    parsed = _parsed(found)
    return str(parsed) if parsed else ""


@lru_cache(maxsize=KEPT)
def _parsed(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _from_the_right(values: Iterable[str]) -> Iterator[str]:
    """Yield the addresses of `x-forwarded-for`, the newest first."""
    for value in reversed(list(values)):
        yield from reversed(value.split(","))


def _forwarded_from_the_right(values: Iterable[str]) -> Iterator[str]:
    """Yield the addresses of `forwarded`, the newest first; "" for an element that names none."""
    for value in reversed(list(values)):
        for element in reversed(ELEMENTS.findall(value)):
            named = FOR.search(element)
            yield named[1] if named else ""


LISTS: Final[tuple[tuple[str, Callable[[list[str]], Iterator[str]]], ...]] = (
    ("X-Forwarded-For", _from_the_right),
    ("Forwarded", _forwarded_from_the_right),
)
"""The headers in which proxies say for whom they ask, and how each is read."""
