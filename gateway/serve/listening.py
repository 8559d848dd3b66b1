"""The client port: an HTTP server that gives each request to the entrance."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import aiohttp
import structlog
from aiohttp import web

from gateway.config import Server, Settings
from gateway.serve.arrival import Arrival
from gateway.serve.entrance import Entrance, handle
from gateway.serve.gateway import Gateway
from gateway.serve.incoming import aiohttp_parts, errors
from gateway.serve.incoming.connection import Connection, Connections, Port
from gateway.serve.incoming.http_log import http_log, silence_aiohttp
from gateway.serve.incoming.paths import address_below, root_of
from gateway.serve.record import Record

log = structlog.get_logger(__name__)

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
BACKLOG: Final = 1024
"""Connections that may wait to be accepted, eight times the default: clients reconnect together after a restart."""


def client_runner(gateway: Gateway, settings: Settings) -> web.BaseRunner:
    """Return the server of the client port: a low-level one, because routing, middlewares and signals of an Application cost
    more than the routing we need."""
    silence_aiohttp()
    handler = _handler(gateway, Entrance.of(settings.server))
    server_settings: dict[str, Any] = {
        "handler_cancellation": True,
        "access_log": None,
        "auto_decompress": False,
        "keepalive_timeout": settings.server.keep_alive_s,
        "max_line_size": settings.server.max_header,
        "max_field_size": settings.server.max_header,
        "lingering_time": 2.0,
    }
    server: web.Server
    if reason := aiohttp_parts.unknown_parts():
        log.warning("plain_server", aiohttp=aiohttp.__version__, reason=reason)
        server = web.Server(handler, logger=http_log("client port", gateway.failed), **server_settings)
    else:
        server = _connections(gateway, handler, settings.server, server_settings)
    return web.ServerRunner(server, shutdown_timeout=settings.server.shutdown_grace_s)


def _handler(gateway: Gateway, entrance: Entrance) -> Handler:
    tracing = gateway.tracing
    if tracing is None:
        return partial(handle, gateway, entrance=entrance)

    async def handle_traced(request: web.BaseRequest) -> web.StreamResponse:
        path = address_below(request.rel_url.raw_path, entrance.base_path).path
        with tracing.request(request.method, path, root_of(path), request.headers):
            return await handle(gateway, request, entrance)

    return handle_traced


def _connections(gateway: Gateway, handler: Handler, limits: Server, server_settings: dict[str, Any]) -> web.Server:
    """Return the server whose connections are watched: slow heads end, clients that take nothing are cut off, and invalid HTTP is answered
    as the API answers."""

    def answer(error: errors.ClientError, client: str) -> web.Response:
        record = Record(Arrival(client))
        try:
            record.why = "failed" if error.status >= 500 else "malformed"
            record.set_outcome(error.status, error.code)
            return errors.response(
                error, record.own_headers(gateway, "error"), close=True
            )  # of a request with no path yet
        finally:
            record.close(gateway)

    loop = asyncio.get_running_loop()

    def make(message: Any, payload: Any, protocol: Connection, writer: Any, task: Any) -> web.BaseRequest:
        protocol.body = payload
        return web.BaseRequest(message, payload, protocol, writer, task, loop)

    port = Port(limits.header_timeout_s, limits.write_timeout_s, answer, gateway.failed)
    return Connections(handler, port, request_factory=make, **server_settings)


async def bind(runner: web.BaseRunner, host: str, port: int, *, tls: ssl.SSLContext | None = None) -> int:
    """Listen at an address; return the port, which the system chooses for 0. Raises OSError when it is taken."""
    site = web.TCPSite(runner, host, port, backlog=BACKLOG, ssl_context=tls)
    await site.start()
    return int(runner.addresses[0][1])
