"""The public client: what the fast one does, by aiohttp's documented interface alone, for an aiohttp that the fast one does not know.

It is slower, and opens a new connection for each request: the public interface cannot tell whether an idle connection has
said something unasked, which would be taken for the next caller's answer.
"""

import io
import ssl
from typing import Final

import aiohttp
from multidict import CIMultiDict
from yarl import URL

AUTOMATIC: Final = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
"""Headers that aiohttp would add."""
IDEMPOTENT: Final = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})
"""Sent again when a connection breaks before anything is answered (RFC 9110 section 9.2.2)."""
LONGEST_LINE: Final = 2**16
"""Bytes of the longest header an upstream may answer with."""
MOST_HEADERS: Final = 1000
"""Headers an upstream may answer with. aiohttp's own bound is 128; real answers have some 40."""
AT_ONCE: Final = 2**20
"""Bytes. aiohttp warns of longer bodies that are given to it whole."""


class PublicHttp:
    """Sends each request over a connection of its own."""

    def __init__(self) -> None:
        self.session = aiohttp.ClientSession(
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
        body: bytes | aiohttp.StreamReader | None,
        *,
        tls: ssl.SSLContext | bool,
        limits: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        """Send one request and wait for the head of its answer, which is neither decoded nor followed elsewhere."""
        data = io.BytesIO(body) if isinstance(body, bytes) and len(body) > AT_ONCE else body
        return await self.session.request(
            method, url, headers=headers, data=data, allow_redirects=False, ssl=tls, timeout=limits
        )

    async def close(self) -> None:
        """Close every connection."""
        await self.session.close()
