"""Our own HTTP/1.1 client: requests over pooled connections, with nothing added, followed or decoded."""

import asyncio
import ssl
from functools import partial
from typing import Final

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from gateway.upstream.dial import Dial
from gateway.upstream.http1 import UpstreamConnection
from gateway.upstream.public_http import IDEMPOTENT
from gateway.upstream.received import ReceivedResponse
from gateway.upstream.response import Disconnected
from gateway.upstream.sending import Body, head_of
from gateway.upstream.stall import Patience

IDLE_S: Final = 60.0
"""Seconds for which an unused connection is kept. Chosen: servers keep them 5 to 120; one that was closed is noticed before it is used."""
SWEEP_S: Final = 10.0
"""Interval in which unused connections are looked for."""

PoolKey = tuple[str, str, int, ssl.SSLContext | bool]
"""Where connections can be exchanged for each other: scheme, host, port, and how TLS is done."""


class OwnHttp:
    """Sends requests. `PublicHttp` does the same by aiohttp's client."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._idle: dict[PoolKey, list[UpstreamConnection]] = {}
        self._busy: dict[UpstreamConnection, PoolKey] = {}
        self._dial = Dial()
        self._patience = Patience(self._busy.keys())
        self._sweep: asyncio.TimerHandle | None = None
        self._contexts: dict[bool, ssl.SSLContext] = {}

    async def send(
        self,
        method: str,
        url: URL,
        headers: CIMultiDict[str],
        body: Body,
        *,
        tls: ssl.SSLContext | bool,
        limits: aiohttp.ClientTimeout,
    ) -> ReceivedResponse:
        """Send one request and wait for the head of its answer. ``limits.sock_read`` bounds silence before and within it."""
        head = head_of(method, url, headers, body)
        chunked = "Transfer-Encoding" in headers
        place = (url.scheme, url.host or "", url.port or 0, tls)
        repeatable = method in IDEMPOTENT and not isinstance(body, aiohttp.StreamReader)
        while True:
            connection = self._unused(place) or await self._opened(place, limits.sock_connect)
            self._busy[connection] = place
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

    def _unused(self, place: PoolKey) -> UpstreamConnection | None:
        """Take the connection from the pool that was used last. One with unread input is closed: its bytes would be
        taken for the answer to this request, and an end of the stream would lose the request."""
        pool = self._idle.get(place)
        while pool:
            connection = pool.pop()
            if connection.keeps_alive and connection.is_quiet():
                return connection
            connection.close()
        return None

    async def _opened(self, place: PoolKey, limit_s: float | None) -> UpstreamConnection:
        scheme, host, port, tls = place
        context = self._context(tls) if scheme == "https" else None
        return await self._dial.open(
            partial(UpstreamConnection, self._loop, self._freed), (host, port), context, limit_s
        )

    def _context(self, tls: ssl.SSLContext | bool) -> ssl.SSLContext:
        if not isinstance(tls, bool):
            return tls
        if tls not in self._contexts:
            context = self._contexts[tls] = ssl.create_default_context()
            context.set_alpn_protocols(["http/1.1"])
            if not tls:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
        return self._contexts[tls]

    def _freed(self, connection: UpstreamConnection) -> None:
        """Take a connection back after its answer; called again when it ends."""
        place = self._busy.pop(connection, None)
        if place is None or not connection.keeps_alive:
            return
        connection.idle_since = self._loop.time()
        self._idle.setdefault(place, []).append(connection)
        if self._sweep is None:
            self._sweep = self._loop.call_later(SWEEP_S, self._close_unused)

    def _close_unused(self) -> None:
        self.close_unused(self._loop.time())
        self._sweep = self._loop.call_later(SWEEP_S, self._close_unused) if self._idle else None

    def close_unused(self, now: float) -> None:
        """Close the connections that were not used for long at ``now``, and drop those that have ended."""
        for place, pool in list(self._idle.items()):
            kept = [each for each in pool if each.keeps_alive and now - each.idle_since < IDLE_S]
            for connection in set(pool).difference(kept):
                connection.close()
            if kept:
                self._idle[place] = kept
            else:
                del self._idle[place]

    async def close(self) -> None:
        """Close every connection."""
        self._patience.close()
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        for connection in [*self._busy, *(each for pool in self._idle.values() for each in pool)]:
            connection.close()
        self._idle.clear()
