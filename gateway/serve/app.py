"""The composition root: builds and connects everything once, serves it and closes it."""

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
from gateway.serve.incoming.peers import Peers
from gateway.serve.incoming.tls import Certificate, certificate
from gateway.serve.listening import BACKLOG, bind, client_runner
from gateway.serve.process import begin, end_of_process, gateway_for
from gateway.serve.shared import Gateway

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
    client_port: bool = True,
    loading: bool = False,
) -> Running:
    """Open the store, bind both ports and serve. Raises OSError when a port is taken. A worker's connections come over ``dealt``. With ``client_port`` False,
    `Running.connection` serves connections that another server brings. With ``loading`` True, it is not ready until `begin` has loaded the rest."""
    own = certificate(settings.server)
    gateway = gateway_for(settings)
    gateway.loading = loading
    gateway.peers = peers
    client, operators, among = client_runner(gateway, settings), port.runner(gateway), workers.runner(gateway)
    running = Running(gateway, settings.server.host, 0, 0, (client, operators, among), own)
    try:
        await client.setup()
        if client_port:
            running.port = await _listen(client, settings.server, own, dealt)
        if peers is not None:
            await among.setup()
            await web.UnixSite(among, str(peers.own())).start()
        await operators.setup()
        admin_port = settings.admin.port and settings.admin.port + admin_offset
        running.admin_port = await bind(operators, settings.admin.host, admin_port)
    except BaseException:
        await running.close()
        raise
    return running


async def _listen(client: web.BaseRunner, server: Server, own: Certificate | None, dealt: socket.socket | None) -> int:
    """Listen for clients at the configured port and socket; return the port. A worker listens at neither: its supervisor does."""
    context = own.context if own else None
    if dealt is not None:
        await DealtSite(client, dealt, ssl_context=context).start()
        return server.port
    bound = await bind(client, server.host, server.port, tls=context)
    if server.socket:
        await web.UnixSite(client, server.socket, backlog=BACKLOG).start()
    return bound


async def serve(settings: Settings, ready: Callable[[Running], Awaitable[None]] | None = None, **how: Any) -> None:
    """Serve until SIGTERM or SIGINT."""
    stop = end_of_process()
    running = await start(settings, loading=True, **how)
    log.info("serving", url=running.url, admin=f"http://{settings.admin.host}:{running.admin_port}",
             upstreams=sorted(settings.upstreams), mode=settings.fold.mode)  # fmt: skip
    begin(running.gateway)
    if ready is not None:
        await ready(running)
    await stop.wait()
    log.info("draining", grace_s=settings.server.shutdown_grace_s)
    await running.close()
    log.info("stopped")
