"""Requests to an upstream with exactly the given headers; a short body leaves in one packet with them.

aiohttp's own way to the wire costs a third of passing a small request through: it adds and removes headers, keeps
cookies, follows redirects, and starts a task to write any body. A proxy needs none of that. `exchange` uses aiohttp's
connection pool, parser and response, and leaves out its session.

Every line that touches aiohttp's inner parts on the way to upstreams is in this module. `unknown_parts` checks that
they are as expected; if not, `gateway.upstream.public_http` is used.
"""

import asyncio
import inspect
import select
import ssl
from typing import Any, Final, cast

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.client_proto import ResponseHandler
from aiohttp.helpers import TimerNoop
from aiohttp.http_writer import StreamWriter
from multidict import CIMultiDict
from yarl import URL

from gateway.upstream.public_http import AUTOMATIC, LONGEST_LINE, MOST_HEADERS

KNOWN: Final = ("3.14",)
"""The aiohttp versions whose inner parts were tested with this module. To add one, run the tests with it installed."""
_PARTS: Final[tuple[tuple[Any, tuple[str, ...]], ...]] = (
    (aiohttp.BaseConnector.connect, ("req", "traces", "timeout")),
    (ResponseHandler.set_response_params, ("skip_payload", "read_until_eof", "auto_decompress", "read_timeout",
                                           "read_bufsize", "max_line_size", "max_field_size", "max_headers")),
    (StreamWriter.write_headers, ("status_line", "headers")),
    (StreamWriter.write, ("chunk", "drain")),
    (aiohttp.ClientResponse.__init__, ("writer", "continue100", "timer", "request_info", "traces", "loop", "session", "stream_writer")),
)  # fmt: skip
"""The functions called here, and the parameters they must have."""
PIECE: Final = 2**18
"""Bytes of a body written at once. Chosen: other connections get their turn in between."""
AT_ONCE: Final = 2**20
"""Bytes. A body up to this size is given to the transport whole, without waiting until it is sent."""
ONE_PACKET: Final = 2**17
"""Bytes. A body up to this size is copied behind its headers; a longer one is written separately."""
BUFFER: Final = 2**17
"""Bytes of an answer that are read ahead of a slow client."""
NONE_ADDED: Final = CIMultiDict((name, None) for name in AUTOMATIC)
"""The headers that aiohttp would add."""


class Body(aiohttp.Payload):
    """A complete request body, written piece by piece: each piece waits until the upstream has taken the one before.

    aiohttp's own bytes payload is written in one go, with a warning; its BytesIO payload is read in a thread.
    """

    _autoclose = True  # nothing to close: bytes in memory
    _value: bytes

    def __init__(self, value: bytes) -> None:
        super().__init__(value)
        self._size = len(value)

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return self._value.decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        writer.send_headers()
        view = memoryview(self._value)
        for start in range(0, len(view), PIECE):
            await writer.write(view[start : start + PIECE])


class Request(aiohttp.ClientRequest):
    """A request with the given headers and Host, nothing else. It takes over the headers object."""

    def __init__(
        self,
        method: str,
        url: URL,
        headers: CIMultiDict[str],
        body: bytes | aiohttp.StreamReader | None,
        *,
        session: aiohttp.ClientSession,
        loop: asyncio.AbstractEventLoop,
        tls: ssl.SSLContext | bool = True,
    ) -> None:
        if isinstance(body, aiohttp.StreamReader):
            super().__init__(method, url, headers=headers, data=body, loop=loop, session=session, ssl=tls)
            return
        # The state that aiohttp's own __init__ creates for such a request, at a third of its cost.
        self.method = method
        self.url = self.original_url = url
        self.headers = headers
        self.loop = loop
        self.response_class = aiohttp.ClientResponse
        self.version = aiohttp.HttpVersion11
        self.chunked = self.compress = self.length = self.auth = self.server_hostname = None
        self.proxy = self.proxy_auth = self.proxy_headers = None
        self._session = session
        self._ssl = tls
        self._timer = TimerNoop()
        self._traces = []
        self._skip_auto_headers = NONE_ADDED
        self._body = None if body is None else Body(body)
        headers["Host"] = url.host_port_subcomponent or ""
        if body is not None or method not in self.GET_METHODS:
            headers["Content-Length"] = str(len(body or b""))

    def update_headers(self, headers: Any) -> None:
        self.headers = headers
        self.headers["Host"] = self.url.host_port_subcomponent or ""

    def update_auto_headers(self, skip_auto_headers: Any) -> None:
        self._skip_auto_headers = NONE_ADDED

    async def send(self, conn: aiohttp.connector.Connection) -> aiohttp.ClientResponse:
        """Write the request. A short body is sent with the head in one packet, without its own task."""
        body, protocol = self._body, conn.protocol
        if not isinstance(body, Body) or (body.size or 0) > AT_ONCE or protocol is None or protocol.writing_paused:
            return await super().send(conn)
        writer = StreamWriter(protocol, self.loop)
        await writer.write_headers(f"{self.method} {self.url.raw_path_qs} HTTP/1.1", self.headers)
        if len(body._value) > ONE_PACKET:
            writer.send_headers()
        await writer.write(body._value, drain=False)
        protocol.start_timeout()
        return aiohttp.ClientResponse(
            self.method,
            self.original_url,
            writer=None,
            continue100=None,
            timer=self._timer,
            request_info=self.request_info,
            traces=[],
            loop=self.loop,
            session=self._session,
            stream_writer=writer,
        )


async def exchange(
    connector: aiohttp.BaseConnector, request: Request, limits: aiohttp.ClientTimeout
) -> aiohttp.ClientResponse:
    """Send a request over a pooled or a new connection and wait for the head of its answer; the body is not decoded."""
    connection = await _connected(connector, request, limits)
    try:
        assert connection.protocol is not None
        connection.protocol.set_response_params(
            skip_payload=request.method == "HEAD",
            read_until_eof=True,
            auto_decompress=False,
            read_timeout=limits.sock_read,
            read_bufsize=BUFFER,
            max_line_size=LONGEST_LINE,
            max_field_size=LONGEST_LINE,
            max_headers=MOST_HEADERS,
        )
        response = await request.send(connection)
        try:
            return await response.start(connection)
        except BaseException:
            response.close()
            raise
    except BaseException:
        connection.close()
        raise


def unknown_parts() -> str:
    """Return the inner part of aiohttp that is not as this module expects, or "" when all are."""
    version = ".".join(aiohttp.__version__.split(".")[:2])
    if version not in KNOWN:
        return f"aiohttp {version} is not one of the known versions ({', '.join(KNOWN)})"
    for function, names in _PARTS:
        missing = [name for name in names if name not in inspect.signature(function).parameters]
        if missing:
            return f"{function.__qualname__} has no parameter {missing[0]}"
    return ""


async def _connected(
    connector: aiohttp.BaseConnector, request: Request, limits: aiohttp.ClientTimeout
) -> aiohttp.connector.Connection:
    """Take a connection from the pool, or open one.

    An idle connection with unread input is closed: those bytes would be taken for the answer to this request, and an
    end of the stream would lose the request.
    """
    while True:
        connection = await connector.connect(request, traces=[], timeout=limits)
        protocol = connection.protocol
        if (
            protocol is None
            or protocol._parser is None
            or not (protocol.should_close or _has_input(protocol.transport))
        ):
            return connection  # a new connection has no parser yet
        connection.close()


def _has_input(transport: asyncio.BaseTransport | None) -> bool:
    """Return whether the socket has bytes, or the end of the stream, that the event loop has not read yet."""
    socket = transport.get_extra_info("socket") if transport is not None else None
    if socket is None or not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(socket.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def end_read_timeout(response: aiohttp.ClientResponse) -> None:
    """Switch off aiohttp's own read timeout for the rest of an answer."""
    if response.connection is not None and response.connection.protocol is not None:
        response.connection.protocol.read_timeout = None


def is_held_back(response: aiohttp.ClientResponse) -> bool:
    """Return whether we paused reading because the client is slow: the upstream is not at fault."""
    transport = response.connection.transport if response.connection else None
    return transport is not None and not cast("asyncio.ReadTransport", transport).is_reading()
