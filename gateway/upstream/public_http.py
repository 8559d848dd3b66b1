"""The public client: the fast client's job through aiohttp's documented interface, for aiohttp versions the fast client
does not know.

It is slower and opens a new connection for each request: the public interface cannot tell whether an idle connection
has received unrequested bytes, which would be taken for the next caller's answer.
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
"""Methods repeated when a connection breaks before an answer (RFC 9110 section 9.2.2)."""
LONGEST_LINE: Final = 2**16
"""Bytes of an upstream's longest accepted header."""
MOST_HEADERS: Final = 1000
"""Number of accepted headers in an answer. aiohttp's own limit is 128; real answers have some 40."""
AT_ONCE: Final = 2**20
"""Bytes. aiohttp warns about longer bodies given as a whole."""


class PublicHttp:
    """Sends each request over its own connection."""

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
        proxy: str = "",
    ) -> aiohttp.ClientResponse:
        """Send one request and wait for the head of its answer; do not decode it or follow redirects."""
        data = io.BytesIO(body) if isinstance(body, bytes) and len(body) > AT_ONCE else body
        return await self.session.request(
            method, url, headers=headers, data=data, allow_redirects=False, ssl=tls, timeout=limits, proxy=proxy or None
        )

    async def close(self) -> None:
        """Close every connection."""
        await self.session.close()
