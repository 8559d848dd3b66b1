"""A request's body as JSON text, whatever encoding it travelled in."""

import asyncio
import zlib

from aiohttp import web

from gateway.proxy.errors import ClientError


async def read(request: web.BaseRequest, patience_s: float) -> bytes:
    """Read a body whole. Raises ClientError when the client is too slow in sending it."""
    if request.content.is_eof():
        return await request.read()
    try:
        async with asyncio.timeout(patience_s):
            return await request.read()
    except TimeoutError:
        message = f"The request's body did not arrive within server.request_timeout ({patience_s:g} seconds)."
        raise ClientError(408, message, code="request_timeout") from None


def plain(request: web.BaseRequest, raw: bytes, longest: int) -> bytes:
    """Decode a compressed body for reading, at most ``longest`` bytes of it (a small body may unpack to gigabytes).

    Answers the bytes as they came where they are not compressed, or cannot be read: then nothing is decided about
    them and the upstream judges them.
    """
    encoding = request.headers.get("Content-Encoding", "identity").lower()
    if encoding not in ("gzip", "x-gzip", "deflate"):
        return raw
    inflate = zlib.decompressobj(wbits=47)
    try:
        text = inflate.decompress(raw, longest)
    except zlib.error:
        return raw
    return text if inflate.eof else raw
