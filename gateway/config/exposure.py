"""Detect dangerous configurations: a public port with a key behind it, or an upstream that is the gateway itself."""

import ipaddress
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from gateway.config.values import Settings, Upstream
from providers.registry import find

EVERY_ADDRESS: Final = frozenset({"0.0.0.0", "::", ""})
"""A port bound to one of these is reachable at every address of the machine."""
SECRET_WORDS: Final = ("auth", "cookie", "key", "password", "secret", "token")
"""Parts of names of headers whose values are credentials: x-portkey-api-key, cf-access-client-secret, cookie."""
DEFAULT_PORTS: Final = {"http": 80, "https": 443}

Problem = tuple[str, str]
"""The path of a key, and its problem."""


def dangers(settings: Settings) -> list[Problem]:
    """Return the reasons not to serve, as ``(path, problem)``."""
    return [*_open_keys(settings), *_loops(settings)]


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


def leads_to(url: str, host: str, port: int) -> bool:
    """Return whether a URL names the address that ``host`` and ``port`` are bound to. Names are not resolved."""
    try:
        parts = urlsplit(url)
        there, port_there = (parts.hostname or "").lower(), parts.port or DEFAULT_PORTS.get(parts.scheme)
    except ValueError:
        return False
    if port_there != port:
        return False
    here = host.strip("[]").lower()
    if there == here or there in EVERY_ADDRESS:
        return True
    return is_loopback(there) and (here in EVERY_ADDRESS or is_loopback(here))


@lru_cache(maxsize=64)  # the addresses of the configuration; every request asks for one
def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return host.lower() == "localhost"
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback
