"""A client's connection: aiohttp's own, with a time limit and a size limit for request heads, and a time limit for a client that does not
read its answer.

Invalid HTTP is answered in JSON and recorded. aiohttp would quote the client's bytes in plain text and log them with a
traceback. A broken header may hold a key, so neither the answer nor the log repeats it.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import msgspec
from aiohttp import StreamReader, web

from gateway.serve.incoming.addresses import peer_of
from gateway.serve.incoming.errors import OUR_FAULT, ClientError, Failed
from gateway.serve.incoming.malformed import BAD_BODY, encode_answer, late_head, long_head, malformed, too_many_heads
from gateway.serve.incoming.unfinished_heads import UnfinishedHeads
from gateway.serve.incoming.write_timeout import WriteTimeout
from gateway.upstream.many_lines import has_many_lines, step_size

MOST_HEAD_LINES: Final = 8
"""A whole head may be as long as this number of lines of the greatest length (``server.max_header``)."""
FRAMES_AT_ONCE: Final = 2**13
"""Bytes of a WebSocket that are parsed in one step: at most 1400 frames, in 3 ms. 256 KB of empty frames took 95 ms."""

AnswerMalformed = Callable[[ClientError, str], web.Response]
"""Records a request that was never parsed, with the client's address, and returns the answer to it."""


class Port(msgspec.Struct, eq=False):
    """What all connections of one port share."""

    header_timeout_s: float
    """Seconds in which a request head must arrive."""
    write_timeout_s: float
    """Seconds in which a client must take some of an answer."""
    answer: AnswerMalformed
    failed: Failed
    heads: UnfinishedHeads = msgspec.field(default_factory=UnfinishedHeads)
    on_end: Callable[[], None] | None = None
    """Called when a connection has ended."""


class Connection(web.RequestHandler):
    """One client's connection.

    - While it waits for a request head (the first one, or one that has begun), the head timer runs, and it is one of the port's unfinished heads.
    - While bytes of an answer wait for the client, the write timeout runs.
    - Received bytes that would take long to parse are parsed in steps.
    """

    __slots__ = ("_head_bytes", "_head_timer", "_next_step", "_port", "_unparsed", "_write_timeout", "body", "peer")

    body: StreamReader | None
    """The body of the current request."""
    peer: str
    """The address at the other end; "" on a Unix socket."""

    def __init__(self, manager: web.Server, port: Port, **settings: Any) -> None:
        super().__init__(manager, **settings)
        self._port = port
        self.body = None
        self.peer = ""
        self._head_timer: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        """Bytes of the unfinished head that have arrived."""
        self._write_timeout = WriteTimeout(self._loop, port.write_timeout_s)
        self._unparsed = bytearray()
        """Received bytes that are parsed in steps, because they have many short lines. Meanwhile nothing more is received."""
        self._next_step: asyncio.Handle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.peer = peer_of(transport)
        self._start_head_timer()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._stop_head_timer()
        self._write_timeout.stop()
        self._unparsed.clear()
        super().connection_lost(exc)
        if self._port.on_end is not None:
            self._port.on_end()

    async def start(self) -> None:
        """Serve the requests of this connection."""
        transport = self.transport
        try:
            await super().start()
        finally:
            self._write_timeout.start(transport)  # aiohttp closes it, and what was not sent keeps it open

    def force_close(self) -> None:
        self._write_timeout.start(self.transport)
        super().force_close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_timeout.start(self.transport)

    def resume_writing(self) -> None:
        self._write_timeout.stop()
        super().resume_writing()

    async def shutdown(self, timeout: float | None = 15.0) -> None:  # noqa: ASYNC109  # aiohttp's signature
        """End within the time that running requests may take. aiohttp would wait as long once more, for a handler that it has not cancelled."""
        late = self._loop.call_later(timeout, self._cancel_handler) if timeout is not None else None
        try:
            await super().shutdown(timeout)
        finally:
            if late is not None:
                late.cancel()

    def _cancel_handler(self) -> None:
        self._handler_waiter = None  # aiohttp ends its wait at the same moment, and may have done so already
        if self._task_handler is not None:
            self._task_handler.cancel()

    def data_received(self, data: bytes) -> None:
        if data and (self._unparsed or self._must_be_split(data)):
            self._unparsed += data
            self._pause_transport_reading()
            if self._next_step is None:
                self._parse_step()
            return
        self._parse(data)

    def _must_be_split(self, data: bytes) -> bool:
        """Return whether parsing the bytes at once could take long: of a body in many small pieces, or many frames."""
        return (self._upgraded and len(data) > FRAMES_AT_ONCE) or has_many_lines(data)

    def _parse_step(self) -> None:
        """Parse some of the bytes that wait; the rest when other connections had their turn."""
        self._next_step = None
        if not self._unparsed or self._reading_paused or self._buffer_paused:
            return  # after a pause, `_resume_transport_reading` goes on
        size = FRAMES_AT_ONCE if self._upgraded else step_size(self._unparsed)
        piece = bytes(self._unparsed[:size])
        del self._unparsed[:size]
        if self._unparsed:
            self._next_step = self._loop.call_soon(self._parse_step)
        self._parse(piece)
        if not self._unparsed and not self._reading_paused and not self._buffer_paused:
            self._resume_transport_reading()

    def _resume_transport_reading(self) -> None:
        """Read on from the socket, but only when everything that was received is parsed."""
        if not self._unparsed:
            super()._resume_transport_reading()
        elif self._next_step is None:
            self._next_step = self._loop.call_soon(self._parse_step)

    def _parse(self, data: bytes) -> None:
        arrived = self._request_count
        super().data_received(data)
        self._end_broken_body()
        if self._request_count != arrived:
            self._stop_head_timer()
        elif self._head_timer is not None or (self._waiter is not None and not self._waiter.done()):
            self._head_bytes += len(data)
            if self._head_timer is None:
                self._start_head_timer()
            self._port.heads.add(self, len(data))
            if self._head_bytes > MOST_HEAD_LINES * self.max_field_size:
                self._refuse_head(long_head(MOST_HEAD_LINES))

    def resume_reading(self, resume_parser: bool = True) -> None:  # aiohttp's signature
        """Read on, if reading was paused. aiohttp asks for it after each piece of a body, and would parse nothing again."""
        if self._reading_paused:
            super().resume_reading(resume_parser)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer a request that could not be parsed, or whose handler failed."""
        if isinstance(exc, ConnectionError):
            raise exc  # the client has gone
        if status < 500:
            return self._port.answer(malformed(exc), self.peer)
        self._port.failed("connection", exc if isinstance(exc, Exception) else RuntimeError())
        if request.writer.output_size > 0:
            raise ConnectionError("the answer has begun; only cutting it off tells the client that it is not whole")
        return self._port.answer(OUR_FAULT, self.peer)

    def log_exception(self, *_: Any, **details: Any) -> None:
        """Count and log a failure by its type alone: aiohttp's text and traceback may quote the request."""
        error = details.get("exc_info")
        if isinstance(error, web.RequestPayloadError | ConnectionError):
            return  # the client's broken body, already answered
        self._port.failed("connection", error if isinstance(error, Exception) else RuntimeError())

    def _end_broken_body(self) -> None:
        """End a body that turns out broken while it is read: aiohttp would leave its reader waiting."""
        if not self._messages or self.body is None or self.body.is_eof():
            return
        if isinstance(getattr(self._messages[-1][0], "exc", None), BaseException):
            self.body.set_exception(web.RequestPayloadError(BAD_BODY))

    def give_up(self) -> None:
        """End the connection, because there are too many unfinished heads."""
        self._end_without_head(too_many_heads())
        self._stop_head_timer()

    def _start_head_timer(self) -> None:
        """Start the time in which a head must arrive."""
        self._head_timer = self._loop.call_later(self._port.header_timeout_s, self._head_is_late)
        self._port.heads.begin(self)

    def _stop_head_timer(self) -> None:
        """Stop the time: the head has arrived, or the connection has ended."""
        self._port.heads.end(self)
        self._head_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_is_late(self) -> None:
        self._head_timer = None
        self._end_without_head(late_head(self._port.header_timeout_s))

    def _end_without_head(self, error: ClientError) -> None:
        """End a connection that waits for a head: with an error if a part of it has arrived, else without a word."""
        if self._head_bytes:
            self._refuse_head(error)
        else:
            self.force_close()

    def _refuse_head(self, error: ClientError) -> None:
        """Send the error to the client, and close. There is no request object yet."""
        answer = self._port.answer(error, self.peer)
        if self.transport is not None:
            self.transport.write(encode_answer(answer))
        self.force_close()


class Connections(web.Server):
    """The server of one port: it makes a `Connection` for each client."""

    def __init__(self, handler: Any, port: Port, **settings: Any) -> None:
        super().__init__(handler, **settings)
        self.port = port

    def __call__(self) -> web.RequestHandler:
        return Connection(self, self.port, loop=self._loop, **self._kwargs)
