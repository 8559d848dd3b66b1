"""Distribute client connections to workers: each new connection goes to the worker that has the fewest, if it shows signs of life.

Only the supervisor listens. If every worker listened (SO_REUSEPORT), the kernel would choose a worker by a hash of the addresses. Then two
clients with one connection each would share a worker half of the time, and a dying worker would lose the connections that it has not accepted.
"""

import os
import selectors
import socket
import stat
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from typing import Final

import msgspec

from gateway.config import Server
from gateway.serve.dealt import AT_ONCE, ENDED, READY
from gateway.serve.listening import BACKLOG

PAUSE_S: Final = 0.1
"""Pause after a connection that could not be accepted. Without free file descriptors each try fails at once, and would use a whole core."""
REPORTS_AT_ONCE: Final = 4096
"""Bytes read from a worker at once. Each byte reports one ended connection, or is a sign of life."""
SILENT_AFTER_S: Final = 3.0
"""Seconds without a report after which a worker gets no connections: three signs of life are missing. Chosen: no work of ours holds an event
loop so long. Connections that a worker got before it fell silent wait until it is back, or is replaced."""
LONGEST_STEP_S: Final = 0.5
"""The most that one round adds to a worker's silence: while the supervisor itself stands still, in a machine that is suspended, none is
silent."""


def listeners(server: Server) -> list[socket.socket]:
    """Listen at the configured port, and at the Unix socket if there is one. Raises OSError when one is taken."""
    found: list[socket.socket] = []
    try:
        for family, _, _, _, address in socket.getaddrinfo(
            server.host or None, server.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        ):
            found.append(socket.create_server(address[:2], family=family, backlog=BACKLOG))
        if server.socket:
            found.append(_unix_listener(server.socket))
    except OSError:
        for each in found:
            each.close()
        raise
    return found


def _unix_listener(path: str) -> socket.socket:
    with suppress(FileNotFoundError):
        if stat.S_ISSOCK(os.stat(path).st_mode):
            os.remove(path)  # of a process that has ended
    found = socket.socket(socket.AF_UNIX)
    try:
        found.bind(path)
        found.listen(BACKLOG)
    except OSError:
        found.close()
        raise
    return found


class Channel(msgspec.Struct):
    """The supervisor's end of the socket pair to one worker."""

    socket: socket.socket
    ready: bool = False
    """Whether the worker takes connections."""
    connections: int = 0
    """How many connections the worker has."""
    latest: int = 0
    """Number of its last connection. Among workers with equally many connections, the one with the lowest number gets the next."""
    silent_s: float = 0.0
    """How long it has not reported anything, since it was ready."""

    @property
    def takes(self) -> bool:
        """Whether the worker gets connections. One that hangs has the fewest, because it never gets to know of those it was given."""
        return self.ready and self.silent_s < SILENT_AFTER_S


class Dealer:
    """The listening sockets, and the channels to the workers by their numbers."""

    def __init__(
        self,
        listeners: Sequence[socket.socket] = (),
        pause: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._listeners = listeners
        self._pause = pause
        self._clock = clock
        self._last_round = clock()
        self._listening = False
        self._channels: dict[int, Channel] = {}
        self._numbers = count(1)
        self._waiting: deque[socket.socket] = deque()
        """Accepted connections that no worker could take yet."""
        self._selector = selectors.DefaultSelector()
        for each in listeners:
            each.setblocking(False)

    def begin(self, number: int) -> socket.socket:
        """Return a worker's end of a new channel."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        channel = self._channels[number] = Channel(ours)
        self._selector.register(ours, selectors.EVENT_READ, channel)
        return theirs

    def end(self, number: int) -> None:
        """Forget a worker that has ended."""
        channel = self._channels.pop(number, None)
        if channel is not None:
            self._selector.unregister(channel.socket)
            channel.socket.close()

    def silence_s(self, number: int) -> float:
        """Return how long a worker that was ready has not reported anything."""
        channel = self._channels.get(number)
        return channel.silent_s if channel is not None else 0.0

    def serve(self, longest_s: float) -> None:
        """Wait up to ``longest_s`` seconds for connections and reports of workers, and deal the connections that came."""
        self._add_silence()
        self._deal_waiting()
        self._listen(active=not self._waiting and any(each.takes for each in self._channels.values()))
        for key, _ in self._selector.select(longest_s):
            if isinstance(key.data, Channel):
                _read_reports(key.data)
            elif self._listening:
                self._accept(key.data)

    def close(self) -> None:
        """Stop listening. The channels stay open: workers take the connections dealt to them, and end theirs."""
        self._listen(active=False)
        for each in (*self._listeners, *self._waiting):
            each.close()

    def _add_silence(self) -> None:
        """Add the time since the last round to the silence of every worker that is ready. A report ends it."""
        now = self._clock()
        step_s, self._last_round = min(now - self._last_round, LONGEST_STEP_S), now
        for channel in self._channels.values():
            if channel.ready:
                channel.silent_s += step_s

    def _listen(self, *, active: bool) -> None:
        """Start or stop accepting connections. While no worker can take one, they wait in the kernel's queue."""
        if active == self._listening:
            return
        self._listening = active
        for each in self._listeners:
            if active:
                self._selector.register(each, selectors.EVENT_READ, each)
            else:
                self._selector.unregister(each)

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(AT_ONCE):
            try:
                connection, _ = listener.accept()
            except BlockingIOError:
                return
            except OSError:  # no file descriptors are left, or the client has gone
                self._pause(PAUSE_S)
                return
            self._waiting.append(connection)
            self._deal_waiting()
            if self._waiting:
                self._listen(active=False)
                return

    def _deal_waiting(self) -> None:
        while self._waiting and self._deal(self._waiting[0]):
            self._waiting.popleft().close()  # the worker has its own descriptor

    def _deal(self, connection: socket.socket) -> bool:
        """Give a connection to the worker with the fewest connections; return whether a worker took it."""
        for channel in sorted(self._channels.values(), key=lambda each: (each.connections, each.latest)):
            if not channel.takes:
                continue
            try:
                socket.send_fds(channel.socket, [READY], [connection.fileno()])
            except BlockingIOError:
                continue  # it has not taken hundreds yet
            except OSError:
                channel.ready = False
                continue
            channel.connections += 1
            channel.latest = next(self._numbers)
            return True
        return False


def _read_reports(channel: Channel) -> None:
    """Read what a worker reports: that it is ready or lives, and connections that have ended. No bytes mean that it is gone."""
    try:
        reports = channel.socket.recv(REPORTS_AT_ONCE)
    except OSError:
        reports = b""
    channel.ready = bool(reports) and (channel.ready or READY in reports)
    channel.connections -= reports.count(ENDED)
    channel.silent_s = 0.0
