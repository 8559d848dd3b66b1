"""Connections that a supervisor deals to this worker over a socket pair; the worker inherited one end of it.

Each connection comes as a file descriptor. The worker sends a byte when it is ready, and a byte for each connection that has ended:
so the supervisor knows how many connections every worker has. It also sends a byte each second, as a sign that its event loop runs. When
the supervisor is gone, the worker ends.
"""

import asyncio
import signal
import socket
import ssl
from contextlib import suppress
from typing import Final

from aiohttp import web

from gateway.serve.incoming.connection import Connections
from gateway.state.tasks import Tasks

READY: Final = b"r"
ENDED: Final = b"e"
ALIVE: Final = b"a"
ALIVE_EVERY_S: Final = 1.0
"""Interval of the signs of life."""
AT_ONCE: Final = 64
"""Connections taken or dealt before anything else gets its turn."""
MOST_OPENING: Final = 10_000
"""Connections whose TLS handshake is under way."""


class DealtSite(web.BaseSite):
    """Serves the connections that come over ``channel``."""

    __slots__ = ("_alive", "_channel", "_opening", "_unreported")

    def __init__(
        self, runner: web.BaseRunner, channel: socket.socket, *, ssl_context: ssl.SSLContext | None = None
    ) -> None:
        super().__init__(runner, ssl_context=ssl_context)
        self._channel = channel
        self._opening = Tasks(MOST_OPENING)
        self._alive: asyncio.TimerHandle | None = None
        self._unreported = 0
        """Ended connections that were not yet reported to the supervisor."""

    @property
    def name(self) -> str:
        return f"dealt://{self._channel.fileno()}"

    async def start(self) -> None:
        """Tell the supervisor that this worker takes connections."""
        await super().start()
        if isinstance(
            self._runner.server, Connections
        ):  # aiohttp's own server reports no ends: connections are dealt in turn
            self._runner.server.port.on_end = self._report_end
        self._channel.setblocking(False)
        asyncio.get_running_loop().add_reader(self._channel, self._readable)
        self._channel.send(READY)
        self._show_life()

    async def stop(self) -> None:
        """Take the connections that were dealt already, and no more. Clients get some seconds for their TLS handshakes: one that never
        begins its own does not hold up the end."""
        if self._alive is not None:
            self._alive.cancel()
        asyncio.get_running_loop().remove_reader(self._channel)
        self._take(MOST_OPENING)
        self._channel.close()
        await self._opening.close()
        await super().stop()

    def _readable(self) -> None:
        if not self._take():
            asyncio.get_running_loop().remove_reader(self._channel)
            signal.raise_signal(signal.SIGTERM)

    def _take(self, most: int = AT_ONCE) -> bool:
        """Take connections that have come; return whether the supervisor is still there."""
        for _ in range(most):
            try:
                data, descriptors, *_ = socket.recv_fds(self._channel, 1, 1)
            except BlockingIOError:
                return True
            except OSError:
                return False
            if not data:
                return False
            if descriptors:
                self._start_opening(socket.socket(fileno=descriptors[0]))
            else:  # this process has no file descriptors left
                self._report_end()
        return True

    def _start_opening(self, connection: socket.socket) -> None:
        if self._opening.start(self._open(connection), "connection", must_finish=True) is None:
            connection.close()
            self._report_end()

    async def _open(self, connection: socket.socket) -> None:
        server = self._runner.server
        assert server is not None, "the gateway was closed"
        if connection.family != socket.AF_UNIX:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(server, connection, ssl=self._ssl_context)
        except OSError:  # its TLS handshake failed, or it is gone
            connection.close()
            self._report_end()

    def _show_life(self) -> None:
        """Tell the supervisor each second that the event loop runs."""
        with suppress(OSError):  # it does not read at present, or is gone
            self._channel.send(ALIVE)
        self._alive = asyncio.get_running_loop().call_later(ALIVE_EVERY_S, self._show_life)

    def _report_end(self) -> None:
        """Tell the supervisor that a connection has ended."""
        self._unreported += 1
        try:
            self._unreported -= self._channel.send(ENDED * self._unreported)
        except OSError:
            return  # told with the next one, or the supervisor is gone
