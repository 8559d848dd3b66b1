"""Uploads: end bodies that arrive too slowly, with one timer for all of them.

Only the client's slowness counts: while the gateway has bytes that the upstream has not taken, the client is not late.
"""

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final

import msgspec
from aiohttp import StreamReader, web

from gateway.serve.incoming.errors import ClientError

CHECK_S: Final = 1.0
"""Seconds between two checks."""
WINDOW_S: Final = 10.0
"""Seconds for which a client must be too slow: a mobile network may lose its connection for some seconds."""
NOT_WATCHED: Final = nullcontext()
"""The watch of a body that has arrived already, as most small ones have."""


class SlowUpload(Exception):
    """The body arrives more slowly than the operator allows."""

    def __init__(self, rate: int) -> None:
        super().__init__()
        self.rate = rate

    def as_error(self) -> ClientError:
        """Return the error for the client."""
        message = (
            f"The request's body arrived at less than server.min_upload_rate ({self.rate} bytes a second) "
            f"for {WINDOW_S:g} seconds."
        )
        return ClientError(408, message, code="request_timeout")


class Upload(msgspec.Struct):
    """One arriving body: the start of the current period of waiting for the client, and the bytes that had arrived by then."""

    rate: int
    since: float
    seen: int


class Uploads:
    """All arriving bodies of one process."""

    def __init__(self) -> None:
        self._uploads: dict[StreamReader, Upload] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._uploads)

    def watched(self, request: web.BaseRequest, rate: int) -> AbstractContextManager[None]:
        """Watch a request's body; reading it raises SlowUpload once it is too slow."""
        content = request.content
        return NOT_WATCHED if not rate or content.is_eof() else self._watched(content, rate)

    @contextmanager
    def _watched(self, content: StreamReader, rate: int) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        self._uploads[content] = Upload(rate, loop.time(), content.total_bytes)
        if self._timer is None:
            self._timer = loop.call_later(CHECK_S, self._tick)
        try:
            yield
        finally:
            self._uploads.pop(content, None)

    def check(self, now: float) -> None:
        """End the bodies that are too slow: too little of them has arrived by the time ``now``."""
        for content, upload in list(self._uploads.items()):
            if content.is_eof():
                del self._uploads[content]
            elif getattr(content, "_size", 0):  # arrived bytes are still unread: the client is not late
                upload.since, upload.seen = now, content.total_bytes
            elif now - upload.since >= WINDOW_S:
                if content.total_bytes - upload.seen < upload.rate * (now - upload.since):
                    del self._uploads[content]
                    content.set_exception(SlowUpload(upload.rate))
                upload.since, upload.seen = now, content.total_bytes

    def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        self.check(loop.time())
        self._timer = loop.call_later(CHECK_S, self._tick) if self._uploads else None

    def close(self) -> None:
        """Stop checking."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
