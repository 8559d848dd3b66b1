"""A request to an upstream: exactly the headers it is given, and a short body that leaves together with them.

aiohttp's own way from a call to the wire costs a third of passing a small request through: it adds and removes headers of its own, keeps
cookies, follows redirects, and starts a task to write any body. A proxy wants none of that, so `exchange` takes
from aiohttp what it does best, the connection pool, the parser and the response, and leaves out the session.
"""

import asyncio
import ssl
from typing import Any, Final

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.helpers import TimerNoop
from aiohttp.http_writer import StreamWriter
from multidict import CIMultiDict
from yarl import URL

PIECE: Final = 2**18
"""How much of a body is written at once."""
AT_ONCE: Final = 2**20
"""A body up to this size is given to the transport whole, and nobody waits until it has gone."""
ONE_PACKET: Final = 2**17
"""A body up to this size is copied to stand behind its headers; a longer one is written by itself."""
BUFFER: Final = 2**17
"""How much of an answer is read ahead of a slow client."""
LONGEST_LINE: Final = 2**16
"""The longest header an upstream may answer with."""
NONE_ADDED: Final = CIMultiDict((name, None) for name in ("Accept", "Accept-Encoding", "Content-Type", "User-Agent"))
"""The headers that aiohttp would add."""


class Body(aiohttp.Payload):
    """A request body that is all there, written piece by piece: each waits until the upstream has taken the one before.

    aiohttp's own payload of bytes is written in one go and warns of it; one of BytesIO is read in a thread.
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
    """A request that carries the headers it is given and Host, nothing else. The headers become its own."""

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
        # All that aiohttp's own __init__ leaves behind for such a request, at a third of its cost.
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
        """Write the request. A short body goes with the head in one packet, without a task of its own."""
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
    connection = await connector.connect(request, traces=[], timeout=limits)
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
