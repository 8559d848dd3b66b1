"""Readers of values that say where something is: a URL, a host, a network, a path."""

import re
from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final, Literal
from urllib.parse import urlsplit

from gateway.config.document import Node, WrongValue
from gateway.config.readers import Reader, name

STORES: Final = {
    "memory": False,
    "sqlite": True,
    "redis": True,
    "rediss": True,
    "valkey": True,
    "valkeys": True,
    "unix": True,
}
"""Schemes of stores, and whether a location follows."""
UNIX: Final = "unix"
"""Stands for the Unix socket among networks."""
HOST: Final = re.compile(r"\*|(?:\*\.)?[^\s/:*@\[\]]+")
"""A name of a host, ``*.`` and such a name, or ``*``."""
BASE_PATH: Final = re.compile(r"(?:/[A-Za-z0-9._~-]+)*\Z")
Network = IPv4Network | IPv6Network | Literal["unix"]


def url(*schemes: str) -> Reader:
    """Return a reader of URLs with one of the schemes and a host, without a slash at the end."""

    def read(node: Node) -> str:
        return checked_url(node.text(), schemes, hint=node.is_literal)

    return read


def checked_url(written: str, schemes: Sequence[str] = ("http", "https"), *, hint: bool = True) -> str:
    """Return a URL without a final slash; raise `WrongValue` when its scheme is another one or it has no host.

    ``hint`` lets the message repeat the value with a scheme before it; a password is never repeated.
    """
    found = written.strip().rstrip("/")
    if _is_url(found, schemes):
        return found
    nearest_url = f"{_likely_scheme(found, schemes)}://{found}"
    near = hint and "@" not in found and "://" not in written and _is_url(nearest_url, schemes)
    raise WrongValue(
        f"a URL that begins with {' or '.join(scheme + '://' for scheme in schemes)} and names a host"
        + (f"; did you mean {nearest_url}?" if near else "")
    )


def _likely_scheme(host: str, schemes: Sequence[str]) -> str:
    """Return the scheme that is probably meant: https for a public name, the first one for an address, a short name and other kinds."""
    name = host.partition("/")[0].partition(":")[0]
    public = "." in name and not name.replace(".", "").isdigit() and not name.endswith((".local", ".internal", ".lan"))
    return "https" if public and "https" in schemes else schemes[0]


def _is_url(text: str, schemes: Sequence[str]) -> bool:
    try:
        parts = urlsplit(text)
        known = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
        (parts.hostname or "").encode("idna")  # as every look-up of a name does
    except ValueError:  # also a UnicodeError, of an empty or too long part of a name
        return False
    return known and not any(character.isspace() for character in text)


def store_url(node: Node) -> str:
    """Read the location of a store: memory, a file or a server."""
    found = node.text().strip()
    scheme, _, rest = found.partition("://")
    if scheme not in STORES or bool(rest.strip("/")) is not STORES[scheme] or not _has_port_number(found):
        raise WrongValue("memory://, sqlite:///path or redis://host:6379/0")
    return found


def _has_port_number(written: str) -> bool:
    """Return whether the port of a URL is a number, or none is given."""
    try:
        return urlsplit(written).port != 0
    except ValueError:
        return False


def origin(node: Node) -> str:
    """Read the origin of web pages: a scheme and a host, perhaps a port, in small letters; ``*`` is any, and ``null`` that of a
    page without one."""
    found = name(node)
    scheme, _, host = found.partition("://")
    if found in ("*", "null") or (scheme and host and "/" not in host):
        return found.lower()
    meant = found.lower() if "://" in found else f"https://{found.lower()}"
    meant = "/".join(meant.split("/")[:3])
    near = (
        f"; did you mean {meant}?" if node.is_literal and "@" not in meant and _is_url(meant, ("http", "https")) else ""
    )
    raise WrongValue(f"an origin such as https://chat.example.com, without a path{near}")


def host(node: Node) -> str:
    """Read the name of a host as clients write it, without scheme, port and path; ``*`` is any, ``*.`` stands for names below one."""
    found = name(node)
    if _is_address(found) or HOST.fullmatch(found):
        return found
    meant = found.rpartition("://")[2].partition("/")[0].partition(":")[0].lower()
    near = f"; did you mean {meant}?" if node.is_literal and HOST.fullmatch(meant) else ""
    raise WrongValue(f"a name of a host, such as gate.example.com or *.example.com{near}")


def listening_host(node: Node) -> str:
    """Read the address or the name on which a port listens. The port has its own key; a scheme or a path would say nothing."""
    found = name(node)
    bare = found.rpartition("://")[2].partition("/")[0]
    inner = bare[1:].partition("]")[0] if bare.startswith("[") else bare
    meant = inner if _is_address(inner) else inner.partition(":")[0]
    if meant == found:
        return found
    near = f"; did you mean {meant}?" if node.is_literal and meant else ""
    raise WrongValue(f"an address without scheme and port, such as 127.0.0.1 or 0.0.0.0{near}")


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def network(node: Node) -> Network:
    """Read an address or a network; ``unix`` is the Unix socket."""
    return checked_network(node.text())


def checked_network(written: str) -> Network:
    """Return an address or a network; raise `WrongValue` for another text."""
    found = written.strip()
    if found.lower() == UNIX:
        return "unix"
    try:
        return ip_network(found)
    except ValueError:
        raise WrongValue(_expected_network(found)) from None


def _expected_network(found: str) -> str:
    try:
        meant = f"; did you mean {ip_network(found, strict=False)}?"
    except ValueError:
        meant = ""
    return f"an address or a network, such as 10.0.0.0/8 or fd00::/8, or unix{meant}"


def base_path(node: Node) -> str:
    """Read the path below which everything is served, without a slash at the end; "" is the root."""
    found = node.text().strip().rstrip("/")
    segments = found.split("/")
    if not BASE_PATH.match(found) or {".", ".."} & set(segments):
        raise WrongValue("a path such as /llm or /teams/llm")
    if segments[-1] == "v1":
        raise WrongValue("a path such as /llm; /v1 comes after it by itself")
    return found
