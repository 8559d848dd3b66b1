"""The gRPC server of the processor: Envoy's calls, the health check, and the admin port of the gateway beside it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import grpc
import structlog
from aiohttp import web

from gateway.config import Settings
from gateway.extproc import protocol
from gateway.extproc.envoy_attempt import EnvoyAttempt, ProtocolError
from gateway.serve.admin import port
from gateway.serve.gateway import Gateway
from gateway.serve.process import gateway_for, start_background_work, stop_event

log = structlog.get_logger(__name__)

OVERHEAD: Final = 2**20
"""Bytes of a message besides the body in it, at most: headers and metadata. Chosen far above any server's limit of headers."""
MOST_ATTEMPTS: Final = 10_000
"""Attempts at one time. Each lasts until its answer, so there is one for each request under way; HTTP/2's usual limit of 100 is too low."""


@dataclass(slots=True)
class RunningProcessor:
    """A running processor. ``port`` and ``admin_port`` are the bound ones."""

    gateway: Gateway
    port: int
    admin_port: int
    _server: Any
    _admin: web.BaseRunner

    async def drain(self, notice_s: float, grace_s: float) -> None:
        """Report as unhealthy, wait until load balancers have noticed, let running attempts end, and close."""
        self.gateway.draining = True
        await asyncio.sleep(notice_s)
        await self.close(grace_s)

    async def close(self, grace_s: float = 0.0) -> None:
        """Take no more attempts; break off those that have not ended within the grace period."""
        self.gateway.draining = True
        await self._server.stop(grace_s)
        await self._admin.cleanup()
        await self.gateway.close()


async def start(settings: Settings, listen: str) -> RunningProcessor:
    """Open the store and serve at ``listen``: a host and port, or ``unix:`` and a path. Raises OSError when it is taken."""
    gateway = gateway_for(settings)
    server = _server(gateway, settings)
    runner = port.runner(gateway)
    running = RunningProcessor(gateway, 0, 0, server, runner)
    try:
        running.port = _bind(server, listen)
        await runner.setup()
        await web.TCPSite(runner, settings.admin.host, settings.admin.port).start()
        running.admin_port = int(runner.addresses[0][1])
        await server.start()
    except BaseException:
        await running.close()
        raise
    return running


def _bind(server: Any, listen: str) -> int:
    """Listen at an address; return the port. Raises OSError when it is taken."""
    try:
        return int(server.add_insecure_port(listen))
    except RuntimeError as error:  # grpc's own, without a number
        raise OSError(f"cannot listen on {listen}: it is taken, or no address of this machine") from error


def _server(gateway: Gateway, settings: Settings) -> Any:
    """Build the gRPC server with its two calls: processing, and the health check."""
    options = [
        ("grpc.max_receive_message_length", settings.server.max_body + OVERHEAD),
        ("grpc.max_send_message_length", settings.server.max_body + OVERHEAD),
        ("grpc.max_concurrent_streams", MOST_ATTEMPTS),
        ("grpc.so_reuseport", 0),  # a second processor on the same port is a mistake, not a helper
    ]
    server = grpc.aio.server(options=options)

    async def process(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        attempt = EnvoyAttempt(gateway)
        try:
            async for raw in requests:
                yield await attempt.reply(raw)
        except ProtocolError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        finally:
            attempt.close()

    async def check(_: bytes, __: Any) -> bytes:
        # Healthy also while it loads: Envoy would ask an unhealthy processor without traffic again only after a minute.
        status = protocol.NOT_SERVING if gateway.draining else protocol.SERVING
        return protocol.encode(protocol.message("HealthCheckResponse", status=status))

    handlers = ((protocol.PROCESS, grpc.stream_stream_rpc_method_handler(process)),
                (protocol.CHECK, grpc.unary_unary_rpc_method_handler(check)))  # fmt: skip
    for path, handler in handlers:
        _, service, method = path.split("/")
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {method: handler}),))
    return server


async def serve(
    settings: Settings,
    listen: str,
    notice_s: float,
    ready: Callable[[RunningProcessor], Awaitable[None]] | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, then drain. A second signal ends the waiting."""
    stop = stop_event()
    running = await start(settings, listen)
    log.info("processing", listen=listen, port=running.port, admin=f"http://{settings.admin.host}:{running.admin_port}",
             mode=settings.fold.mode)  # fmt: skip
    start_background_work(running.gateway)
    if ready is not None:
        await ready(running)
    await stop.wait()
    log.info("draining", notice_s=notice_s, grace_s=settings.server.shutdown_grace_s)
    await running.drain(notice_s, settings.server.shutdown_grace_s)
    log.info("stopped")
