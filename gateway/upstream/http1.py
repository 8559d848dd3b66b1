"""One connection to an upstream: HTTP/1.1, one request at a time.

llhttp (by httptools) finds the parts of an answer. This file decides which of them are an answer to us. A connection is used
again only if the request was sent completely, the answer is complete, and no bytes follow it.
"""

import asyncio
import select
from collections.abc import Callable
from operator import add
from typing import Final, cast

from aiohttp import StreamReader
from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from multidict import CIMultiDict

from gateway.upstream.public_http import LONGEST_LINE, MOST_HEADERS
from gateway.upstream.received import ReceivedResponse
from gateway.upstream.response import AskFailed, BrokenOff, Disconnected, InvalidHttp
from gateway.upstream.sending import AT_ONCE, Body, pieces_of

LONGEST_HEAD: Final = 2**20
"""Bytes of an answer's head, with those of all 1xx before it, and of the trailers behind its body. Chosen: many times what proxies accept."""
FIRST_FINAL: Final = 200
"""Statuses below are about the request and not its answer (RFC 9110 section 15.2)."""


class UpstreamConnection(asyncio.Protocol):
    """One connection. ``freed`` is called with it after each answer, and when it ends."""

    def __init__(self, loop: asyncio.AbstractEventLoop, freed: Callable[["UpstreamConnection"], None]) -> None:
        self._loop = loop
        self._freed = freed
        self._parser: HttpResponseParser | None = _parser(self)
        self._asked: asyncio.Future[ReceivedResponse] | None = None
        self._answer: ReceivedResponse | None = None
        self._head_only = False
        self._reason = b""
        self._fields: list[bytes] = []
        """Names and values by turns."""
        self._sending: asyncio.Task[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._over = True
        """Whether the answer is complete, or none is awaited."""
        self._keeps_alive = True
        self._fresh_parser_needed = False
        self._without_content = 0
        """Bytes that came since the last byte of a body."""
        self.progress = 0
        """Grows with every piece of a body that is sent or arrives, and where an answer's head begins and ends: its bytes one by one, and
        those around the pieces of a body, would bound nothing."""
        self.patience_s: float | None = None
        """How long the upstream may be silent in the current exchange."""
        self.idle_since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass
        self._unread = _poll(transport)

    @property
    def keeps_alive(self) -> bool:
        """Whether the last answer left the connection fit for another request."""
        return self._keeps_alive and not self._transport.is_closing()

    def is_quiet(self) -> bool:
        """Return whether the socket has nothing that the event loop has not read yet: bytes that no request waits for, or an end."""
        return self._unread is None or not self._unread.poll(0)

    @property
    def waits_for_us(self) -> bool:
        """Whether the upstream cannot go on: our client has not sent its body, or has not taken what came."""
        if self._answer is not None and self._answer.held_back:
            return True
        return self._sending is not None and self._writable is None

    def ask(self, head: bytes, body: Body, *, head_only: bool, chunked: bool) -> asyncio.Future[ReceivedResponse]:
        """Send a request; the result is set when the head of its answer is there."""
        self._head_only, self._over, self._without_content = head_only, False, 0
        asked = self._asked = self._loop.create_future()
        if body is None:
            self._transport.write(head)
        elif isinstance(body, bytes) and len(body) <= AT_ONCE:
            self._transport.writelines([head, body])
        else:
            self._transport.write(head)
            self._sending = self._loop.create_task(self._send(body, chunked=chunked), name="upload")
        return asked

    async def _send(self, body: bytes | StreamReader, *, chunked: bool) -> None:
        """Write a long body piece by piece, each when the upstream has taken the one before."""
        try:
            async for piece in pieces_of(body, chunked=chunked):
                self._transport.write(piece)
                self.progress += 1
                if self._writable is not None:
                    await self._writable
            self._sending = None
        except Exception:  # noqa: BLE001  # the client's body broke off, in whatever way; its reader says how
            self._sending = None
            self.end(Disconnected())

    def data_received(self, data: bytes) -> None:
        self._without_content += len(data)
        if self._over or self._parser is None:  # no request waits for it
            self.close()
            return
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self._keeps_alive = False
            if not self._over:
                self.end(InvalidHttp())
                return
        if self._over:
            self._settle()
        elif self._without_content > LONGEST_HEAD or len(self._fields) > 2 * MOST_HEADERS:
            self.end(InvalidHttp())

    def on_message_begin(self) -> None:
        self.progress += 1
        if self._over:
            self._keeps_alive = False  # bytes behind the answer
        self._reason, self._fields = b"", []

    def on_status(self, reason: bytes) -> None:
        self._reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields += (name, value)

    def on_headers_complete(self) -> None:
        assert self._parser is not None
        self.progress += 1
        status = self._parser.get_status_code()
        if self._over or status < FIRST_FINAL:
            return
        reason = self._reason.decode("utf-8", "surrogateescape")
        answer = self._answer = ReceivedResponse(self, status, reason, self._checked_headers())
        self._fields = []
        self._without_content = 0
        if self._asked is not None and not self._asked.done():
            self._asked.set_result(answer)
        if self._head_only:
            self._fresh_parser_needed = True  # llhttp waits for a body
            self._complete()

    def _checked_headers(self) -> CIMultiDict[str]:
        """Return the headers as text, from which their bytes can be had again. Raises InvalidHttp beyond the limits."""
        fields = self._fields
        if self._without_content > LONGEST_LINE:
            longest = max(map(add, map(len, fields[::2]), map(len, fields[1::2])), default=0)
            if max(longest, len(self._reason)) > LONGEST_LINE:
                raise InvalidHttp
        text = b"\n".join(fields).decode("utf-8", "surrogateescape")
        parts = text.split("\n") if fields else []
        if len(fields) > 2 * MOST_HEADERS or len(parts) != len(fields) or "\0" in text:
            raise InvalidHttp
        if " \n" in text or "\t\n" in text or text[-1:] in (" ", "\t"):
            parts = [part.rstrip(" \t") for part in parts]
        return CIMultiDict(list(zip(parts[::2], parts[1::2], strict=True)))  # of a list: a third of the cost

    def on_body(self, piece: bytes) -> None:
        if self._over or self._answer is None:
            self._keeps_alive = False
            return
        self._without_content = 0
        self.progress += 1
        self._answer.feed(piece)

    def on_message_complete(self) -> None:
        if self._answer is not None and not self._over:
            if self._fields:  # trailers: no part of them may reach the next answer
                self._fresh_parser_needed = True
            self._complete()

    def _complete(self) -> None:
        self._over = True
        if self._parser is not None:
            # Without its body llhttp would say of an answer to HEAD that it lasts until the connection ends.
            stays = self._is_kept_open() if self._head_only else self._parser.should_keep_alive()
            self._keeps_alive = self._keeps_alive and stays
        if self._answer is not None:
            self._answer.finish()

    def _is_kept_open(self) -> bool:
        """Return whether the head of the answer allows another request (RFC 9112 section 9.3)."""
        assert self._parser is not None and self._answer is not None
        said = ",".join(self._answer.headers.getall("Connection", ())).lower().split(",")
        options = {option.strip() for option in said}
        return "close" not in options and (self._parser.get_http_version() == "1.1" or "keep-alive" in options)

    def _settle(self) -> None:
        """Get ready for the next request, or close."""
        answer, self._answer, self._asked = self._answer, None, None
        if self._sending is not None:  # answered early: the rest of the body would be read as the next request
            self._keeps_alive = False
        if not self._keeps_alive:
            self.close()
            return
        if answer is not None and answer.held_back:
            self.resume()
        if self._fresh_parser_needed:
            self._parser, self._fresh_parser_needed = _parser(self), False
        self._freed(self)

    def end(self, error: Exception) -> None:
        """End the exchange with an error, and close."""
        asked, self._asked = self._asked, None
        answer, self._answer = self._answer, None
        self._over = True
        if asked is not None and not asked.done():
            asked.set_exception(error)
        elif answer is not None:
            answer.fail(BrokenOff() if isinstance(error, AskFailed) else error)
        self.close()

    def close(self) -> None:
        """Close at once; an answer under way breaks off."""
        self._keeps_alive = False
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None
        if self._answer is not None or (self._asked is not None and not self._asked.done()):
            self.end(Disconnected())
            return
        self._transport.abort()
        self._freed(self)

    def connection_lost(self, exc: Exception | None) -> None:
        answer = self._answer
        if answer is not None and exc is None and ends_with_connection(answer.headers):
            self._complete()
            self._answer = None
        self.resume_writing()
        self.end(Disconnected())
        self._parser = None  # it refers to this connection

    def pause(self) -> None:
        self._transport.pause_reading()

    def resume(self) -> None:
        self.progress += 1
        self._transport.resume_reading()

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        writable, self._writable = self._writable, None
        if writable is not None and not writable.done():
            writable.set_result(None)


def ends_with_connection(headers: CIMultiDict[str]) -> bool:
    """Return whether a body without any other end lasts until the connection is closed (RFC 9112 section 6.3)."""
    coding = ",".join(headers.getall("Transfer-Encoding", ())).rpartition(",")[2].strip().lower()
    return coding != "chunked" and (bool(coding) or "Content-Length" not in headers)


def _parser(connection: UpstreamConnection) -> HttpResponseParser:
    """Return a parser that accepts what servers are known to send; lengths and chunks stay strict."""
    parser = HttpResponseParser(connection)
    parser.set_dangerous_leniencies(
        lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
    )
    return parser


def _poll(transport: asyncio.BaseTransport) -> "select.poll | None":
    """Return what tells whether a socket has bytes, or an end, that the event loop has not read yet; None on Windows."""
    socket = transport.get_extra_info("socket")
    if socket is None or not hasattr(select, "poll"):
        return None
    poll = select.poll()
    poll.register(socket.fileno(), select.POLLIN)
    return poll
