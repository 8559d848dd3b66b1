"""A complete answer of an upstream: its head and body leave in one write.

aiohttp's own `web.Response` works out what an upstream's answer says already, at several times the cost.
"""

from email.utils import formatdate
from typing import Final

from aiohttp import HttpVersion11, hdrs, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import SERVER_SOFTWARE
from multidict import CIMultiDict

WITHOUT_BODY: Final = frozenset({204, 205, 304})
"""Statuses whose answers have no body: https://www.rfc-editor.org/rfc/rfc9110#section-6.4.1."""


class Whole(web.StreamResponse):
    """An answer with a body, to a client of HTTP/1.1. It takes over the headers object."""

    def __init__(
        self, request: web.BaseRequest, status: int, reason: str, headers: CIMultiDict[str], body: bytes
    ) -> None:
        super().__init__(status=status, reason=reason, headers=headers)
        self._client = request
        self._whole = body

    @property
    def keep_alive(self) -> bool:
        return self._client.keep_alive

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter:
        """Complete the headers; nothing is sent yet."""
        headers = self.headers
        headers[hdrs.CONTENT_LENGTH] = str(len(self._whole))
        if hdrs.CONTENT_TYPE not in headers and self._whole:
            headers[hdrs.CONTENT_TYPE] = "application/octet-stream"
        if hdrs.DATE not in headers:
            headers[hdrs.DATE] = formatdate(usegmt=True)
        if hdrs.SERVER not in headers:
            headers[hdrs.SERVER] = SERVER_SOFTWARE
        if not request.keep_alive:
            headers[hdrs.CONNECTION] = "close"
        return request.writer

    async def write_eof(self, data: bytes = b"") -> None:
        """Send everything."""
        writer = self._client.writer
        await writer.write_headers(f"HTTP/1.1 {self.status} {self.reason}", self.headers)
        await writer.write_eof(self._whole)


def whole(
    request: web.BaseRequest, status: int, reason: str, headers: CIMultiDict[str], body: bytes
) -> web.StreamResponse:
    """Return a complete answer to a request."""
    if request.version == HttpVersion11 and request.method != "HEAD" and status >= 200 and status not in WITHOUT_BODY:
        return Whole(request, status, reason, headers, body)
    return web.Response(body=body, status=status, reason=reason, headers=headers)
