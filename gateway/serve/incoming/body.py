"""Read a request's body within limits of size and time, and decompress it."""

import asyncio
from typing import Final

from aiohttp import hdrs, web

from gateway.config.values import Server
from gateway.serve.incoming.admission import hold
from gateway.serve.incoming.encoding import CannotDecodeError, decoder_for
from gateway.serve.incoming.errors import ClientError
from gateway.serve.incoming.uploads import SlowUpload
from gateway.state.threads import INLINE
from gateway.upstream.sending import BegunStream

READS_FASTER: Final = 8
"""Factor by which parsing is faster than counting and folding. `WorkThreads` estimates work by the bytes that are counted and folded."""
UNPACKED_AT_ONCE: Final = 2**20
"""Bytes decompressed in one step."""
COPIED_ASIDE: Final = 2**20
"""Bytes from which the pieces of a body are joined in a thread. From this size CPython releases its lock (`Objects/stringlib/join.h`)."""


async def read(request: web.BaseRequest, limits: Server) -> bytes:
    """Read a whole body, and count its bytes as they arrive. aiohttp's own method copies a body twice more.

    Raises ClientError when it is too long, too slow, or larger than the free room.
    """
    if request.content.is_eof():
        body = request.content.read_nowait()
        hold(request, len(body))
        if len(body) > limits.max_body:
            raise too_large(limits.max_body, len(body))
        return body
    announced = request.content_length
    if announced is not None and announced > limits.max_body:
        raise too_large(limits.max_body, announced)
    # The whole body is needed: no pause at every quarter of a megabyte.
    request.content.set_read_chunk_size(limits.max_body)
    try:
        async with asyncio.timeout(limits.request_timeout_s):
            return await _read_pieces(request, limits.max_body, [])
    except SlowUpload as slow:
        raise slow.as_error() from None
    except TimeoutError:
        message = (
            f"The request's body did not arrive within server.request_timeout ({limits.request_timeout_s:g} seconds)."
        )
        raise ClientError(408, message, code="request_timeout") from None


async def read_ahead(request: web.BaseRequest, limits: Server) -> bytes | BegunStream:
    """Read a whole body that may be sent as it came; return a stream of one that `read` would refuse."""
    pieces: list[bytes] = []
    try:
        async with asyncio.timeout(limits.request_timeout_s):
            return await _read_pieces(request, limits.max_body, pieces)
    except (TimeoutError, ClientError):
        return BegunStream(pieces, request.content)


async def _read_pieces(request: web.BaseRequest, longest: int, pieces: list[bytes]) -> bytes:
    """Read a whole body; ``pieces`` gets what was read."""
    size = 0
    while piece := await request.content.readany():
        pieces.append(piece)
        hold(request, len(piece))
        size += len(piece)
        if size > longest:
            raise too_large(longest, size)
    if len(pieces) == 1:
        return pieces[0]
    # Copying 60 MB takes 0.1 s; other threads run meanwhile, for Python lets them where it joins so much.
    return await asyncio.to_thread(b"".join, pieces) if size >= COPIED_ASIDE else b"".join(pieces)


def too_large(longest: int, size: int) -> ClientError:
    """Return the error for a body that is too long."""
    message = f"The request body ({size} bytes or more) is larger than server.max_body ({longest} bytes)."
    return ClientError(413, message, code="request_too_large")


def reading_size(request: web.BaseRequest, raw: bytes) -> int:
    """Return the bytes by which `WorkThreads` estimates the work of decompressing and reading a body.

    A compressed body is never read on the event loop: it may be a thousand times as long as it came.
    """
    return max(len(raw), INLINE) if hdrs.CONTENT_ENCODING in request.headers else len(raw) // READS_FASTER


def decompress(request: web.BaseRequest, raw: bytes, longest: int) -> bytes:
    """Decompress a body up to ``longest`` bytes: a small body may decompress to gigabytes.

    Returns unreadable bytes unchanged: then nothing is decided and the upstream judges them. Raises ClientError above
    the limit.
    """
    decoder = decoder_for(request.headers)
    if decoder is None:
        return raw
    pieces: list[bytes] = []
    size, rest = 0, raw
    try:
        while piece := decoder.decode(rest, UNPACKED_AT_ONCE):
            pieces.append(piece)
            size += len(piece)
            rest = b""
            if size > longest:
                raise too_large(longest, size)
    except CannotDecodeError:
        return raw
    return b"".join(pieces) if decoder.is_whole else raw
