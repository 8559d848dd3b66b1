"""A request's body as JSON text, whatever encoding it travelled in."""

import asyncio
import zlib

from aiohttp import StreamReader, web

from gateway.serve.encoding import inflater
from gateway.serve.errors import ClientError


async def read(request: web.BaseRequest, longest: int, patience_s: float) -> bytes:
    """Read a body whole. Raises ClientError when the client is too slow in sending it, HTTPRequestEntityTooLarge when it is too long.

    aiohttp's own reading copies a body twice more.
    """
    if request.content.is_eof():
        return _bounded(request.content.read_nowait(), longest)
    try:
        async with asyncio.timeout(patience_s):
            return await _pieces(request.content, longest)
    except TimeoutError:
        message = f"The request's body did not arrive within server.request_timeout ({patience_s:g} seconds)."
        raise ClientError(408, message, code="request_timeout") from None


async def _pieces(content: StreamReader, longest: int) -> bytes:
    content.set_read_chunk_size(longest)  # the whole body is wanted: no pause at every quarter of a megabyte
    pieces: list[bytes] = []
    size = 0
    while piece := await content.readany():
        pieces.append(piece)
        size += len(piece)
        if size > longest:
            raise web.HTTPRequestEntityTooLarge(longest, size)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _bounded(body: bytes, longest: int) -> bytes:
    if len(body) > longest:
        raise web.HTTPRequestEntityTooLarge(longest, len(body))
    return body


def plain(request: web.BaseRequest, raw: bytes, longest: int) -> bytes:
    """Decode a compressed body for reading, at most ``longest`` bytes of it (a small body may unpack to gigabytes).

    Answers the bytes as they came where they are not compressed, or cannot be read: then nothing is decided about
    them and the upstream judges them.
    """
    inflate = inflater(request.headers)
    if inflate is None:
        return raw
    try:
        text = inflate.decompress(raw, longest)
    except zlib.error:
        return raw
    return text if inflate.eof else raw
