"""Read an upstream's answer just far enough to know whether it is a refusal."""

import asyncio
import re
from collections.abc import Callable, Iterator
from typing import Final, Self

import msgspec
from aiohttp import hdrs

from gateway.context.life.replies import Refusal, Reply
from gateway.serve.incoming.encoding import CannotDecodeError, decoder_for
from gateway.serve.incoming.errors import Failed
from gateway.upstream.client import Target, UpstreamUnreachable
from gateway.upstream.refusals import refusal_from
from gateway.upstream.response import Response
from gateway.upstream.streams import is_lines, is_stream, reader_for
from gateway.wire.chat import CHAT
from gateway.wire.format import Format
from providers.ndjson import Lines
from providers.sse import Event, Events

LONGEST_ERROR: Final = 2**20
"""Bytes of an error's body that are read. Real ones have a few KB, a web page somewhat more."""
LONGEST_HELD: Final = 2**16
"""Bytes of a plain JSON answer that is held until it is complete: it may be an error with status 200."""
LONGEST_HEAD: Final = 2**18
"""Bytes of a stream that are held until it carries content."""
READ_AT_ONCE: Final = 2**10
"""Bytes of a stream's beginning that are read in one step: at most 150 events without content, in 3 ms. 256 KB of them took 350 ms."""
EVENT_FIELDS: Final = frozenset({b"", b"data", b"event", b"id", b"retry"})
"""The fields that a line of an event stream may have; the empty one is that of a comment."""
LONGEST_SIGN: Final = 64
"""Bytes of a sign that is looked for in an answer, at most."""
LONGEST_HOLD_S: Final = 5.0
"""Seconds from a stream's first byte in which it is held; see `LONGEST_HEAD`."""


class Answer(msgspec.Struct, eq=False):
    """The start of an answer: its head, the bytes held so far, and what they say about size."""

    target: Target
    response: Response
    format: Format = CHAT
    held: bytes = b""
    text: bytes = b""
    """The held bytes, decoded; of a stream, the last event that was read."""
    complete: bool = False
    """No bytes follow the held ones."""
    refusal: Refusal | None = None
    empty_stream: bool = False
    """A stream that ended without an event: some servers refuse long requests this way (case 123)."""
    status: int = 0
    """The answer's status; set by its head, as `is_stream` is."""
    is_stream: bool = False

    def __post_init__(self) -> None:
        self.status = self.response.status
        kind = self.response.headers.get(hdrs.CONTENT_TYPE, "")
        self.is_stream = is_stream(self.format, kind)

    @property
    def is_web_page(self) -> bool:
        """Whether the answer is a page for people, as a wrong address or a proxy in between sends it."""
        return self.response.headers.get(hdrs.CONTENT_TYPE, "").lower().startswith("text/html")

    @property
    def is_in_lines(self) -> bool:
        """Whether the answer is a stream of JSON values, one in a line."""
        return is_lines(self.response.headers.get(hdrs.CONTENT_TYPE, ""))

    def reply(self) -> Reply:
        """Return the part of the answer that decisions need."""
        return Reply(self.status, self.refusal, self.text, self.empty_stream, self)

    def retry_after_s(self) -> float | None:
        """Return the seconds of ``retry-after``; HTTP dates are ignored."""
        value = self.response.headers.get(hdrs.RETRY_AFTER, "").strip()
        return float(value) if re.fullmatch(r"[0-9]{1,9}(?:\.[0-9]{1,9})?", value) else None

    def hold_whole(self) -> bool:
        """Hold the whole answer if it has arrived, and return whether it has."""
        if self.response.complete:
            self.held, self.complete = self.response.take(), True
        return self.complete

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close what was not read to its end, also where a part of ours failed."""
        self.drop()

    def drop(self) -> None:
        """Close the connection, unless the answer was complete and has already returned it."""
        self.response.close()


async def peek(target: Target, response: Response, format: Format, failed: Failed) -> Answer:
    """Read an answer as far as needed to recognise a refusal.

    Errors are read completely, a plain answer is held while it is short, a stream until it carries content (comments,
    pings and roles are not content). Raises UpstreamUnreachable when the upstream breaks off before that.
    """
    answer = Answer(target, response, format)
    try:
        if response.status >= 400:
            await hold(answer, LONGEST_ERROR)
            answer.text = readable(response, answer.held)
            answer.refusal = _refusal(answer, answer.text, failed)
        elif answer.is_stream:
            await _hold_preamble(answer, failed)
        elif response.status == 200:
            if not answer.hold_whole():
                await hold(answer, LONGEST_HELD)
            answer.text = readable(response, answer.held)
            if answer.complete:
                answer.refusal = _refusal(answer, answer.text, failed)
    except OSError as error:
        response.close()
        timed_out = isinstance(error, TimeoutError)
        reason = "stopped answering" if timed_out else "broke off in the middle of its answer"
        raise UpstreamUnreachable(target.name, reason, timed_out=timed_out) from error
    except BaseException:
        response.close()
        raise
    return answer


def _refusal(answer: Answer, said: bytes, failed: Failed) -> Refusal | None:
    """Return what the upstream says about size, as the core's value. A bug in reading counts as no statement."""
    try:
        return refusal_from(answer.target.provider, answer.format, answer.status, said)
    except Exception as error:  # noqa: BLE001  # promise 6: the answer is forwarded, whatever is in it
        failed("refusal", error)
        return None


async def hold(answer: Answer, longest: int) -> None:
    """Hold more of an answer, until it is complete or at least ``longest`` bytes are held. What came before a failure is held, too."""
    held = [answer.held]
    size = len(answer.held)
    try:
        while size < longest and not answer.complete:
            piece = await answer.response.next_piece()
            answer.complete = not piece
            held.append(piece)
            size += len(piece)
    finally:
        answer.held = b"".join(held)


async def hold_until(answer: Answer, sign: re.Pattern[bytes], longest: int) -> bool:
    """Hold more of an answer, until it has a sign of at most `LONGEST_SIGN` bytes, is complete, or ``longest`` bytes are held or decoded. Return
    whether it has the sign. Each byte is decoded and searched once, however small the pieces are."""
    decode = decoder(answer.response)
    held, end = [answer.held], b""
    size = decoded = 0
    try:
        while max(size, decoded) < longest and not answer.complete:
            piece = await answer.response.next_piece()
            answer.complete = not piece
            held.append(piece)
            size += len(piece)
            text = decode(piece)
            decoded += len(text)
            if sign.search(end + text):
                return True
            end = (end + text)[-LONGEST_SIGN:]
    finally:
        answer.held = b"".join(held)
    return False


async def _hold_preamble(answer: Answer, failed: Failed) -> None:
    """Hold a stream until an event is a refusal or carries content, or until a limit is reached."""
    events, decode = reader_for(answer.format), decoder(answer.response)
    deadline: float | None = None
    has_event = False
    while len(answer.held) < LONGEST_HEAD:
        chunk = await _next_piece(answer.response, deadline)
        if chunk is None:
            return
        if deadline is None:
            deadline = asyncio.get_running_loop().time() + LONGEST_HOLD_S
        answer.held += chunk
        answer.complete = not chunk
        for step, arrived in enumerate(_in_steps(events, decode(chunk)) if chunk else [events.close()]):
            if step:
                await asyncio.sleep(0)  # others get their turn
            for event in arrived:
                has_event = True
                answer.text = event.data
                answer.refusal = _refusal(answer, event.data, failed)
                if answer.refusal is not None or not _is_preamble(answer, event.data, failed):
                    return
        if answer.complete:
            if not has_event:
                _read_without_events(answer, failed)
            return


def _in_steps(events: Events | Lines, text: bytes) -> Iterator[list[Event]]:
    """Yield the events in the next bytes of a stream, those of `READ_AT_ONCE` bytes at a time."""
    for start in range(0, len(text), READ_AT_ONCE):
        yield events.feed(text[start : start + READ_AT_ONCE])


def _read_without_events(answer: Answer, failed: Failed) -> None:
    """Read a stream without events: it is empty, or some servers' JSON under a stream's type."""
    text = readable(answer.response, answer.held)
    answer.empty_stream = all(line.partition(b":")[0].strip() in EVENT_FIELDS for line in text.splitlines())
    if not answer.empty_stream:
        answer.text = text
        answer.refusal = _refusal(answer, text, failed)


async def _next_piece(response: Response, deadline: float | None) -> bytes | None:
    """Return the next bytes, empty at the end; None when none came before the deadline."""
    if deadline is None:
        return await response.next_piece()
    try:
        async with asyncio.timeout_at(deadline) as limit:
            return await response.next_piece()
    except TimeoutError:
        if limit.expired():
            return None
        raise


def _is_preamble(answer: Answer, data: bytes, failed: Failed) -> bool:
    try:
        return answer.format.is_preamble(data)
    except Exception as error:  # noqa: BLE001  # promise 6: an unreadable event is forwarded
        failed("preamble", error)
        return False


def readable(response: Response, body: bytes) -> bytes:
    """Return a decoded copy of a compressed body; a body that cannot be decoded is returned unchanged."""
    return decoder(response)(body) if hdrs.CONTENT_ENCODING in response.headers else body


def decoder(response: Response, largest: int = LONGEST_ERROR) -> Callable[[bytes], bytes]:
    """Return a function that decodes a body piece by piece for our own reading; forwarded bytes stay encoded.

    ``largest`` is how many bytes it returns for one piece: a small piece may hold gigabytes. The rest comes with the next piece, unless
    as much waits already; then nothing more is read.
    """
    found = decoder_for(response.headers)
    if found is None:
        return _as_is

    def decode(chunk: bytes) -> bytes:
        if found.waiting > largest:
            return b""
        try:
            return found.decode(chunk, largest)
        except CannotDecodeError:
            return b""

    return decode


def _as_is(chunk: bytes) -> bytes:
    return chunk
