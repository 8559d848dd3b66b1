"""The fast client: aiohttp's pool and parser without its session, and one timer for all running answers."""

import asyncio
import ssl

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from gateway.upstream.fast_http import Request, exchange
from gateway.upstream.public_http import AUTOMATIC, IDEMPOTENT, LONGEST_LINE
from gateway.upstream.stall import Patience


class FastHttp:
    """Sends requests over pooled connections. `PublicHttp` does the same with aiohttp's public interface only."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._patience = Patience()
        self._connector = aiohttp.TCPConnector(limit=0, ttl_dns_cache=60, keepalive_timeout=60)
        self.session = aiohttp.ClientSession(
            connector=self._connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=AUTOMATIC,
            max_line_size=LONGEST_LINE,
            max_field_size=LONGEST_LINE,
        )

    async def send(
        self,
        method: str,
        url: URL,
        headers: CIMultiDict[str],
        body: bytes | aiohttp.StreamReader | None,
        *,
        tls: ssl.SSLContext | bool,
        limits: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        """Send one request and wait for the head of its answer. ``limits.sock_read`` bounds silence within the answer."""
        repeatable = method in IDEMPOTENT and not isinstance(body, aiohttp.StreamReader)
        while True:
            request = Request(method, url, headers, body, session=self.session, loop=self._loop, tls=tls)
            try:
                response = await exchange(self._connector, request, limits)
                break
            except aiohttp.ClientConnectorError:
                raise
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                if not repeatable:
                    raise
                repeatable = False
        if limits.sock_read is not None:
            self._patience.watch(response, limits.sock_read)
        return response

    async def close(self) -> None:
        """Close every connection."""
        self._patience.close()
        await self.session.close()
