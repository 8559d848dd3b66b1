"""The stream of the log, which a thread writes: a reader that has stopped reading does not stop the gateway.

A write to a full pipe, a paused terminal or a lost network disk waits for as long as that lasts. So nothing that serves writes the
log itself. Lines that cannot be written are lost and counted.
"""

import atexit
import os
import select
import threading
from collections import deque
from contextlib import suppress
from typing import Final, TextIO

import structlog

log = structlog.get_logger(__name__)

MOST_WAITING: Final = 4 * 2**20
"""Characters that wait for a stream that takes none; further lines are lost. Chosen: some 5,000 requests."""
LAST_S: Final = 1.0
"""Seconds for which the end of the process waits for the remaining lines. Chosen: a stream that takes lines needs milliseconds."""


class LogStream:
    """A stream whose `write` never waits. One without a file descriptor, such as a `StringIO`, is written at once."""

    def __init__(self, stream: TextIO, most_waiting: int = MOST_WAITING) -> None:
        self._stream = stream
        self._most_waiting = most_waiting
        self._descriptor = _descriptor_of(stream)
        self._encoding = getattr(stream, "encoding", None) or "utf-8"
        self._waiting: deque[str] = deque()
        self._size = 0
        """Characters that wait, and those that are being written."""
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self.lost = 0
        """Lines that could not be written."""
        atexit.register(self.finish, LAST_S)

    def write(self, lines: str) -> None:
        """Add whole lines."""
        if self._descriptor is None:
            with suppress(OSError, ValueError):  # the stream is closed; keep serving
                self._stream.write(lines)
                self._stream.flush()
            return
        with self._changed:
            if self._size + len(lines) > self._most_waiting:
                self.lost += lines.count("\n")
                return
            self._size += len(lines)
            self._waiting.append(lines)
            self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._write_all, name="turnfold-log", daemon=True)
                self._thread.start()

    def flush(self) -> None:
        """Do nothing: a thread writes."""

    def finish(self, longest_s: float) -> None:
        """Wait until everything is written, and for at most ``longest_s`` seconds."""
        with self._changed:
            self._changed.wait_for(lambda: not self._size, longest_s)

    def _write_all(self) -> None:
        told = 0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                lines = "".join(self._waiting)
                self._waiting.clear()
            written = self._write_out(lines)
            with self._changed:
                self._size -= len(lines)
                self.lost += 0 if written else lines.count("\n")
                lost = self.lost
                self._changed.notify_all()
            if written and lost > told:
                told = lost
                log.warning("log_lines_lost", since_start=lost)

    def _write_out(self, lines: str) -> bool:
        """Write lines, however long that takes; return whether the stream took them."""
        assert self._descriptor is not None
        rest = memoryview(lines.encode(self._encoding, "backslashreplace"))
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:  # another program has set the shared pipe to non-blocking
                select.select((), (self._descriptor,), ())  # a low number: it was open before anything else
            except (OSError, ValueError):  # the pipe has no reader, or the disk is full
                return False
        return True


def _descriptor_of(stream: TextIO) -> int | None:
    """Return the file descriptor of a stream, None for one in memory."""
    try:
        return stream.fileno()
    except (OSError, ValueError, AttributeError):
        return None
