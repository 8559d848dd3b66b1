"""Our own HTTP/1.1 client: requests over pooled connections, with nothing added, followed or decoded."""

import asyncio
from functools import partial
from typing import Final

import aiohttp
from aiohttp import hdrs
from multidict import CIMultiDict
from yarl import URL

from gateway.upstream.certificates import Tls, context_of
from gateway.upstream.dial import Dial
from gateway.upstream.http1 import UpstreamConnection
from gateway.upstream.public_http import IDEMPOTENT
from gateway.upstream.received import ReceivedResponse
from gateway.upstream.response import Disconnected
from gateway.upstream.sending import Body, head_of
from gateway.upstream.stall import Patience

IDLE_S: Final = 60.0
"""Seconds for which an idle connection is kept. Chosen: servers keep them 5 to 120. A closed one is noticed before it is used."""
SWEEP_S: Final = 10.0
"""Interval between two sweeps for connections that were idle for long."""

Destination = tuple[str, str, int, Tls]
"""Scheme, host, port, and how TLS is done. Connections to the same destination are interchangeable."""


class OwnHttp:
    """Sends requests over pooled connections. `PublicHttp` does the same with aiohttp's client."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._idle: dict[Destination, list[UpstreamConnection]] = {}
        self._busy: dict[UpstreamConnection, Destination] = {}
        self._dial = Dial()
        self._patience = Patience(self._busy.keys())
        self._sweep: asyncio.TimerHandle | None = None

    async def send(
        self,
        method: str,
        url: URL,
        headers: CIMultiDict[str],
        body: Body,
        *,
        tls: Tls,
        limits: aiohttp.ClientTimeout,
    ) -> ReceivedResponse:
        """Send one request and wait for the head of its answer. ``limits.sock_read`` bounds silence before and within it."""
        head = head_of(method, url, headers, body)
        chunked = hdrs.TRANSFER_ENCODING in headers
        destination = (url.scheme, url.host or "", url.port or 0, tls)
        repeatable = method in IDEMPOTENT and (body is None or isinstance(body, bytes))
        while True:
            connection = self._take_idle(destination) or await self._open(destination, limits.sock_connect)
            self._busy[connection] = destination
            connection.patience_s = limits.sock_read
            if limits.sock_read is not None:
                self._patience.watch(limits.sock_read)
            try:
                return await connection.ask(head, body, head_only=method == "HEAD", chunked=chunked)
            except Disconnected:
                if not repeatable:
                    raise
                repeatable = False
            except BaseException:
                connection.close()
                raise

    def _take_idle(self, destination: Destination) -> UpstreamConnection | None:
        """Return the idle connection that was used last; None without one. A connection with unread input is closed: the
        bytes would be taken for the answer to this request, or the stream has ended and the request would be lost."""
        idle = self._idle.get(destination)
        while idle:
            connection = idle.pop()
            if connection.keeps_alive and connection.is_quiet():
                return connection
            connection.close()
        return None

    async def _open(self, destination: Destination, limit_s: float | None) -> UpstreamConnection:
        scheme, host, port, tls = destination
        context = context_of(tls) if scheme == "https" else None
        return await self._dial.open(
            partial(UpstreamConnection, self._loop, self._take_back), (host, port), context, limit_s
        )

    def _take_back(self, connection: UpstreamConnection) -> None:
        """Take a connection back among the idle ones after its answer; also called when it ends."""
        destination = self._busy.pop(connection, None)
        if destination is None or not connection.keeps_alive:
            return
        connection.idle_since = self._loop.time()
        self._idle.setdefault(destination, []).append(connection)
        if self._sweep is None:
            self._sweep = self._loop.call_later(SWEEP_S, self._sweep_idle)

    def _sweep_idle(self) -> None:
        self.close_idle(self._loop.time())
        self._sweep = self._loop.call_later(SWEEP_S, self._sweep_idle) if self._idle else None

    def close_idle(self, now: float) -> None:
        """Close the connections that have been idle for long at the time ``now``, and drop those that have ended."""
        for destination, idle in list(self._idle.items()):
            kept = [each for each in idle if each.keeps_alive and now - each.idle_since < IDLE_S]
            for connection in set(idle).difference(kept):
                connection.close()
            if kept:
                self._idle[destination] = kept
            else:
                del self._idle[destination]

    async def close(self) -> None:
        """Close every connection."""
        self._patience.close()
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        for connection in [*self._busy, *(each for idle in self._idle.values() for each in idle)]:
            connection.close()
        self._idle.clear()
