"""aiohttp's client by its documented interface alone: for WebSockets, for upstreams behind a proxy, and instead of our own
client where its parser cannot be loaded.

It opens a new connection for each request: the public interface cannot tell whether an idle connection has received
unrequested bytes, which would be taken for the next caller's answer.
"""

import asyncio
import io
from typing import Any, Final

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from gateway.upstream.certificates import Tls, for_aiohttp
from gateway.upstream.response import (
    AskFailed,
    BrokenOff,
    CertificateRefused,
    Disconnected,
    InvalidHttp,
    NameUnknown,
    NotConnected,
    TlsFailed,
    not_connected,
)
from gateway.upstream.sending import BegunStream, Body, pieces_of

AUTOMATIC: Final = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
"""Headers that aiohttp would add."""
IDEMPOTENT: Final = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})
"""Methods repeated when a connection breaks before an answer (RFC 9110 section 9.2.2)."""
LONGEST_LINE: Final = 2**16
"""Bytes of an upstream's longest accepted header."""
MOST_HEADERS: Final = 1000
"""Number of accepted headers in an answer. aiohttp's own limit is 128; real answers have some 40."""
AT_ONCE: Final = 2**20
"""Bytes. aiohttp warns about longer bodies given as a whole."""


_FAILURES: Final[tuple[tuple[type[Exception], type[AskFailed]], ...]] = (
    (aiohttp.ClientConnectorDNSError, NameUnknown),
    (aiohttp.ClientConnectorCertificateError, CertificateRefused),
    (aiohttp.ClientSSLError, TlsFailed),
    (aiohttp.ClientConnectorError, NotConnected),
    (aiohttp.ServerDisconnectedError, Disconnected),
    (aiohttp.ClientOSError, Disconnected),
    (aiohttp.ClientResponseError, InvalidHttp),
    (aiohttp.http_exceptions.HttpProcessingError, InvalidHttp),
    (aiohttp.ClientPayloadError, BrokenOff),
)
"""aiohttp's errors in our terms; the first matching row is used."""


def failure(error: Exception) -> Exception:
    """Return an error of aiohttp in our terms; a time-out, or an error that is not about the upstream, stays."""
    if isinstance(error, TimeoutError):
        return error
    found = next((ours for theirs, ours in _FAILURES if isinstance(error, theirs)), None)
    if found is NotConnected and isinstance(error, OSError):
        return not_connected(error)
    if found is None and isinstance(error, aiohttp.ClientError):
        found = AskFailed
    return error if found is None else found(type(error).__name__)


class PublicResponse:
    """An answer by aiohttp's client; see `gateway.upstream.response.Response`."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.reason = response.reason or ""
        self.headers = CIMultiDict(response.headers)

    @property
    def complete(self) -> bool:
        return self._response.content.is_eof() and self._response.content.exception() is None

    def take(self) -> bytes:
        return self._response.content.read_nowait()

    async def next_piece(self) -> bytes:
        try:
            return await self._response.content.readany()
        except (aiohttp.ClientError, OSError) as error:
            raise failure(error) from error

    def close(self) -> None:
        if not self._response.closed:
            self._response.close()


async def _refuse_redirect(_: aiohttp.ClientSession, __: Any, redirect: aiohttp.TraceRequestRedirectParams) -> None:
    """End the opening of a WebSocket that is redirected. aiohttp would follow, and send the keys of the upstream and of its client along."""
    response = redirect.response
    response.close()
    raise aiohttp.WSServerHandshakeError(
        response.request_info, response.history, status=response.status, message="redirected", headers=response.headers
    )


class PublicHttp:
    """Sends each request over its own connection."""

    def __init__(self) -> None:
        redirects = aiohttp.TraceConfig()
        redirects.on_request_redirect.append(_refuse_redirect)
        self.session = aiohttp.ClientSession(
            trace_configs=[redirects],
            connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=60, force_close=True),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=AUTOMATIC,
            auto_decompress=False,
            max_line_size=LONGEST_LINE,
            max_field_size=LONGEST_LINE,
            max_headers=MOST_HEADERS,
        )

    async def send(
        self,
        method: str,
        url: URL,
        headers: CIMultiDict[str],
        body: Body,
        *,
        tls: Tls,
        limits: aiohttp.ClientTimeout,
        proxy: str = "",
    ) -> PublicResponse:
        """Send one request and wait for the head of its answer; do not decode it or follow redirects.

        ``limits.sock_read`` bounds each silence. The head may take as long again to arrive, byte by byte.
        """
        streams = body is not None and not isinstance(body, bytes)
        patience_s = None if streams or limits.sock_read is None else 2 * limits.sock_read
        data: Any = body
        if isinstance(body, BegunStream):
            data = pieces_of(body, chunked=False)  # aiohttp frames them
        elif isinstance(body, bytes) and len(body) > AT_ONCE:
            data = io.BytesIO(body)
        try:
            async with asyncio.timeout(patience_s):
                response = await self.session.request(
                    method,
                    url,
                    headers=headers,
                    data=data,
                    allow_redirects=False,
                    ssl=for_aiohttp(tls, url, proxy),
                    timeout=limits,
                    proxy=proxy or None,
                )
        except (aiohttp.ClientError, aiohttp.http_exceptions.HttpProcessingError, OSError) as error:
            raise failure(error) from error
        return PublicResponse(response)

    async def close(self) -> None:
        """Close every connection."""
        await self.session.close()
