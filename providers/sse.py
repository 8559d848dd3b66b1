"""Server-sent events: an incremental parser whose result does not depend on how the bytes are split.

It follows the WHATWG rules that matter to a chat stream. Lines end in LF, CR or CRLF; a blank line ends an event; lines
that begin with a colon are comments; ``data`` lines are joined by LF; one space after the colon is dropped. ``id`` and
``retry`` are ignored. It differs in two ways, both for servers that fail: an unfinished event at the end of the stream
counts as an event (`close`), and a line ``error: {...}``, which older llama-servers send, becomes an event named error.
"""

from typing import Final

import msgspec

MAX_EVENT: Final = 8 * 1024 * 1024
"""Bytes. A longer event is dropped, to bound memory. Chosen: real events stay far below."""


class Event(msgspec.Struct, frozen=True):
    """One event: its name (``""`` when it has none) and its data."""

    event: str
    data: bytes


class Events:
    """Parse events from a stream that arrives in pieces."""

    __slots__ = ("_after_cr", "_data", "_dropping", "_has_data", "_limit", "_line", "_name", "_size", "_started")

    def __init__(self, limit: int = MAX_EVENT) -> None:
        self._limit = limit
        self._line = bytearray()
        """The current line, without its end."""
        self._after_cr = False
        """The last byte was a CR: a following LF belongs to the same line end."""
        self._started = False
        self._name = ""
        self._data: list[bytes] = []
        self._has_data = False
        self._size = 0
        self._dropping = False

    def feed(self, chunk: bytes) -> list[Event]:
        """Take the next bytes; return the events they complete."""
        events: list[Event] = []
        if not chunk:
            return events
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        *lines, rest = _split_lines(chunk)
        for piece in lines:
            self._grow(piece)
            self._end_line(events)
        self._grow(rest)
        return events

    def close(self) -> list[Event]:
        """Take the end of the stream; return an unfinished event, if there is one."""
        events: list[Event] = []
        if self._line:
            self._end_line(events)
        self._dispatch(events)
        return events

    def _grow(self, piece: bytes) -> None:
        if not self._dropping and self._size + len(self._line) + len(piece) > self._limit:
            self._dropping = True
            self._data.clear()
        if self._dropping:
            # Only whether the line is empty still matters: a blank line ends the dropped event.
            self._line[:] = b":" if self._line or piece else b""
        else:
            self._line += piece

    def _end_line(self, events: list[Event]) -> None:
        line = bytes(self._line)
        self._line.clear()
        if not self._started:
            self._started = True
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            self._dispatch(events)
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field in (b"data", b"error"):
            self._data.append(value)
            self._has_data = True
            self._size += len(value) + 1
            if field == b"error":
                self._name = "error"
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")

    def _dispatch(self, events: list[Event]) -> None:
        if self._has_data and not self._dropping:
            events.append(Event(self._name, b"\n".join(self._data)))
        self._name, self._data, self._has_data, self._size, self._dropping = "", [], False, 0, False


def _split_lines(chunk: bytes) -> list[bytes]:
    """Split at LF, CR and CRLF; the last piece is the unfinished line."""
    if b"\r" in chunk:
        chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return chunk.split(b"\n")
