"""Detect configurations that must not be served: an open admin port, a public port with a key behind it, an upstream that is the gateway itself,
or ports that cannot be bound together."""

import ipaddress
import re
import unicodedata
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from gateway.config.settings import Settings
from gateway.config.values import Upstream
from providers.registry import find

SECRET_WORDS: Final = ("auth", "cookie", "key", "password", "secret", "token")
"""Parts of names of headers whose values are credentials: x-portkey-api-key, cf-access-client-secret, cookie."""
_NUMERIC: Final = re.compile(r"[0-9a-fx.]+", re.IGNORECASE)
"""Characters of an IPv4 address in any form that `inet_aton` reads: one to four numbers, decimal, octal or hexadecimal."""
ENDPOINT: Final = re.compile(r"/(?:chat/completions|completions|responses|messages|embeddings|models)\Z")
"""Endpoints that documentation of APIs shows in full; a base URL ends before them."""
DEFAULT_PORTS: Final = {"http": 80, "https": 443}
HIGHEST_PORT: Final = 2**16 - 1
"""Ports have 16 bits (RFC 9293 section 3.1)."""

Problem = tuple[str, str]
"""The path of a key, and its problem."""


def dangers(settings: Settings) -> list[Problem]:
    """Return the reasons not to serve, as ``(path, problem)``."""
    return [*_shared_ports(settings), *_open_admin_port(settings), *_open_keys(settings), *_loops(settings)]


def _shared_ports(settings: Settings) -> list[Problem]:
    """Find admin ports that are the client port, or no ports. Worker n has the admin port + n."""
    port, first, workers = settings.server.port, settings.admin.port, settings.server.workers
    last = first + workers - 1
    if not first or (last <= HIGHEST_PORT and not first <= port <= last):
        return []
    if workers == 1:
        return [("admin.port", f"is also server.port ({port})")]
    reason = f"the highest port is {HIGHEST_PORT}" if last > HIGHEST_PORT else f"server.port ({port}) is one of them"
    return [("admin.port", f"is {first} to {last}, one for each of {workers} workers, and {reason}")]


def _open_admin_port(settings: Settings) -> list[Problem]:
    admin = settings.admin
    if admin.token or is_loopback(admin.host):
        return []
    return [("admin.token", "is required, because admin.host is not a loopback address")]


def _open_keys(settings: Settings) -> list[Problem]:
    server = settings.server
    keyed = sorted(name for name, upstream in settings.upstreams.items() if _is_spent(upstream))
    if not keyed or server.open or settings.asks_for_keys or is_loopback(server.host):
        return []
    return [
        (
            "server.open",
            f"must be true to serve on {server.host}: that is not a loopback address, and whoever reaches port {server.port} would "
            f"spend the configured key of upstreams {', '.join(keyed)}. Hand out client keys (server.keys_file, "
            "`turnfold keys add NAME`), bind 127.0.0.1, leave api_key out so that clients bring their own, or set open: true where a "
            "firewall or a proxy keeps strangers away",
        )
    ]


def has_key(upstream: Upstream) -> bool:
    """Return whether requests to an upstream carry a configured credential."""
    credentials = {name.lower() for name in find(upstream.provider).credential_headers} if upstream.provider else set()
    return bool(upstream.api_key) or any(name.lower() in credentials for name in upstream.headers)


def _is_spent(upstream: Upstream) -> bool:
    """Return whether requests to an upstream carry anything that looks like a credential of the operator's."""
    looks_secret = any(word in name.lower() for name in upstream.headers for word in SECRET_WORDS)
    return has_key(upstream) or bool(upstream.client_cert) or looks_secret


def _loops(settings: Settings) -> list[Problem]:
    server, admin = settings.server, settings.admin
    return [
        (
            f"upstreams.{name}.base_url",
            f"is this gateway itself ({server.host}:{server.port}); every request would go round in a circle",
        )
        for name, upstream in settings.upstreams.items()
        if (server.port and leads_to(upstream.base_url, server.host, server.port))
        or (admin.port and leads_to(upstream.base_url, admin.host, admin.port))
    ]


def endpoint_in(base_url: str) -> str:
    """Return the endpoint of an API in which a base URL ends, such as ``/chat/completions``; empty without one."""
    found = ENDPOINT.search(urlsplit(base_url).path.rstrip("/"))
    return found[0] if found else ""


def leads_to(url: str, host: str, port: int) -> bool:
    """Return whether a URL names the address that ``host`` and ``port`` are bound to. Names are not resolved."""
    try:
        parts = urlsplit(url)
        there, port_there = (
            unicodedata.normalize("NFKC", parts.hostname or "").lower(),
            parts.port or DEFAULT_PORTS.get(parts.scheme),
        )
    except ValueError:
        return False
    if port_there != port:
        return False
    here = host.strip("[]").lower()
    if there.rstrip(".") == here.rstrip(".") or _is_every_address(there):
        return True
    if address_of(there) is not None and address_of(there) == address_of(here):
        return True
    return is_loopback(there) and (_is_every_address(here) or is_loopback(here))


def address_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address that a host is; None for a name. ``127.1``, ``0x7f000001`` and ``2130706433`` are addresses to resolvers, too."""
    written = host.strip("[]")
    try:
        address = ipaddress.ip_address(written.partition("%")[0])
    except ValueError:
        return _of_numbers(written) if _NUMERIC.fullmatch(written) else None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _of_numbers(written: str) -> ipaddress.IPv4Address | None:
    """Return the address that `inet_aton` reads: 127.1 and 0x7f000001 are 127.0.0.1."""
    import socket  # noqa: PLC0415 - hardly ever needed, and nothing else of the library brings it in

    try:
        return ipaddress.IPv4Address(socket.inet_aton(written))
    except OSError:
        return None


def _is_every_address(host: str) -> bool:
    """Return whether a port bound to this host is reachable at every address of the machine."""
    address = address_of(host)
    return not host or (address is not None and address.is_unspecified)


@lru_cache(maxsize=64)  # the addresses of the configuration; every request asks for one
def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    address = address_of(host)
    return address.is_loopback if address is not None else host.lower().rstrip(".") == "localhost"
