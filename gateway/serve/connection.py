"""A client's connection: aiohttp's own, with an end for a request head that does not arrive or does not stop."""

import asyncio
from typing import Any, Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from gateway.serve.errors import JSON, body_of

HEADS: Final = 8
"""A head may be so many times as long as its longest line."""
PHRASES: Final = {408: "Request Timeout", 431: "Request Header Fields Too Large"}


class Connection(RequestHandler):
    """One connection. Its timer runs while the head of a request is awaited: a new connection's first, or one that has begun."""

    __slots__ = ("_head_bytes", "_head_timer", "_patience_s")

    def __init__(self, manager: web.Server, *, patience_s: float, **settings: Any) -> None:
        super().__init__(manager, **settings)
        self._patience_s = patience_s
        self._head_timer: asyncio.TimerHandle | None = None
        self._head_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._head_timer = self._loop.call_later(self._patience_s, self._late)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._head_arrived()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        arrived = self._request_count
        super().data_received(data)
        if self._request_count != arrived:
            self._head_arrived()
        elif self._head_timer is not None or (self._waiter is not None and not self._waiter.done()):
            self._head_bytes += len(data)
            if self._head_timer is None:
                self._head_timer = self._loop.call_later(self._patience_s, self._late)
            if self._head_bytes > HEADS * self.max_field_size:
                self._end(431, f"The head of the request is longer than {HEADS} times server.max_header.")

    def _head_arrived(self) -> None:
        self._head_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _late(self) -> None:
        self._head_timer = None
        if self._head_bytes:
            message = (
                f"The head of the request did not arrive within server.header_timeout ({self._patience_s:g} seconds)."
            )
            self._end(408, message)
        else:
            self.force_close()

    def _end(self, status: int, message: str) -> None:
        """Say why, and close. No request object exists yet that could be answered."""
        body = body_of(
            message, code="request_timeout" if status == 408 else "headers_too_large", type_="invalid_request_error"
        )
        head = (
            f"HTTP/1.1 {status} {PHRASES[status]}\r\nContent-Type: {JSON}\r\nContent-Length: {len(body)}\r\n"
            "Connection: close\r\n\r\n"
        )
        if self.transport is not None:
            self.transport.write(head.encode() + body)
        self.force_close()


class Connections(web.Server):
    """The server behind one port; ``patience_s`` bounds the arrival of a request's head."""

    def __init__(self, handler: Any, *, patience_s: float, **settings: Any) -> None:
        super().__init__(handler, **settings)
        self._patience_s = patience_s

    def __call__(self) -> RequestHandler:
        return Connection(self, patience_s=self._patience_s, loop=self._loop, **self._kwargs)
