"""The checks a request passes before anything is done for it: its target, its host, the page that sent it, its way here.

A web page can send requests to any address its reader's machine reaches, this one included, and by a name that resolves to
127.0.0.1 it can read the answers too. So a browser's request is served only when its origin is this gateway under a known name,
or is configured. Requests of programs carry neither `Origin` nor `Sec-Fetch-Site`.
"""

import ipaddress
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

from multidict import CIMultiDict, CIMultiDictProxy

from gateway.config.exposure import is_loopback
from gateway.serve.errors import ClientError
from gateway.upstream.hops import HOPS, is_loop

Headers = CIMultiDict[str] | CIMultiDictProxy[str]
MOST_DECODINGS: Final = 3
"""How often a path may be percent-encoded before it is taken for an attack."""
FOREIGN: Final = frozenset({"cross-site", "same-site"})
"""Values of Sec-Fetch-Site that tell of a page of another origin: https://www.w3.org/TR/fetch-metadata/."""
ANY: Final = "*"


@dataclass(frozen=True, slots=True)
class Guard:
    """Who may speak to one port."""

    own: str
    """The address the port is bound to."""
    allowed_hosts: tuple[str, ...] = ()
    cors_origins: tuple[str, ...] = ()

    def check(self, target: str, headers: Headers) -> str:
        """Return the origin that must be named in the answer, or "". Raises ClientError where the request is refused."""
        check_target(target)
        host = self._host(headers)
        origin = headers.get("Origin")
        if origin is None and headers.get("Sec-Fetch-Site") not in FOREIGN:
            return ""
        if origin is not None and (origin in self.cors_origins or ANY in self.cors_origins):
            return origin
        if origin is not None and host is not None and _authority(origin) == host.lower() and self._known(host):
            return ""  # a page of our own, under a name that no stranger controls
        raise ClientError(
            403,
            "A web page of another origin may not use this gateway. Add the page's origin to server.cors_origins to allow it.",
            code="origin_not_allowed",
            type_="permission_error",
        )

    def _host(self, headers: Headers) -> str | None:
        """Return the Host header, once it is clear that it may be served."""
        given = headers.getall("Host", ())
        if len(given) > 1:
            raise ClientError(400, "The request has more than one Host header.", code="invalid_host")
        if not given:
            return None  # HTTP/1.0; every browser sends one
        strict = bool(self.allowed_hosts) or is_loopback(self.own)
        if strict and not self._known(given[0]):
            raise ClientError(
                403,
                "This gateway is not served under the host that the request names. Use its IP address or localhost, "
                "or add the name to server.allowed_hosts.",
                code="host_not_allowed",
                type_="permission_error",
            )
        return given[0]

    def _known(self, host: str) -> bool:
        """Whether a Host is an address, this machine, or a configured name."""
        name = hostname(host)
        return (
            _is_address(name)
            or name == "localhost"
            or name.endswith(".localhost")
            or name == self.own.lower()
            or any(_matches(name, pattern) for pattern in self.allowed_hosts)
        )


def check_target(target: str) -> None:
    """Refuse a request target that an upstream could read as another path than the one we see.

    Dot segments, encoded slashes and absolute forms would carry a configured key to endpoints that nobody meant.
    """
    path = target.partition("?")[0].partition("#")[0]
    if path.startswith("/") and not path.startswith("//") and not any(sign in path for sign in ("%", "/.", "\\")):
        return
    if not path.startswith("/") or path.startswith("//"):
        raise _bad_target("must be a path that begins with one slash, not a whole URL")
    decoded = path
    for _ in range(MOST_DECODINGS):
        before, decoded = decoded, unquote(decoded)
        if decoded.count("/") != path.count("/") or "\\" in decoded:
            raise _bad_target("contains an encoded slash or a backslash")
        if before == decoded:
            break
    else:
        raise _bad_target("is percent-encoded several times over")
    if any(segment.partition(";")[0] in (".", "..") for segment in decoded.split("/")):
        raise _bad_target("contains a dot segment")


def check_hops(headers: Headers, own: str) -> None:
    """Refuse a request that this gateway has sent itself, by whatever way round."""
    given = headers.getall(HOPS, ())
    if given and is_loop(",".join(given), own):
        raise ClientError(
            508,
            "The request came back to the gateway that sent it: an upstream's base_url leads to this gateway.",
            code="loop_detected",
            type_="server_error",
        )


def check_json(headers: Headers) -> None:
    """Refuse a body that is not declared as JSON: a page's plain form cannot declare it without asking first."""
    kind = headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise ClientError(415, "Send `Content-Type: application/json`.", code="unsupported_media_type")


def preflight(origin: str, headers: Headers) -> dict[str, str]:
    """Return the answer's headers to a browser that asks whether a page of this origin may send a request."""
    return {
        **shared_with(origin),
        "Access-Control-Allow-Methods": "GET, POST, PUT, PATCH, DELETE, OPTIONS",
        "Access-Control-Allow-Headers": _clean(headers.get("Access-Control-Request-Headers", ""))
        or "authorization, content-type",
        "Access-Control-Max-Age": "600",
    }


def shared_with(origin: str) -> dict[str, str]:
    """Return the headers by which a browser lets a page of this origin read the answer."""
    return {"Access-Control-Allow-Origin": _clean(origin), "Access-Control-Expose-Headers": "*", "Vary": "Origin"}


def hostname(host: str) -> str:
    """Return the name or address in a Host header, without its port, in lower case."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdecimal() else host).rstrip(".").lower()


def _authority(origin: str) -> str:
    return urlsplit(origin).netloc.lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _matches(name: str, pattern: str) -> bool:
    """Whether a name is the configured one, or below it where that begins with ``*.``; ``*`` alone is any."""
    pattern = pattern.lower()
    return pattern in (ANY, name) or (pattern.startswith("*.") and name.endswith(pattern[1:]))


def _bad_target(problem: str) -> ClientError:
    return ClientError(400, f"The request's target {problem}.", code="invalid_path")


def _clean(value: str) -> str:
    return "".join(character for character in value if character.isprintable())
