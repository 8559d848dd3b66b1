"""A client's connection: aiohttp's own, with a time limit and a size limit for request heads, and a time limit for a client that does not
read its answer.

Invalid HTTP is answered in JSON and recorded. aiohttp would quote the client's bytes in plain text and log them with a
traceback. A broken header may hold a key, so neither the answer nor the log repeats it.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

from aiohttp import StreamReader, http_exceptions, web

from gateway.serve.incoming.addresses import peer_of
from gateway.serve.incoming.errors import OUR_FAULT, ClientError
from gateway.upstream.steps import has_many_lines, step_size

HEADS: Final = 8
"""Factor: a whole head may be this many times longer than its longest line."""
MOST_UNFINISHED: Final = 2000
"""Connections of one port that may wait for the rest of a head, about 15 KB each; more are a flood, and the oldest goes."""
FRAMES_AT_ONCE: Final = 2**13
"""Bytes of a WebSocket that are parsed in one step: at most 1400 frames, in 3 ms. 256 KB of empty frames took 95 ms."""
MOST_HEAD_BYTES: Final = 16 * 2**20
"""Bytes of all unfinished heads of one port; above it the oldest goes."""
PHRASES: Final = {408: "Request Timeout", 431: "Request Header Fields Too Large", 503: "Service Unavailable"}
CODES: Final = {408: "request_timeout", 431: "headers_too_large", 503: "overloaded"}
LONG_LINE: Final = "The request line or a header is longer than server.max_header."
BAD_BODY: Final = "The request's body is not framed as HTTP demands: a bad chunk, a bad length, or it ended too soon."
BAD_LINE: Final = "The request line is not valid HTTP."
BAD_HEADER: Final = "A header of the request is not valid HTTP."
BAD_REQUEST: Final = "The request is not valid HTTP."
_FAULTS: Final[tuple[tuple[type[BaseException], int, str], ...]] = (
    (http_exceptions.LineTooLong, 431, LONG_LINE),
    (http_exceptions.PayloadEncodingError, 400, BAD_BODY),
    (web.RequestPayloadError, 400, BAD_BODY),
    (http_exceptions.BadStatusLine, 400, BAD_LINE),
    (http_exceptions.BadHttpMethod, 400, BAD_LINE),
    (http_exceptions.InvalidURLError, 400, BAD_LINE),
    (http_exceptions.InvalidHeader, 400, BAD_HEADER),
)
"""Messages for aiohttp's parser errors; the first matching row is used."""

AnswerMalformed = Callable[[ClientError, str], web.Response]
"""Records a request that was never parsed, with the client's address, and returns the answer to it."""
Failed = Callable[[str, Exception], None]
"""Called with a fault of our own: the part and the error."""


def malformed(error: BaseException | None) -> ClientError:
    """Describe the error in invalid HTTP, without quoting it."""
    for kind, status, message in _FAULTS:
        if isinstance(error, kind):
            return ClientError(status, message, code="malformed_request")
    return ClientError(400, BAD_REQUEST, code="malformed_request")


class Heads:
    """The unfinished request heads of one port, the oldest first: together they stay within bounds.

    A head that is whole at once never waits, so a flood of slow ones costs other clients nothing.
    """

    def __init__(self) -> None:
        self._waiting: OrderedDict[Connection, int] = OrderedDict()
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def begin(self, connection: "Connection") -> None:
        """Count a connection that waits for a head."""
        self._waiting.setdefault(connection, 0)
        self._bound()

    def add(self, connection: "Connection", size_bytes: int) -> None:
        """Count bytes of its head."""
        self._waiting[connection] = self._waiting.get(connection, 0) + size_bytes
        self.size_bytes += size_bytes
        self._bound()

    def end(self, connection: "Connection") -> None:
        """Stop counting a connection."""
        self.size_bytes -= self._waiting.pop(connection, 0)

    def _bound(self) -> None:
        while len(self._waiting) > MOST_UNFINISHED or self.size_bytes > MOST_HEAD_BYTES:
            oldest = next(iter(self._waiting))
            self.end(oldest)
            oldest.give_up()


class Connection(web.RequestHandler):
    """One connection. Its timer runs while a request head is awaited: the first one, or one that has begun."""

    __slots__ = (
        "_answer", "_ended", "_failed", "_head_bytes", "_head_timer", "_heads", "_next_step", "_patience_s", "_unparsed",
        "_write_patience_s", "_write_timer", "body", "peer",
    )  # fmt: skip

    body: StreamReader | None
    """The body of the current request."""
    peer: str
    """The address at the other end; "" on a Unix socket."""

    def __init__(
        self,
        manager: web.Server,
        *,
        patience_s: float,
        write_patience_s: float,
        answer: AnswerMalformed,
        failed: Failed,
        heads: Heads,
        ended: Callable[[], None],
        **settings: Any,
    ) -> None:
        super().__init__(manager, **settings)
        self._ended = ended
        self._heads = heads
        self._answer = answer
        self._failed = failed
        self.body = None
        self.peer = ""
        self._patience_s = patience_s
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_patience_s = write_patience_s
        self._write_timer: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._unparsed = bytearray()
        """Received bytes that are parsed in steps, because they have many short lines. Meanwhile nothing more is received."""
        self._next_step: asyncio.Handle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.peer = peer_of(transport)
        self._await_head()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._head_arrived()
        self._stop_write_timer()
        self._unparsed.clear()
        super().connection_lost(exc)
        self._ended()

    async def start(self) -> None:
        """Serve the requests of this connection."""
        transport = self.transport
        try:
            await super().start()
        finally:
            self._await_client(transport)  # aiohttp closes it, and what was not sent keeps it open

    def force_close(self) -> None:
        self._await_client(self.transport)
        super().force_close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_client(self.transport)

    def resume_writing(self) -> None:
        self._stop_write_timer()
        super().resume_writing()

    def _await_client(self, transport: asyncio.WriteTransport | None) -> None:
        """Start the time in which the client must take some of the bytes that wait for it, if there are any."""
        if transport is None or self._write_timer is not None:
            return
        if unsent := transport.get_write_buffer_size():
            self._write_timer = self._loop.call_later(self._write_patience_s, self._check_taken, transport, unsent)

    def _check_taken(self, transport: asyncio.WriteTransport, unsent: int) -> None:
        """Cut off a client that has taken nothing. Closing would not do: it waits until all is sent."""
        self._write_timer = None
        if transport.get_write_buffer_size() >= unsent:
            transport.abort()
        else:
            self._await_client(transport)

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

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
            self._head_arrived()
        elif self._head_timer is not None or (self._waiter is not None and not self._waiter.done()):
            self._head_bytes += len(data)
            if self._head_timer is None:
                self._await_head()
            self._heads.add(self, len(data))
            if self._head_bytes > HEADS * self.max_field_size:
                self._end(431, f"The head of the request is longer than {HEADS} times server.max_header.")

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
            return self._answer(malformed(exc), self.peer)
        self._failed("connection", exc if isinstance(exc, Exception) else RuntimeError())
        if request.writer.output_size > 0:
            raise ConnectionError("the answer has begun; only cutting it off tells the client that it is not whole")
        return self._answer(OUR_FAULT, self.peer)

    def log_exception(self, *_: Any, **details: Any) -> None:
        """Count and log a failure by its type alone: aiohttp's text and traceback may quote the request."""
        error = details.get("exc_info")
        if isinstance(error, web.RequestPayloadError | ConnectionError):
            return  # the client's broken body, already answered
        self._failed("connection", error if isinstance(error, Exception) else RuntimeError())

    def _end_broken_body(self) -> None:
        """End a body that turns out broken while it is read: aiohttp would leave its reader waiting."""
        if not self._messages or self.body is None or self.body.is_eof():
            return
        if isinstance(getattr(self._messages[-1][0], "exc", None), BaseException):
            self.body.set_exception(web.RequestPayloadError(BAD_BODY))

    def give_up(self) -> None:
        """End a connection whose head is unfinished, because there are too many of them."""
        if self._head_bytes:
            self._end(503, "Too many requests have sent only a part of their head. Send yours again, whole.")
        else:
            self.force_close()
        self._head_arrived()

    def _await_head(self) -> None:
        self._head_timer = self._loop.call_later(self._patience_s, self._late)
        self._heads.begin(self)

    def _head_arrived(self) -> None:
        self._heads.end(self)
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
        """Send the reason, and close. There is no request object yet."""
        answer = self._answer(ClientError(status, message, code=CODES[status]), self.peer)
        body = answer.body if isinstance(answer.body, bytes) else b""
        named = {**answer.headers, "Content-Length": str(len(body)), "Connection": "close"}
        lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
        if self.transport is not None:
            self.transport.write(f"HTTP/1.1 {status} {PHRASES[status]}\r\n{lines}\r\n".encode() + body)
        self.force_close()


class Connections(web.Server):
    """The server of one port; ``patience_s`` is the time limit for a request's head, ``write_patience_s`` that for taking some of an answer."""

    def __init__(
        self,
        handler: Any,
        *,
        patience_s: float,
        write_patience_s: float,
        answer: AnswerMalformed,
        failed: Failed,
        **settings: Any,
    ) -> None:
        super().__init__(handler, **settings)
        self.on_end: Callable[[], None] | None = None
        """Called when a connection has ended."""
        self._ours: dict[str, Any] = {
            "patience_s": patience_s, "write_patience_s": write_patience_s, "answer": answer, "failed": failed, "heads": Heads(),
            "ended": self._one_ended,
        }  # fmt: skip

    def __call__(self) -> web.RequestHandler:
        return Connection(self, loop=self._loop, **self._ours, **self._kwargs)

    def _one_ended(self) -> None:
        if self.on_end is not None:
            self.on_end()
