"""The HTTP client: send a request to an upstream and return the answer as it arrives."""

import asyncio
import secrets
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Final, Protocol
from urllib.request import getproxies_environment, proxy_bypass

import aiohttp
import msgspec
import structlog
from multidict import CIMultiDict, istr
from yarl import URL

from gateway.config import Upstream, address_of, is_loopback
from gateway.upstream.certificates import Tls, for_aiohttp, tls_of
from gateway.upstream.hops import HOPS, extended
from gateway.upstream.public_http import PublicHttp, failure
from gateway.upstream.response import AskFailed, Response
from gateway.upstream.sending import Body
from providers.openai import join_at_root
from providers.record import Endpoint, Provider
from providers.registry import find

# Paths and model names come from clients, so the cache of URLs is bounded.
URLS_KEPT: Final = 1024
BASE_URLS_KEPT: Final = 256
"""Base URLs of upstreams for which it is remembered whether they are local. Chosen above any configuration."""
VENDORS: Final = frozenset(
    {"openai", "azure", "groq", "together", "fireworks", "cerebras", "deepseek", "mistral", "xai", "gemini", "anthropic",
     "bedrock", "vertex", "openrouter"}
)  # fmt: skip
"""Providers that are services. Operators of vLLM, llama.cpp or a relay choose model names freely."""
CALLER: Final = istr("x-turnfold-caller")
"""A header inside the gateway only: the client key whose stored facts a request may use. It is removed before anything is sent."""
AZURE_KEY: Final = istr("api-key")
"""The header in which clients of Azure's send their key."""
OTHER_KEYS: Final = ("authorization", "x-api-key")
"""The headers in which other clients send theirs."""


log = structlog.get_logger(__name__)


class UpstreamUnreachable(Exception):
    """The upstream sent no answer: refused, reset, timed out or cut off before the first byte went to the client."""

    def __init__(self, upstream: str, reason: str, *, timed_out: bool = False) -> None:
        super().__init__(f"upstream {upstream!r} {reason}")
        self.reason = reason
        self.status = 504 if timed_out else 502
        self.code = "upstream_timeout" if timed_out else "upstream_unreachable"
        self.type = "upstream_error"


class SocketRefused(UpstreamUnreachable):
    """The upstream answered the opening of a WebSocket with another status than 101."""

    def __init__(self, upstream: str, status: int) -> None:
        super().__init__(upstream, f"refused the WebSocket with status {status}")
        self.code = "websocket_refused"
        self.said = status
        if 400 <= status < 600:  # other ones would tell the client that all is well
            self.status = status


class UpstreamCall(msgspec.Struct, frozen=True):
    """The endpoint to call: ``path`` is the part after ``/v1``, ``query`` the part after ``?``."""

    method: str
    path: str
    query: str
    model: str
    translated: bool = False
    """Whether the client wrote another API's path, such as Azure's: then an ``api-version`` is for servers that read it."""
    native: bool = False
    """Whether this is one of the server's own endpoints: ``path`` is the whole path below the server's root."""


class Target(msgspec.Struct, eq=False, dict=True):  # cached properties need a dict
    """One configured upstream, ready to be called."""

    name: str
    provider: Provider
    endpoint: Endpoint
    headers: dict[str, str]
    timeout: aiohttp.ClientTimeout
    """Time limits until the head of an answer arrives; after that `Patience` watches."""
    patience_s: float
    tls: Tls = True
    key_headers: tuple[istr, ...] = ()
    """Headers in which the provider reads a key."""
    credentials: frozenset[str] = frozenset()
    """Client headers that the configured key replaces, in lower case; empty when the client's own are forwarded."""

    model_in_url: bool = False
    """Whether the URLs name the model, so that it must be known before anything is sent."""
    proxy: str = ""
    """The URL of the proxy to the upstream; empty for none."""

    def __repr__(self) -> str:
        return f"Target({self.name!r})"  # without keys, and URLs that may hold one

    @cached_property
    def _urls(self) -> dict[UpstreamCall, URL]:
        """The URLs of calls so far."""
        return {}

    @cached_property
    def vendor(self) -> bool:
        """Whether this is a service with fixed model names; a self-hosted server may call any model ``gpt-4o``."""
        return self.provider.name in VENDORS and not _is_local(self.endpoint.base_url)

    def url(self, call: UpstreamCall) -> URL:
        """Return the URL of a call at this upstream."""
        found = self._urls.get(call)
        if found is None:
            if len(self._urls) >= URLS_KEPT:
                self._urls.clear()
            found = self._urls[call] = URL(self._address(call), encoded=True)
        return found

    def _address(self, call: UpstreamCall) -> str:
        query = call.query
        if call.translated and not self.provider.versioned:
            query = "&".join(part for part in query.split("&") if not part.startswith("api-version="))
        if call.native:
            return join_at_root(self.endpoint, call.path, query)
        return self.provider.locate(self.endpoint, call.path, query, call.model)

    def has_native(self, method: str, path: str) -> bool:
        """Return whether the server has this endpoint of its own, and it may be passed through."""
        native = self.provider.native
        return native is not None and native.fullmatch(f"{method} {path}") is not None

    def serves(self, method: str, path: str) -> bool:
        """Return whether a request to this path may be sent here: to any server below ``/v1``, else to one that has it of its own."""
        return path.startswith("/v1/") or self.has_native(method, path)

    def authorised(self, headers: CIMultiDict[str]) -> CIMultiDict[str]:
        """Replace the client's credentials by the configured key, if there is one; add configured headers.

        Without a configured key, a client of Azure's may send its key in Azure's header only. It is then also sent in the header that this
        upstream reads.
        """
        headers.popall(CALLER, None)
        if self.endpoint.key:
            for name in self.credentials:
                headers.popall(name, None)
            headers.update(self._carrying(headers, self.endpoint.key))
        elif AZURE_KEY in headers and not any(name in headers for name in OTHER_KEYS):
            headers.update(self._carrying(headers, headers[AZURE_KEY]))
        if self.headers:
            headers.update(self.headers)
        return headers

    def _carrying(self, headers: CIMultiDict[str], key: str) -> dict[str, str]:
        """Return the headers that carry a key in a request with these headers."""
        native = self.provider.authorize_messages if "anthropic-version" in headers else None
        return (native or self.provider.authorize)(key)


def target(upstream: Upstream) -> Target:
    """Build the target of a configured upstream."""
    provider = find(upstream.provider)
    endpoint = Endpoint(upstream.base_url, upstream.api_key, upstream.options)
    return Target(
        name=upstream.name,
        provider=provider,
        endpoint=endpoint,
        headers=dict(upstream.headers),
        timeout=aiohttp.ClientTimeout(
            total=None, sock_connect=upstream.connect_timeout_s, sock_read=upstream.timeout_s
        ),
        patience_s=upstream.timeout_s,
        tls=tls_of(upstream),
        model_in_url=len({provider.locate(endpoint, "/completions", "", model) for model in ("a", "b")}) > 1,
        proxy=proxy_for(upstream.base_url),
        key_headers=tuple(map(istr, provider.credential_headers)),
        credentials=frozenset(name.lower() for name in provider.credential_headers),
    )


@lru_cache(BASE_URLS_KEPT)  # each request asks
def _is_local(base_url: str) -> bool:
    """Return whether a URL leads to this machine or its network: then no vendor runs there, even if the provider is named
    like one."""
    host = (URL(base_url).host or "").rstrip(".")
    address = address_of(host)
    if address is not None:
        return not address.is_global
    return "." not in host or host.endswith((".local", ".internal", ".lan", ".localhost", ".svc", ".home.arpa"))


def proxy_for(base_url: str) -> str:
    """Return the proxy that the environment names for a URL by HTTPS_PROXY, HTTP_PROXY and NO_PROXY; "" for none.

    An upstream on this machine is always reached directly.
    """
    url = URL(base_url)
    host = url.host or ""
    if is_loopback(host) or proxy_bypass(f"{host}:{url.port}"):
        return ""
    return getproxies_environment().get(url.scheme, "")


class Http(Protocol):
    """An HTTP client for upstreams: our own, or aiohttp's."""

    async def send(
        self,
        method: str,
        url: URL,
        headers: CIMultiDict[str],
        body: Body,
        *,
        tls: Tls,
        limits: aiohttp.ClientTimeout,
    ) -> Response: ...

    async def close(self) -> None: ...


def best_http() -> Http:
    """Return our own HTTP client; aiohttp's if our own cannot be loaded because its parser is missing."""
    try:
        from gateway.upstream.own_http import OwnHttp  # noqa: PLC0415  # httptools has no wheel for some platforms
    except ImportError as error:
        log.warning("slower_http_client", missing=error.name or "")
        return PublicHttp()
    return OwnHttp()


class Client:
    """The client for all upstreams. Opened once, closed once."""

    def __init__(self) -> None:
        self.hop = secrets.token_hex(8)
        """This process's name in the hop header."""
        self._http = best_http()
        self._public: PublicHttp | None = None

    async def send(self, target: Target, call: UpstreamCall, headers: CIMultiDict[str], body: Body) -> Response:
        """Send one request and wait for the head of its answer. Raises UpstreamUnreachable when no head comes."""
        headers[HOPS] = extended(",".join(headers.getall(HOPS, ())), self.hop)
        try:
            if target.proxy:
                return await self._public_http().send(
                    call.method,
                    target.url(call),
                    headers,
                    body,
                    tls=target.tls,
                    limits=target.timeout,
                    proxy=target.proxy,
                )
            return await self._http.send(
                call.method, target.url(call), headers, body, tls=target.tls, limits=target.timeout
            )
        except TimeoutError as error:
            raise UpstreamUnreachable(target.name, "did not answer in time", timed_out=True) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise UpstreamUnreachable(target.name, f"could not be reached: {_reason(error)}") from error

    async def connect(
        self, target: Target, call: UpstreamCall, headers: CIMultiDict[str], protocols: Sequence[str], largest: int
    ) -> aiohttp.ClientWebSocketResponse:
        """Open a WebSocket; ``largest`` bounds a frame in bytes. Raises UpstreamUnreachable when the upstream does not
        accept, and SocketRefused when it says so."""
        url = target.url(call)
        headers[HOPS] = extended(",".join(headers.getall(HOPS, ())), self.hop)
        try:
            return await self._public_http().session.ws_connect(
                url,
                protocols=protocols,
                headers=headers,
                ssl=for_aiohttp(target.tls, url, target.proxy),
                proxy=target.proxy or None,
                autoping=False,
                max_msg_size=largest,
                timeout=aiohttp.ClientWSTimeout(ws_close=5.0),
            )
        except aiohttp.WSServerHandshakeError as error:
            raise SocketRefused(target.name, error.status) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise UpstreamUnreachable(target.name, f"could not be reached: {_reason(error)}") from error

    def _public_http(self) -> PublicHttp:
        """Return the client for WebSockets and for upstreams behind a proxy, made when it is first needed."""
        if self._public is None:
            self._public = PublicHttp()
        return self._public

    async def close(self) -> None:
        await self._http.close()
        if self._public is not None:
            await self._public.close()
        await asyncio.sleep(0)  # lets closed TLS transports finish


def _reason(error: Exception) -> str:
    """Return the reason of a failure, without inner network addresses and header values."""
    ours = failure(error)
    return ours.reason if isinstance(ours, AskFailed) and type(ours) is not AskFailed else type(error).__name__
