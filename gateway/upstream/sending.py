"""A request as bytes: with exactly the given headers, Host and the framing of its body."""

from collections import deque
from collections.abc import AsyncIterator, Iterable
from typing import Final

from aiohttp import StreamReader, hdrs
from multidict import CIMultiDict
from yarl import URL

AT_ONCE: Final = 2**20
"""Bytes. A body up to this size is given to the transport whole, without waiting until it is sent."""
PIECE: Final = 2**18
"""Bytes of a longer body written at once. Chosen: other connections get their turn in between."""
WITHOUT_BODY: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""Methods of which a request without a body needs no length (RFC 9110 section 8.6)."""


class BegunStream:
    """A stream whose first pieces were already read."""

    def __init__(self, read: Iterable[bytes], rest: StreamReader) -> None:
        self._read = deque(read)
        self._rest = rest

    async def readany(self) -> bytes:
        """Return the next piece; empty at the end."""
        return self._read.popleft() if self._read else await self._rest.readany()


Body = bytes | StreamReader | BegunStream | None


def head_of(method: str, url: URL, headers: CIMultiDict[str], body: Body) -> bytes:
    """Return the head of a request. Raises ValueError when a header would end its line."""
    headers[hdrs.HOST] = url.host_port_subcomponent or ""
    if isinstance(body, bytes):
        headers[hdrs.CONTENT_LENGTH] = str(len(body))
    elif body is None and method not in WITHOUT_BODY:
        headers[hdrs.CONTENT_LENGTH] = "0"
    elif body is not None and hdrs.CONTENT_LENGTH not in headers:
        headers[hdrs.TRANSFER_ENCODING] = "chunked"
    fields = "\r\n".join(map(": ".join, headers.items()))
    text = f"{method} {url.raw_path_qs} HTTP/1.1\r\n{fields}\r\n\r\n"
    lines = len(headers) + 2
    if text.count("\n") != lines or text.count("\r") != lines or "\0" in text:
        raise ValueError("a header holds a line's end")
    return text.encode("utf-8", "surrogateescape")


async def pieces_of(body: bytes | StreamReader | BegunStream, *, chunked: bool) -> AsyncIterator[bytes | memoryview]:
    """Yield a long body in pieces, framed as its head says."""
    if isinstance(body, bytes):
        view = memoryview(body)
        for start in range(0, len(view), PIECE):
            yield view[start : start + PIECE]
        return
    while piece := await body.readany():
        yield b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece
    if chunked:
        yield b"0\r\n\r\n"
