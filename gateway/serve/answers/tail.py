"""The last bytes of an answer, and what they say: its usage, whether it is complete, and whether it ends in an error."""

import re
from typing import Any, Final

import msgspec

from gateway.serve.answers.answer import Answer, readable
from gateway.serve.incoming.errors import Failed
from gateway.upstream.streams import reader_for
from gateway.wire.format import Format
from providers.record import Usage
from providers.sse import Event, Events
from providers.usage import read_output

STREAM_TAIL: Final = 2**14
"""Bytes kept of the end of a stream: usage is in its last chunk."""
LONGEST_READ_ALONG: Final = 2**22
"""Bytes kept of an answer that is not a stream, because usage is near its end, and of a stream once its last event has begun. Chosen: an
image in it has one to three million."""
MOST_LINES: Final = 512
"""Lines of a stream's end that are read as events. The usage is in one of the last ten; 300,000 events in 4 MB took 0.7 s."""

LAST_EVENTS: Final = 3
"""Events at the end of a stream that may say what was made: in Messages the last but one, in chat completions the last but two."""


class Tail:
    """The last ``keep`` bytes of an answer, in the pieces in which they arrived; `LONGEST_READ_ALONG` from where ``last_event`` is found."""

    __slots__ = ("_keep", "_last_event", "_pieces", "_size")

    def __init__(self, keep: int, last_event: re.Pattern[bytes] | None = None) -> None:
        self._keep = keep
        self._last_event = last_event
        self._pieces: list[bytes] = []  # a deque takes 600 bytes more, for each stream
        self._size = 0

    def add(self, piece: bytes) -> None:
        """Add the next piece, and drop pieces that are too far back."""
        if self._last_event is not None and self._last_event.search(piece):
            self._keep, self._last_event = LONGEST_READ_ALONG, None
        self._pieces.append(piece)
        self._size += len(piece)
        while self._pieces and self._size - len(self._pieces[0]) >= self._keep:
            self._size -= len(self._pieces.pop(0))

    def text(self) -> bytes:
        return b"".join(self._pieces)[-self._keep :] if self._keep else b""


def tail_of(answer: Answer) -> Tail:
    """Return an empty tail that will keep as many of an answer's last bytes as are needed to read its usage."""
    return Tail(STREAM_TAIL, answer.format.long_last_event) if answer.is_stream else Tail(LONGEST_READ_ALONG)


def has_last_event(answer: Answer, tail: bytes, failed: Failed) -> bool:
    """Return whether these last bytes of a stream end in the last event of an answer; false after a bug in our reading."""
    try:
        last = next(reversed(_finished(answer.format, _last_lines(tail))), None)
        return answer.is_stream and last is not None and answer.format.is_end(last.data)
    except Exception as error:  # noqa: BLE001  # promise 6: nothing after a good answer may spoil it
        failed("end", error)
        return False


def last_events(tail: bytes) -> list[bytes]:
    """Return the data of the last events in these last bytes of a stream: the one that ends an answer may be followed by another."""
    text = _last_lines(tail).rstrip(b"\n")
    return [
        event.data for event in Events().feed(b"\n\n".join([*text.rsplit(b"\n\n", LAST_EVENTS)[-LAST_EVENTS:], b""]))
    ]


def ends_in_error(answer: Answer, tail: bytes, failed: Failed) -> bool:
    """Return whether a stream ends in an error of the upstream, after its status was sent; false after a bug in our reading."""
    try:
        may_be_one = answer.is_stream and (b'"error"' in tail or b"response.failed" in tail)
        return may_be_one and any(map(_is_error, _finished(answer.format, _last_lines(tail))[-2:]))
    except Exception as error:  # noqa: BLE001  # promise 6
        failed("end", error)
        return False


def _finished(format: Format, text: bytes) -> list[Event]:
    """Return the events in the end of a stream that are finished. An empty line ends an event; JSON in a line ends with itself."""
    events = reader_for(format)
    found = events.feed(text)
    return [*found, *events.close()] if format.in_lines else found


def _is_error(event: Event) -> bool:
    """Return whether an event reports an error: a chunk with ``error`` (chat), or an event of that type (Messages, Responses)."""
    try:
        fault = _fault(event.data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):  # such as [DONE]
        return False
    return bool(fault.error) or fault.type in ("error", "response.failed")


class _Fault(msgspec.Struct):
    """The members of an event that show whether it reports an error. The decoder skips the others: the last event of Responses has the whole answer."""

    type: Any = None
    error: Any = None


_fault: Final = msgspec.json.Decoder(_Fault).decode


def usage_in(answer: Answer, tail: bytes, failed: Failed) -> Usage | None:
    """Return the billed tokens stated at the end of an answer, which is decoded; None without them, or after a bug in our
    reading."""
    if answer.status != 200:
        return None
    try:
        return _stream_usage(answer, tail) if answer.is_stream else _plain_usage(answer, tail)
    except Exception as error:  # noqa: BLE001  # promise 6: nothing after a good answer may spoil it
        failed("usage", error)
        return None


def _plain_usage(answer: Answer, tail: bytes) -> Usage | None:
    return answer.target.provider.read_usage(answer.text if answer.complete else tail)


def _stream_usage(answer: Answer, tail: bytes) -> Usage | None:
    """Return the usage of the last event that states one. In formats whose first event states the prompt, its numbers are joined with the
    output that a later event states."""
    events = _with_usage(answer.format, _last_lines(tail))
    read_usage = answer.target.provider.read_usage
    last = next(filter(None, map(read_usage, reversed(events))), None)
    if not answer.format.usage_in_first_event:
        return last
    first = next(
        filter(None, map(read_usage, _with_usage(answer.format, readable(answer.response, answer.held)))), None
    )
    if first is None:
        return last
    outputs = (tokens for data in reversed(events) if (tokens := read_output(data)) is not None)
    return Usage(first.prompt, next(outputs, first.completion), first.cached, first.written)


def _last_lines(text: bytes) -> bytes:
    """Return the last lines of a piece of a stream."""
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return text if text.count(b"\n") <= MOST_LINES else b"\n".join(text.rsplit(b"\n", MOST_LINES)[1:])


def _with_usage(format: Format, text: bytes) -> list[bytes]:
    """Return the data of the events with a usage in a piece of a stream, in order."""
    sign = format.usage_sign
    if sign not in text:
        return []
    events = reader_for(format)
    return [event.data for event in [*events.feed(text), *events.close()] if sign in event.data]
