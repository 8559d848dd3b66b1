"""Streams of JSON values, one in a line, as Ollama sends them: an incremental parser like that of `providers.sse`."""

from typing import Final

from providers.sse import MAX_EVENT, Event

MEDIA_TYPE: Final = "application/x-ndjson"
"""The content type of such a stream: https://github.com/ollama/ollama/blob/main/docs/api.md#streaming-responses"""


class Lines:
    """Parse a stream that arrives in pieces. Each line that is not blank is an event without a name."""

    __slots__ = ("_dropping", "_limit", "_line")

    def __init__(self, limit: int = MAX_EVENT) -> None:
        self._limit = limit
        self._line = bytearray()
        """The current line, without its end."""
        self._dropping = False
        """The current line is longer than the limit: it is no event."""

    def feed(self, chunk: bytes) -> list[Event]:
        """Take the next bytes; return the events they complete."""
        events: list[Event] = []
        *lines, rest = chunk.split(b"\n")
        for piece in lines:
            self._grow(piece)
            self._end_line(events)
        self._grow(rest)
        return events

    def close(self) -> list[Event]:
        """Take the end of the stream; return the event of an unfinished line, if there is one."""
        events: list[Event] = []
        self._end_line(events)
        return events

    def _grow(self, piece: bytes) -> None:
        if self._dropping or len(self._line) + len(piece) > self._limit:
            self._dropping = True
            self._line.clear()
        else:
            self._line += piece

    def _end_line(self, events: list[Event]) -> None:
        line = bytes(self._line).strip()
        if line and not self._dropping:
            events.append(Event("", line))
        self._line.clear()
        self._dropping = False
