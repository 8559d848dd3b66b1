"""Open connections to upstreams: resolve the name, try its addresses shortly one after the other, and do TLS."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from aiohappyeyeballs import AddrInfoType, start_connection

from gateway.upstream.response import CertificateRefused, NameUnknown, TlsFailed, not_connected

NEXT_ADDRESS_S: Final = 0.25
"""Seconds after which the next address is tried as well (RFC 8305 section 5)."""
ADDRESSES_KEPT_S: Final = 60.0
"""Seconds for which the addresses of a name are cached. Chosen: connections often open at the same time, and a moved service is found within a minute."""

Address = tuple[str, int]
"""A host and a port."""
Made = TypeVar("Made", bound=asyncio.Protocol)


class Resolved(NamedTuple):
    """The addresses of a name."""

    until: float
    addresses: list[AddrInfoType]


class Dial:
    """Opens connections. The addresses of names are cached, one entry for each configured upstream."""

    def __init__(self) -> None:
        self._resolved: dict[Address, Resolved] = {}

    async def open(
        self, make: Callable[[], Made], address: Address, tls: ssl.SSLContext | None, limit_s: float | None
    ) -> Made:
        """Return a connected protocol. Raises AskFailed, or TimeoutError after ``limit_s`` seconds."""
        async with asyncio.timeout(limit_s):
            addresses = await self._find_addresses(address)
            try:
                sock = await start_connection(addresses, happy_eyeballs_delay=NEXT_ADDRESS_S, interleave=1)
            except OSError as error:
                self._resolved.pop(address, None)
                raise not_connected(error) from error
            try:
                return await _start_protocol(make, sock, address[0], tls)
            except BaseException:
                sock.close()
                raise

    async def _find_addresses(self, address: Address) -> list[AddrInfoType]:
        """Return the cached addresses of a name, or resolve it. Raises NameUnknown."""
        loop = asyncio.get_running_loop()
        known = self._resolved.get(address)
        if known is None or known.until < loop.time():
            try:
                found = await loop.getaddrinfo(*address, type=socket.SOCK_STREAM)
            except OSError as error:
                raise NameUnknown from error
            known = self._resolved[address] = Resolved(loop.time() + ADDRESSES_KEPT_S, list(found))
        return known.addresses


async def _start_protocol(make: Callable[[], Made], sock: socket.socket, host: str, tls: ssl.SSLContext | None) -> Made:
    """Return a protocol on a connected socket, after the TLS handshake if there is one."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    name = host.rstrip(".") if tls is not None else None
    loop = asyncio.get_running_loop()
    try:
        _, protocol = await loop.create_connection(make, sock=sock, ssl=tls, server_hostname=name)
    except ssl.SSLCertVerificationError as error:
        raise CertificateRefused from error
    except TimeoutError:
        raise
    except OSError as error:
        raise (not_connected(error) if tls is None else TlsFailed()) from error
    return protocol
