"""The composition root: builds and connects everything once, serves it and closes it."""

import asyncio
import signal
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import aiohttp
import structlog
from aiohttp import http_exceptions, web

from gateway.config import Server, Settings
from gateway.observe.exchange import Why
from gateway.observe.metrics import Metrics
from gateway.serve import admin, aiohttp_parts, compact, counting, errors, keys, plan, websocket, workers
from gateway.serve import models as listing
from gateway.serve import record as records
from gateway.serve.addresses import Proxies, peer_of
from gateway.serve.body import too_large
from gateway.serve.chat import chat
from gateway.serve.connection import Connection, Connections, malformed
from gateway.serve.guard import Guard, check_hops, check_method, preflight, shared_with
from gateway.serve.passthrough import forward
from gateway.serve.paths import PROBES, api_path, root_of, served_path, with_path
from gateway.serve.peers import Peers
from gateway.serve.record import Record
from gateway.serve.shared import Gateway, bounds_of
from gateway.serve.tls import Certificate, certificate
from gateway.serve.uploads import SlowUpload
from gateway.state.records.base import RecordLog
from gateway.state.records.opening import open_log
from gateway.state.store import Store, open_store
from gateway.state.tasks import where
from gateway.upstream.client import UpstreamUnreachable
from gateway.wire.chat import CHAT
from gateway.wire.format import Format
from gateway.wire.formats import format_at, format_of
from gateway.wire.messages import MESSAGES

log = structlog.get_logger(__name__)

BACKLOG: Final = 1024
"""Connections that may wait to be accepted, eight times the default: clients reconnect together after a restart."""

BESIDE: Final = MappingProxyType({**dict.fromkeys(counting.PATHS, counting.count), compact.PATH: compact.compact})
"""Endpoints beside a conversation that we answer where the upstream does not have them."""


@dataclass(frozen=True, slots=True)
class Entrance:
    """How clients reach the gateway."""

    guard: Guard
    proxies: Proxies
    base_path: str

    @classmethod
    def of(cls, server: Server) -> "Entrance":
        """Return the entrance of the client port."""
        guard = Guard(server.host, server.allowed_hosts, server.cors_origins)
        return cls(guard, Proxies(server.trusted_proxies), server.base_path)


async def handle(gateway: Gateway, request: web.BaseRequest, entrance: Entrance) -> web.StreamResponse:
    """Serve one request on the client port: every failure becomes an error in the API's shape, every request leaves a
    record."""
    client = entrance.proxies.client(peer_of(request), request.headers)
    record = records.opened(request, client, served_path(request.rel_url.raw_path, entrance.base_path))
    try:
        response = await _admitted(gateway, request, entrance, record)
        record.left(response)
        return response
    except errors.ClientError as error:
        return refused(gateway, request, record, error, "rejected", close=not request.content.is_eof())
    except SlowUpload as slow:  # the upstream was reached, but the client's body broke off
        return refused(gateway, request, record, slow.told(), "rejected", close=True)
    except UpstreamUnreachable as error:
        record.answered(error.status, error.code)
        return errors.response(error, record.marks(gateway, "error"), format=_format(request))
    except (web.RequestPayloadError, aiohttp.ClientPayloadError, http_exceptions.HttpProcessingError) as error:
        return refused(gateway, request, record, malformed(error), "malformed", close=True)
    except (ConnectionResetError, aiohttp.ClientConnectionResetError):
        raise  # the client has gone; there is nobody to answer
    except Exception as error:  # noqa: BLE001  # a bug of ours must still leave as an error that SDKs understand
        gateway.failed("request", error)
        return refused(gateway, request, record, errors.OUR_FAULT, "failed")
    finally:
        record.close(gateway, request)


def refused(
    gateway: Gateway,
    request: web.BaseRequest,
    record: Record,
    error: errors.ClientError,
    why: Why,
    *,
    close: bool = False,
) -> web.Response:
    """Answer a request with our own error, and record it."""
    record.why = why
    record.answered(error.status, error.code)
    answer = errors.response(error, record.marks(gateway, "error"), close=close, format=_format(request))
    record.answer_bytes = records.size_of(answer)
    return answer


def _format(request: web.BaseRequest) -> Format:
    """Return the API format in which the client of a request reads errors; Anthropic's libraries send a header of theirs."""
    found = format_at(records.of(request).path)
    return MESSAGES if found is CHAT and "anthropic-version" in request.headers else found


async def _admitted(
    gateway: Gateway, request: web.BaseRequest, entrance: Entrance, record: Record
) -> web.StreamResponse:
    """Serve a request that passes the guard. Raises ClientError for any other."""
    origin = entrance.guard.check(request.raw_path, request.headers)
    check_method(request.method)
    check_hops(request.headers, gateway.client.hop)
    record.shared = shared_with(origin) if origin else {}
    if not record.path:
        raise _not_found(request, entrance.base_path)
    request = with_path(request, record.path)
    if not origin:
        return await _served(gateway, request)
    if request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers:
        record.why = "own"
        record.answered(204)
        return web.Response(status=204, headers=preflight(origin, request.headers))
    return await _served(gateway, request)


async def _served(gateway: Gateway, request: web.BaseRequest) -> web.StreamResponse:
    path = request.rel_url.raw_path
    if not path.startswith("/v1/"):
        return _own(gateway, request, path)
    await keys.admit(gateway, request, records.of(request))
    limits = gateway.settings.server
    with gateway.admission.admitted(request, limits), gateway.uploads.watched(request, limits.min_upload_rate):
        if websocket.wanted(request):
            return await websocket.connect(gateway, request)
        format = format_of(path) if request.method == "POST" else None
        if format is not None and (announced := request.content_length or 0) > limits.max_body:
            raise too_large(limits.max_body, announced)
        await _continue(request)
        if format is not None:
            return await chat(gateway, request, format)
        if request.method == "POST" and (beside := BESIDE.get(path)) is not None:
            return await beside(gateway, request)
        if listing.wanted(request):
            return await listing.models(gateway, request)
        return await forward(gateway, request)


def _own(gateway: Gateway, request: web.BaseRequest, path: str) -> web.StreamResponse:
    record = records.of(request)
    if path in PROBES:
        record.done = True  # machines ask every few seconds, and about this process alone: no log line, no metric
        if path == "/healthz":
            return _status("ok")
        return _status("draining", 503) if gateway.draining else _status("ready")
    if path == "/" and request.method in ("GET", "HEAD"):  # Claude Code checks that the server is there
        record.why = "own"
        return _status("ok")
    raise _not_found(request, gateway.settings.server.base_path)


def _status(word: str, status: int = 200) -> web.Response:
    return web.Response(status=status, body=b'{"status":"%b"}' % word.encode(), content_type=errors.JSON)


def _not_found(request: web.BaseRequest, base_path: str) -> errors.ClientError:
    hint = f"the API lives under {base_path}/v1: set the client's base URL to http://HOST:PORT{base_path}/v1"
    path = request.rel_url.raw_path[:200]
    return errors.ClientError(404, f"Nothing is served at {request.method} {path}; {hint}.", code="not_found")


async def _continue(request: web.BaseRequest) -> None:
    """Tell a client that waits before sending its body to continue (curl waits from 1 MB)."""
    if request.headers.get("Expect", "").lower() == "100-continue" and request.transport is not None:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")


@dataclass(slots=True)
class Running:
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
    reuse_port: bool = False,
    admin_offset: int = 0,
    peers: Peers | None = None,
    bind: bool = True,
) -> Running:
    """Open the store, bind both ports and serve. Raises OSError when a port is taken. Without ``bind`` there is no client
    port: `Running.connection` serves connections that another server brings."""
    own = certificate(settings.server)
    metrics = Metrics()
    store = store_of(settings, lambda operation, reason: metrics.degraded(f"store {operation}"))
    gateway = Gateway(settings, store, metrics, log_of(settings))
    if settings.server.preload:
        plan.preload(gateway, settings)
    runner = _client_runner(gateway, settings)
    admin_runner = admin.runner(gateway)
    gateway.watch.start()
    gateway.peers = peers
    among = workers.runner(gateway)
    running = Running(gateway, settings.server.host, 0, 0, (runner, admin_runner, among), own)
    try:
        tls = own.context if own else None
        if bind:
            running.port = await _bind(
                runner, settings.server.host, settings.server.port, reuse_port=reuse_port, tls=tls
            )
        else:
            await runner.setup()
        if bind and settings.server.socket and not admin_offset:  # two processes cannot share one path
            await web.UnixSite(runner, settings.server.socket, backlog=BACKLOG).start()
        if peers is not None:
            await among.setup()
            await web.UnixSite(among, str(peers.own())).start()
        admin_port = settings.admin.port and settings.admin.port + admin_offset
        running.admin_port = await _bind(admin_runner, settings.admin.host, admin_port, reuse_port=False)
    except BaseException:
        await running.close()
        raise
    return running


def store_of(settings: Settings, failed: Callable[[str, str], None] = lambda operation, reason: None) -> Store:
    """Open the configured store; ``failed`` is called with each failed operation and its reason."""
    chosen = settings.store
    return open_store(
        chosen.url,
        encryption_key=chosen.encryption_key,
        max_bytes=chosen.max_size,
        timeout_s=chosen.timeout_s,
        failed=failed,
    )


def log_of(settings: Settings) -> RecordLog | None:
    """Open the log of records beside the configured store; None for a store in memory."""
    return open_log(settings.store.url, bounds_of(settings))


def _client_runner(gateway: Gateway, settings: Settings) -> web.BaseRunner:
    entrance = Entrance.of(settings.server)

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        if gateway.tracing is None:
            return await handle(gateway, request, entrance)
        path = api_path(served_path(request.rel_url.raw_path, entrance.base_path))
        with gateway.tracing.request(request.method, path, root_of(path), request.headers):
            return await handle(gateway, request, entrance)

    def answer(error: errors.ClientError, client: str) -> web.Response:
        record = Record(client=client)
        try:
            record.why = "failed" if error.status >= 500 else "malformed"
            record.answered(error.status, error.code)
            return errors.response(error, record.marks(gateway, "error"), close=True)  # of a request with no path yet
        finally:
            record.close(gateway)

    loop = asyncio.get_running_loop()

    def make(message: Any, payload: Any, protocol: Connection, writer: Any, task: Any) -> web.BaseRequest:
        protocol.body = payload
        return web.BaseRequest(message, payload, protocol, writer, task, loop)

    # A low-level server: routing, middlewares and signals of an Application cost more than the routing we need.
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
        server = web.Server(handler, **server_settings)
    else:
        server = Connections(
            handler, patience_s=settings.server.header_timeout_s, answer=answer, failed=gateway.failed, request_factory=make,
            **server_settings,
        )  # fmt: skip
    return web.ServerRunner(server, shutdown_timeout=settings.server.shutdown_grace_s)


async def _bind(
    runner: web.BaseRunner, host: str, port: int, *, reuse_port: bool, tls: ssl.SSLContext | None = None
) -> int:
    await runner.setup()
    site = web.TCPSite(runner, host, port, reuse_port=reuse_port or None, backlog=BACKLOG, ssl_context=tls)
    await site.start()
    return int(runner.addresses[0][1])


def _untold(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an exception that no task awaited by its type and place; asyncio's own text and traceback may quote a
    request."""
    error = context.get("exception")
    log.error("unhandled", error=type(error).__name__, where=where(error) if isinstance(error, Exception) else "")


async def serve(settings: Settings, ready: Callable[[Running], Awaitable[None]] | None = None, **how: Any) -> None:
    """Serve until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_untold)
    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError):
            loop.add_signal_handler(number, stop.set)
    running = await start(settings, **how)
    log.info("serving", url=running.url, admin=f"http://{settings.admin.host}:{running.admin_port}",
             upstreams=sorted(settings.upstreams), mode=settings.fold.mode)  # fmt: skip
    running.gateway.sweeper.start()
    if ready is not None:
        await ready(running)
    await stop.wait()
    log.info("draining", grace_s=settings.server.shutdown_grace_s)
    await running.close()
    log.info("stopped")
