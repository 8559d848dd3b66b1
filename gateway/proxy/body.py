"""A request's body as JSON text, whatever encoding it travelled in."""

import zlib

from aiohttp import web


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
