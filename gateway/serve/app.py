"""The application: builds all parts of a gateway once, connects them, serves, and closes them."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import structlog
from aiohttp import web

from gateway.config import Server, Settings
from gateway.serve.admin import port, workers
from gateway.serve.dealt import DealtSite
from gateway.serve.gateway import Gateway
from gateway.serve.incoming.peers import Peers
from gateway.serve.incoming.tls import Certificate, certificate
from gateway.serve.listening import BACKLOG, bind, client_runner
from gateway.serve.process import gateway_for, start_background_work, stop_event

log = structlog.get_logger(__name__)


class Running(msgspec.Struct):
    """A running gateway. ``port`` and ``admin_port`` are the bound ones."""

    gateway: Gateway
    host: str
    port: int
    admin_port: int
    _runners: tuple[web.BaseRunner, ...] = ()
    certificate: Certificate | None = None

    @property
    def url(self) -> str:
        """The base URL for clients."""
        base_path = self.gateway.settings.server.base_path
        return f"{'https' if self.certificate else 'http'}://{self.host}:{self.port}{base_path}/v1"

    def connection(self) -> asyncio.Protocol:
        """Return the client port's side of one more connection."""
        runner = self._runners[0]
        assert runner.server is not None, "the gateway was closed"
        return runner.server()

    async def close(self) -> None:
        """Stop listening, let running requests end within the grace period, then close everything."""
        self.gateway.draining = True
        for runner in self._runners:
            await runner.cleanup()
        await self.gateway.close()


async def start(
    settings: Settings,
    *,
    dealt: socket.socket | None = None,
    admin_offset: int = 0,
    peers: Peers | None = None,
    listens: bool = True,
    loads_later: bool = False,
) -> Running:
    """Open the store, bind both ports and serve. Raises OSError when a port is taken.

    ``dealt`` is the socket over which a worker gets its connections, ``peers`` are the other workers, and ``admin_offset`` is added to
    the admin port. Without ``listens`` there is no client port: another server brings connections to `Running.connection`. With
    ``loads_later`` the gateway is not ready until `start_background_work` has loaded the remaining code.
    """
    tls = certificate(settings.server)
    gateway = gateway_for(settings)
    gateway.loading = loads_later
    gateway.peers = peers
    clients, admin, between_workers = client_runner(gateway, settings), port.runner(gateway), workers.runner(gateway)
    running = Running(gateway, settings.server.host, 0, 0, (clients, admin, between_workers), tls)
    try:
        await clients.setup()
        if listens:
            running.port = await _listen(clients, settings.server, tls, dealt)
        if peers is not None:
            await between_workers.setup()
            await web.UnixSite(between_workers, str(peers.own())).start()
        await admin.setup()
        admin_port = settings.admin.port and settings.admin.port + admin_offset
        running.admin_port = await bind(admin, settings.admin.host, admin_port)
    except BaseException:
        await running.close()
        raise
    return running


async def _listen(clients: web.BaseRunner, server: Server, tls: Certificate | None, dealt: socket.socket | None) -> int:
    """Listen for clients at the configured port and socket; return the port. A worker does not listen: its supervisor does."""
    context = tls.context if tls else None
    if dealt is not None:
        await DealtSite(clients, dealt, ssl_context=context).start()
        return server.port
    bound = await bind(clients, server.host, server.port, tls=context)
    if server.socket:
        await web.UnixSite(clients, server.socket, backlog=BACKLOG).start()
    return bound


async def serve(settings: Settings, ready: Callable[[Running], Awaitable[None]] | None = None, **how: Any) -> None:
    """Serve until SIGTERM or SIGINT."""
    stop = stop_event()
    running = await start(settings, loads_later=True, **how)
    log.info("serving", url=running.url, admin=f"http://{settings.admin.host}:{running.admin_port}",
             upstreams=sorted(settings.upstreams), mode=settings.fold.mode)  # fmt: skip
    start_background_work(running.gateway)
    if ready is not None:
        await ready(running)
    await stop.wait()
    log.info("draining", grace_s=settings.server.shutdown_grace_s)
    await running.close()
    log.info("stopped")
