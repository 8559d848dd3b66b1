"""The checks of every request before any other work: its target, its host, the page that sent it, and loops.

A web page can send requests to any address that its reader's machine reaches, including this one; by a name that
resolves to 127.0.0.1 it can also read the answers. So a browser's request is served only when its origin is this
gateway under a known name, or is configured. Requests of programs have neither `Origin` nor `Sec-Fetch-Site`.
"""

import ipaddress
import re
from functools import lru_cache
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec
from aiohttp import hdrs
from multidict import CIMultiDict, CIMultiDictProxy, istr

from gateway.config.exposure import is_loopback
from gateway.serve.incoming.errors import ClientError
from gateway.serve.incoming.paths import PROBES, with_plain_slashes
from gateway.upstream.hops import HOPS, is_loop

Headers = CIMultiDict[str] | CIMultiDictProxy[str]
MOST_DECODINGS: Final = 3
"""Layers of percent-encoding of a path; more layers are treated as an attack."""
KEPT: Final = 256
"""Hosts and paths whose form is remembered, a number of each: a client's requests name the same ones."""
_PORT: Final = re.compile(r":[0-9]*")
_UNUSUAL: Final = re.compile(r"\A//|[%\\]|/\.")
"""What may make a path another one for an upstream than for us."""
FETCH_SITE: Final = istr("Sec-Fetch-Site")
FOREIGN: Final = frozenset({"cross-site", "same-site"})
"""Values of Sec-Fetch-Site for a page of another origin: https://www.w3.org/TR/fetch-metadata/."""
VERSIONS: Final = frozenset({(1, 0), (1, 1)})
"""Versions of HTTP that are served. In HTTP/1.1 a Host is compulsory, and aiohttp refuses a request without one."""
REFUSED_METHODS: Final = frozenset({"TRACE", "TRACK", "CONNECT"})
"""An answer to TRACE holds the whole request: https://www.rfc-editor.org/rfc/rfc9110#name-trace."""
ANY: Final = "*"
PRIVATE_NETWORK: Final = "Access-Control-{}-Private-Network"
"""A public page asks with it for a server in a private network: https://wicg.github.io/private-network-access/."""
EXPOSED: Final = (
    "x-request-id", "retry-after", *(f"x-turnfold-{name}" for name in (
        "request-id", "action", "window", "tokens-before", "tokens-after", "turns-folded", "attempts", "warning",
    )), *(f"x-ratelimit-{part}-{what}" for part in ("limit", "remaining", "reset") for what in ("requests", "tokens")),
)  # fmt: skip
"""Headers that pages may read, by name: older browsers take ``*`` for a name."""


class Guard(msgspec.Struct, frozen=True):
    """The checks of one port."""

    own: str
    """The address the port is bound to."""
    allowed_hosts: tuple[str, ...] = ()
    cors_origins: tuple[str, ...] = ()

    def check(self, target: str, headers: Headers) -> str:
        """Return the origin that the answer must name, or "". Raises ClientError when the request is refused."""
        check_target(target)
        host = self._host(headers)
        origin = headers.get(hdrs.ORIGIN)
        if origin is None and headers.get(FETCH_SITE) not in FOREIGN:
            return ""
        if origin is not None and (origin in self.cors_origins or ANY in self.cors_origins):
            return origin
        if origin is not None and host is not None and _authority(origin) == host.lower() and self._known(host):
            return ""  # our own page, under a name that a stranger cannot control
        raise ClientError(
            403,
            "A web page of another origin may not use this gateway. Add the page's origin to server.cors_origins to allow it.",
            code="origin_not_allowed",
            type_="permission_error",
        )

    def _host(self, headers: Headers) -> str | None:
        """Return the Host header after checking that it may be served."""
        given = headers.getall(hdrs.HOST, ())
        if len(given) > 1:
            raise ClientError(400, "The request has more than one Host header.", code="invalid_host")
        if not given:
            return None  # the probe of a load balancer that speaks HTTP/1.0
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
        """Return whether a Host is an address, this machine, or a configured name."""
        return _is_known(host, (self.own, *self.allowed_hosts))


def check_target(target: str) -> None:
    """Refuse a request target that an upstream could read as another path than we do.

    Dot segments, encoded slashes and absolute forms could send a configured key to unintended endpoints.
    """
    _check_path(target.partition("?")[0].partition("#")[0])


@lru_cache(maxsize=KEPT)
def _check_path(path: str) -> None:
    if path.startswith("/") and not _UNUSUAL.search(path):
        return
    if not path.startswith("/") or path.startswith("//"):
        raise _bad_target("must be a path that begins with one slash, not a whole URL")
    decoded = path = with_plain_slashes(path)  # the name of a deployment does not stay in the path
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


def check_version(version: tuple[int, int]) -> None:
    """Refuse versions of HTTP that this server does not speak: a browser's request must not pass for one without a host."""
    if version not in VERSIONS:
        raise ClientError(505, "This gateway speaks HTTP/1.1 and HTTP/1.0.", code="http_version_not_supported")


def check_host(headers: Headers, path: str) -> None:
    """Refuse a request without a Host, which HTTP/1.0 allows: the probes of load balancers alone have no need of one."""
    if hdrs.HOST not in headers and path not in PROBES:
        raise ClientError(400, "The request has no Host header.", code="invalid_host")


def check_method(method: str) -> None:
    """Refuse methods by which a server repeats a request, with the key that was attached to it, or opens a tunnel."""
    if method.upper() in REFUSED_METHODS:
        raise ClientError(405, f"The method {method.upper()} is not forwarded.", code="method_not_allowed")


def check_hops(headers: Headers, own: str) -> None:
    """Refuse a request that this gateway has sent itself, directly or through other gateways."""
    given = headers.getall(HOPS, ())
    if given and is_loop(",".join(given), own):
        raise ClientError(
            508,
            "The request came back to the gateway that sent it: an upstream's base_url leads to this gateway.",
            code="loop_detected",
            type_="server_error",
        )


def check_json(headers: Headers) -> None:
    """Refuse a body that is not declared as JSON: a page's plain form cannot declare JSON without a preflight request."""
    kind = headers.get(hdrs.CONTENT_TYPE, "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise ClientError(415, "Send `Content-Type: application/json`.", code="unsupported_media_type")


def preflight(origin: str, headers: Headers) -> dict[str, str]:
    """Return the headers that answer a browser's preflight request from a page of this origin."""
    asks_for_network = headers.get(PRIVATE_NETWORK.format("Request")) == "true"
    return {
        **shared_with(origin),
        "Access-Control-Allow-Methods": "GET, POST, PUT, PATCH, DELETE, OPTIONS",
        "Access-Control-Allow-Headers": _clean(headers.get(hdrs.ACCESS_CONTROL_REQUEST_HEADERS, ""))
        or "authorization, content-type",
        "Access-Control-Max-Age": "600",
        **({PRIVATE_NETWORK.format("Allow"): "true"} if asks_for_network else {}),
        "Vary": "Origin, Access-Control-Request-Method, Access-Control-Request-Headers",
    }


def shared_with(origin: str) -> dict[str, str]:
    """Return the headers that let a browser give the answer to a page of this origin."""
    return {
        "Access-Control-Allow-Origin": _clean(origin),
        "Access-Control-Expose-Headers": ", ".join((ANY, *EXPOSED)),
        "Vary": "Origin",
    }


def hostname(host: str) -> str:
    """Return the name or address in a Host header, without its port, in lower case."""
    if host.startswith("["):
        address, _, rest = host[1:].partition("]")
        return (address if not rest or _PORT.fullmatch(rest) else host).lower()
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdecimal() else host).rstrip(".").lower()


def _authority(origin: str) -> str:
    return urlsplit(origin).netloc.lower()


@lru_cache(maxsize=KEPT)
def _is_known(host: str, names: tuple[str, ...]) -> bool:
    """Return whether a Host is an address, this machine, or has one of these names."""
    name = hostname(host)
    return (
        _is_address(name)
        or name == "localhost"
        or name.endswith(".localhost")
        or any(_matches(name, pattern) for pattern in names)
    )


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _matches(name: str, pattern: str) -> bool:
    """Return whether a name is the configured one, or below it when that begins with ``*.``; ``*`` alone matches all."""
    pattern = pattern.lower()
    return pattern in (ANY, name) or (pattern.startswith("*.") and name.endswith(pattern[1:]))


def _bad_target(problem: str) -> ClientError:
    return ClientError(400, f"The request's target {problem}.", code="invalid_path")


def _clean(value: str) -> str:
    return "".join(character for character in value if character.isprintable())
