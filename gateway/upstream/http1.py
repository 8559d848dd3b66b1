"""One connection to an upstream: HTTP/1.1, one request at a time.

llhttp (through httptools) parses what arrives. This file decides which parts belong to the answer of our request. A connection is
reused only if the request was sent completely, the answer is complete, and no bytes follow it.
"""

import asyncio
import select
from collections.abc import Callable
from functools import lru_cache
from operator import add
from typing import Final, cast

from aiohttp import StreamReader, hdrs
from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from multidict import CIMultiDict, istr

from gateway.upstream.many_lines import has_many_lines, step_size
from gateway.upstream.public_http import LONGEST_LINE, MOST_HEADERS
from gateway.upstream.received import ReceivedResponse
from gateway.upstream.response import AskFailed, BrokenOff, Disconnected, InvalidHttp
from gateway.upstream.sending import AT_ONCE, BegunStream, Body, pieces_of

LONGEST_HEAD: Final = 2**20
"""Bytes of an answer's head, with those of all 1xx before it, and of the trailers behind its body. Chosen: many times what proxies accept."""
NAMES_KEPT: Final = 128
"""Names of headers that are remembered as `istr`, with their small letters: an upstream sends the same some 25 each time. At most 8 MB."""
FIRST_STATUS: Final = 100
"""There are no lower ones."""
FIRST_FINAL_STATUS: Final = 200
"""Lower statuses announce that an answer will follow (RFC 9110 section 15.2)."""

_name: Final = lru_cache(maxsize=NAMES_KEPT)(istr)


class UpstreamConnection(asyncio.Protocol):
    """One connection. ``on_free`` is called with it after each answer, and when the connection ends."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_free: Callable[["UpstreamConnection"], None]) -> None:
        self._loop = loop
        self._on_free = on_free
        self._parser: HttpResponseParser | None = _parser(self)
        self._head_arrived: asyncio.Future[ReceivedResponse] | None = None
        self._answer: ReceivedResponse | None = None
        self._head_only = False
        self._reason = b""
        self._fields: list[bytes] = []
        """Header names and values alternately, of the answer that is being parsed."""
        self._upload: asyncio.Task[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._is_complete = True
        """Whether no bytes are expected: the answer is complete, or there is no request."""
        self._keeps_alive = True
        self._fresh_parser_needed = False
        self._unparsed = bytearray()
        """Received bytes that are parsed in steps, because they have many short lines. Meanwhile nothing more is received."""
        self._bytes_without_content = 0
        """Bytes received since the last byte of a body: heads, trailers and framing."""
        self.progress = 0
        """A counter that `Patience` watches. It grows with each piece of a body that is sent or arrives, and at the start and the end of an
        answer's head. It does not grow with other bytes: an upstream could send those for ever, one at a time."""
        self.patience_s: float | None = None
        """Seconds for which the upstream may be silent in the current exchange; None for no limit."""
        self.idle_since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass
        self._unread = _poll(transport)

    @property
    def keeps_alive(self) -> bool:
        """Whether the connection can be used for another request after the last answer."""
        return self._keeps_alive and not self._transport.is_closing()

    def is_quiet(self) -> bool:
        """Return whether the socket has no unread input. Input without a request is unrequested bytes, or the end of the stream."""
        return self._unread is None or not self._unread.poll(0)

    @property
    def waits_for_us(self) -> bool:
        """Whether the upstream waits for our client: for the rest of the request's body, or until the client takes the answer."""
        if self._answer is not None and self._answer.held_back:
            return True
        return self._upload is not None and self._writable is None

    def ask(self, head: bytes, body: Body, *, head_only: bool, chunked: bool) -> asyncio.Future[ReceivedResponse]:
        """Send a request; the result is set when the head of its answer has arrived."""
        self._head_only, self._is_complete, self._bytes_without_content = head_only, False, 0
        head_arrived = self._head_arrived = self._loop.create_future()
        if body is None:
            self._transport.write(head)
        elif isinstance(body, bytes) and len(body) <= AT_ONCE:
            self._transport.writelines([head, body])
        else:
            self._transport.write(head)
            self._upload = self._loop.create_task(self._send(body, chunked=chunked), name="upload")
        return head_arrived

    async def _send(self, body: bytes | StreamReader | BegunStream, *, chunked: bool) -> None:
        """Write a long body piece by piece. Each piece waits until the transport has sent the one before."""
        try:
            async for piece in pieces_of(body, chunked=chunked):
                self._transport.write(piece)
                self.progress += 1
                if self._writable is not None:
                    await self._writable
            self._upload = None
        except Exception:  # noqa: BLE001  # the client's body broke off, in whatever way; its reader says how
            self._upload = None
            self.end(Disconnected())

    def data_received(self, data: bytes) -> None:
        if self._unparsed or has_many_lines(data):
            waits_for_step = bool(self._unparsed)
            self._unparsed += data
            self._transport.pause_reading()
            if not waits_for_step:
                self._parse_step()
            return
        self._parse(data)

    def _parse_step(self) -> None:
        """Parse some of the bytes that wait; the rest when other connections had their turn."""
        if not self._unparsed:
            return  # the connection was closed
        size = step_size(self._unparsed)
        piece = bytes(self._unparsed[:size])
        del self._unparsed[:size]
        if self._unparsed:
            self._loop.call_soon(self._parse_step)
        self._parse(piece)
        is_held_back = self._answer is not None and self._answer.held_back
        if not self._unparsed and not is_held_back and not self._transport.is_closing():
            self._transport.resume_reading()

    def _parse(self, data: bytes) -> None:
        self._bytes_without_content += len(data)
        if self._is_complete or self._parser is None:  # no request waits for it
            self.close()
            return
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self._keeps_alive = False
            if not self._is_complete:
                self.end(InvalidHttp())
                return
        if self._is_complete:
            self._finish_exchange()
        elif self._bytes_without_content > LONGEST_HEAD or len(self._fields) > 2 * MOST_HEADERS:
            self.end(InvalidHttp())

    def on_message_begin(self) -> None:
        self.progress += 1
        if self._is_complete:
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
        if status < FIRST_STATUS:
            raise InvalidHttp
        if self._is_complete or status < FIRST_FINAL_STATUS:
            return
        reason = self._reason.decode("utf-8", "surrogateescape")
        answer = self._answer = ReceivedResponse(self, status, reason, self._checked_headers())
        self._fields = []
        self._bytes_without_content = 0
        if self._head_arrived is not None and not self._head_arrived.done():
            self._head_arrived.set_result(answer)
        if self._head_only:
            self._fresh_parser_needed = True  # llhttp waits for a body
            self._complete()

    def _checked_headers(self) -> CIMultiDict[str]:
        """Return the headers as text that encodes back to the same bytes. Raises InvalidHttp beyond the limits."""
        fields = self._fields
        if self._bytes_without_content > LONGEST_LINE:
            longest = max(map(add, map(len, fields[::2]), map(len, fields[1::2])), default=0)
            if max(longest, len(self._reason)) > LONGEST_LINE:
                raise InvalidHttp
        text = b"\n".join(fields).decode("utf-8", "surrogateescape")
        parts = text.split("\n") if fields else []
        if len(fields) > 2 * MOST_HEADERS or len(parts) != len(fields) or "\0" in text:
            raise InvalidHttp
        if " \n" in text or "\t\n" in text or text[-1:] in (" ", "\t"):
            parts = [part.rstrip(" \t") for part in parts]
        # Of a list: a third of the cost.
        return CIMultiDict(list(zip(map(_name, parts[::2]), parts[1::2], strict=True)))

    def on_body(self, piece: bytes) -> None:
        if self._is_complete or self._answer is None:
            self._keeps_alive = False
            return
        self._bytes_without_content = 0
        self.progress += 1
        self._answer.feed(piece)

    def on_message_complete(self) -> None:
        if self._answer is not None and not self._is_complete:
            if self._fields:  # trailers: no part of them may reach the next answer
                self._fresh_parser_needed = True
            self._complete()

    def _complete(self) -> None:
        """End the answer, and decide whether the connection can be kept."""
        self._is_complete = True
        if self._parser is not None:
            # For an answer to HEAD llhttp would say that its body lasts until the connection ends.
            stays = self._may_keep_alive() if self._head_only else self._parser.should_keep_alive()
            self._keeps_alive = self._keeps_alive and stays
        if self._answer is not None:
            self._answer.finish()

    def _may_keep_alive(self) -> bool:
        """Return whether the head of the answer allows another request (RFC 9112 section 9.3)."""
        assert self._parser is not None and self._answer is not None
        said = ",".join(self._answer.headers.getall(hdrs.CONNECTION, ())).lower().split(",")
        options = {option.strip() for option in said}
        return "close" not in options and (self._parser.get_http_version() == "1.1" or "keep-alive" in options)

    def _finish_exchange(self) -> None:
        """Prepare the connection for its next request, or close it."""
        answer, self._answer, self._head_arrived = self._answer, None, None
        if self._unparsed or self._upload is not None:
            # Bytes behind the answer, or an early answer: the rest of our body would be read as the next request.
            self._keeps_alive = False
        if not self._keeps_alive:
            self.close()
            return
        if answer is not None and answer.held_back:
            self.resume()
        if self._fresh_parser_needed:
            self._parser, self._fresh_parser_needed = _parser(self), False
        self._on_free(self)

    def end(self, error: Exception) -> None:
        """End the exchange with an error, and close."""
        head_arrived, self._head_arrived = self._head_arrived, None
        answer, self._answer = self._answer, None
        self._is_complete = True
        if head_arrived is not None and not head_arrived.done():
            head_arrived.set_exception(error)
        elif answer is not None:
            answer.fail(BrokenOff() if isinstance(error, AskFailed) else error)
        self.close()

    def close(self) -> None:
        """Close at once. An unfinished answer fails."""
        self._keeps_alive = False
        self._unparsed.clear()
        if self._upload is not None:
            self._upload.cancel()
            self._upload = None
        if self._answer is not None or (self._head_arrived is not None and not self._head_arrived.done()):
            self.end(Disconnected())
            return
        self._transport.abort()
        self._on_free(self)

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
        if not self._unparsed:
            self._transport.resume_reading()

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        writable, self._writable = self._writable, None
        if writable is not None and not writable.done():
            writable.set_result(None)


def ends_with_connection(headers: CIMultiDict[str]) -> bool:
    """Return whether the end of an answer's body is the end of the connection (RFC 9112 section 6.3)."""
    coding = ",".join(headers.getall(hdrs.TRANSFER_ENCODING, ())).rpartition(",")[2].strip().lower()
    return coding != "chunked" and (bool(coding) or hdrs.CONTENT_LENGTH not in headers)


def _parser(connection: UpstreamConnection) -> HttpResponseParser:
    """Return a parser that tolerates known deviations of servers, but none in lengths and chunks."""
    parser = HttpResponseParser(connection)
    parser.set_dangerous_leniencies(
        lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
    )
    return parser


def _poll(transport: asyncio.BaseTransport) -> "select.poll | None":
    """Return a poll object that reports unread input of a socket; None on Windows."""
    socket = transport.get_extra_info("socket")
    if socket is None or not hasattr(select, "poll"):
        return None
    poll = select.poll()
    poll.register(socket.fileno(), select.POLLIN)
    return poll
