"""The one HTTP client: it sends a request to an upstream and gives back the answer as it arrives."""

import asyncio
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from multidict import CIMultiDict
from yarl import URL

from gateway.patience import Patience
from gateway.settings import Upstream
from providers.record import Endpoint, Provider
from providers.registry import find

# How much of a body is written at once: what is copied to stand behind the headers in one packet is bounded by it.
PIECE: Final = 2**18
Payload = bytes | aiohttp.StreamReader | None


class UpstreamUnreachable(Exception):
    """No answer came from the upstream: refused, reset, timed out or cut off before the first byte went to the client."""

    def __init__(self, upstream: str, reason: str, *, timed_out: bool = False) -> None:
        super().__init__(f"upstream {upstream!r} {reason}")
        self.status = 504 if timed_out else 502
        self.code = "upstream_timeout" if timed_out else "upstream_unreachable"
        self.type = "upstream_error"


@dataclass(slots=True)
class Target:
    """One configured upstream, ready to be called."""

    name: str
    provider: Provider
    endpoint: Endpoint
    headers: dict[str, str]
    timeout: aiohttp.ClientTimeout
    """Until the head of an answer is there; within the answer `Patience` takes over."""
    patience_s: float
    tls: ssl.SSLContext | bool = True
    credentials: frozenset[str] = field(default_factory=frozenset)
    """The client headers that the configured key replaces, in lower case; empty when the client's own travel on."""

    def authorised(self, headers: CIMultiDict[str]) -> CIMultiDict[str]:
        """Put the configured key, if there is one, in the place of the client's credentials; add configured headers."""
        if self.endpoint.key:
            for name in self.credentials:
                headers.popall(name, None)
            headers.update(self.provider.authorize(self.endpoint.key))
        if self.headers:
            headers.update(self.headers)
        return headers


def target(upstream: Upstream) -> Target:
    """Make a configured upstream callable."""
    provider = find(upstream.provider)
    return Target(
        name=upstream.name,
        provider=provider,
        endpoint=Endpoint(upstream.base_url, upstream.api_key, upstream.options),
        headers=dict(upstream.headers),
        timeout=aiohttp.ClientTimeout(
            total=None, sock_connect=upstream.connect_timeout_s, sock_read=upstream.timeout_s
        ),
        patience_s=upstream.timeout_s,
        tls=_tls(upstream),
        credentials=frozenset(name.lower() for name in provider.credential_headers),
    )


def _tls(upstream: Upstream) -> ssl.SSLContext | bool:
    if not upstream.verify:
        return False
    return ssl.create_default_context(cafile=upstream.ca_file) if upstream.ca_file else True


@dataclass(frozen=True, slots=True)
class Call:
    """What is called at an upstream: ``path`` is what stands behind ``/v1``, ``query`` what stands behind ``?``."""

    method: str
    path: str
    query: str
    model: str


class Body(aiohttp.Payload):
    """A request body that is all there, written piece by piece: each waits until the upstream has taken the one before.

    aiohttp's own payload of bytes is written in one go and warns of it; one of BytesIO is read in a thread.
    """

    _autoclose = True  # nothing to close: bytes in memory
    _value: bytes

    def __init__(self, value: bytes) -> None:
        super().__init__(value)
        self._size = len(value)

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return self._value.decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        if len(self._value) <= PIECE:
            await writer.write(self._value)
            return
        view = memoryview(self._value)
        for start in range(0, len(view), PIECE):
            await writer.write(view[start : start + PIECE])


class Client:
    """The shared connection pool. Opened once, closed once."""

    def __init__(self) -> None:
        self._patience = Patience()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=60, keepalive_timeout=60),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            read_bufsize=2**17,
            max_line_size=2**16,
            max_field_size=2**16,
        )

    async def send(
        self, target: Target, call: Call, headers: CIMultiDict[str], body: Payload
    ) -> aiohttp.ClientResponse:
        """Send one request and wait for the head of its answer. Raises UpstreamUnreachable when no head comes."""
        url = target.provider.locate(target.endpoint, call.path, call.query, call.model)
        try:
            response = await self._session.request(
                call.method,
                URL(url, encoded=True),
                data=Body(body) if isinstance(body, bytes) else body,
                headers=headers,
                timeout=target.timeout,
                ssl=target.tls,
                allow_redirects=False,
            )
        except (TimeoutError, aiohttp.ServerTimeoutError) as error:
            raise UpstreamUnreachable(target.name, "did not answer in time", timed_out=True) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise UpstreamUnreachable(target.name, f"could not be reached: {_reason(error)}") from error
        self._patience.watch(response, target.patience_s)
        return response

    async def connect(
        self, target: Target, call: Call, headers: CIMultiDict[str], protocols: Sequence[str], largest: int
    ) -> aiohttp.ClientWebSocketResponse:
        """Open a WebSocket; ``largest`` bounds a frame in bytes. Raises UpstreamUnreachable when it is not accepted."""
        url = target.provider.locate(target.endpoint, call.path, call.query, call.model)
        try:
            return await self._session.ws_connect(
                URL(url, encoded=True),
                protocols=protocols,
                headers=headers,
                ssl=target.tls,
                autoping=False,
                max_msg_size=largest,
                timeout=aiohttp.ClientWSTimeout(ws_close=5.0),
            )
        except aiohttp.WSServerHandshakeError as error:
            raise UpstreamUnreachable(target.name, f"refused the WebSocket with status {error.status}") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise UpstreamUnreachable(target.name, f"could not be reached: {_reason(error)}") from error

    async def close(self) -> None:
        self._patience.close()
        await self._session.close()
        await asyncio.sleep(0)  # lets closed TLS transports finish


def _reason(error: Exception) -> str:
    """What went wrong, without addresses of inner networks or header values."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "its name does not resolve"
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError):
        return "its certificate was not accepted"
    if isinstance(error, aiohttp.ClientConnectorError):
        return "the connection was refused"
    if isinstance(error, aiohttp.ServerDisconnectedError | ConnectionResetError):
        return "it closed the connection without an answer"
    if isinstance(error, aiohttp.ClientResponseError | aiohttp.http_exceptions.HttpProcessingError):
        return "its answer was not valid HTTP"
    return type(error).__name__
