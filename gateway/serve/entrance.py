"""The entrance of requests: check who may send one, route it to its handler, and turn failures into errors."""

import re
from types import MappingProxyType
from typing import Final

import aiohttp
import msgspec
from aiohttp import hdrs, http_exceptions, web

from gateway.config import Server
from gateway.observe.exchange import Why
from gateway.serve import arrival as arrivals
from gateway.serve import keys
from gateway.serve import record as records
from gateway.serve.arrival import Arrival
from gateway.serve.chat import chat
from gateway.serve.endpoints import compact, counting
from gateway.serve.endpoints import models as listing
from gateway.serve.endpoints.passthrough import forward
from gateway.serve.gateway import Gateway
from gateway.serve.incoming import errors
from gateway.serve.incoming.addresses import Proxies, peer_of
from gateway.serve.incoming.body import too_large
from gateway.serve.incoming.connection import Connection
from gateway.serve.incoming.guard import (
    Guard,
    check_hops,
    check_host,
    check_method,
    check_version,
    preflight,
    shared_with,
)
from gateway.serve.incoming.malformed import malformed
from gateway.serve.incoming.paths import PROBES, address_below, is_native, with_path
from gateway.serve.incoming.uploads import SlowUpload
from gateway.serve.record import Record
from gateway.serve.sockets import websocket
from gateway.upstream.client import UpstreamUnreachable
from gateway.wire.chat import CHAT
from gateway.wire.format import Format
from gateway.wire.formats import format_at, format_of, is_of_ollama
from gateway.wire.messages import MESSAGES

FALLBACK_ENDPOINTS: Final = MappingProxyType(
    {**dict.fromkeys(counting.PATHS, counting.count), compact.PATH: compact.compact}
)
"""Endpoints that the gateway serves itself if the upstream does not have them."""

OPERATORS: Final = re.compile(r"/(?:dashboard|metrics|api)(?:/|\Z)")
"""Paths of the admin port, which people try on the client port."""


class Entrance(msgspec.Struct, frozen=True):
    """The settings of the client port that decide who may send a request."""

    guard: Guard
    proxies: Proxies
    base_path: str

    @classmethod
    def of(cls, server: Server) -> "Entrance":
        """Return the entrance of the client port."""
        guard = Guard(server.host, server.allowed_hosts, server.cors_origins)
        return cls(guard, Proxies(server.trusted_proxies), server.base_path)


async def handle(gateway: Gateway, request: web.BaseRequest, entrance: Entrance) -> web.StreamResponse:
    """Serve one request on the client port. Every failure becomes an error in the API's shape, and every request leaves
    a record."""
    client = entrance.proxies.client(_peer_of(request), request.headers)
    arrival = arrivals.arrive(request, client, address_below(request.rel_url.raw_path, entrance.base_path))
    record = records.open_record(request, arrival)
    try:
        checked = _check(gateway, request, entrance, arrival)
        if arrival.shared and _is_preflight(checked):
            response: web.StreamResponse = _answer_preflight(checked)
        else:
            response = await _route(gateway, checked)
        record.complete(response)
        return response
    except errors.ClientError as error:
        return refuse(gateway, request, record, error, "rejected", close=not request.content.is_eof())
    except SlowUpload as slow:  # the upstream was reached, but the client's body broke off
        return refuse(gateway, request, record, slow.as_error(), "rejected", close=True)
    except UpstreamUnreachable as error:
        record.set_outcome(error.status, error.code)
        return errors.response(error, record.own_headers(gateway, "error"), format=_error_format(request))
    except (web.RequestPayloadError, aiohttp.ClientPayloadError, http_exceptions.HttpProcessingError) as error:
        return refuse(gateway, request, record, malformed(error), "malformed", close=True)
    except (ConnectionResetError, aiohttp.ClientConnectionResetError):
        raise  # the client has left, so no answer can be sent
    except Exception as error:  # noqa: BLE001  # a bug of ours must still leave as an error that SDKs understand
        gateway.failed("request", error)
        return refuse(gateway, request, record, errors.OUR_FAULT, "failed")
    finally:
        record.close(gateway, request)


def _peer_of(request: web.BaseRequest) -> str:
    """Return the address at the other end of a request's connection. Our own connections know it."""
    protocol = request.protocol
    return protocol.peer if isinstance(protocol, Connection) else peer_of(request.transport)


def refuse(
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
    record.set_outcome(error.status, error.code)
    answer = errors.response(error, record.own_headers(gateway, "error"), close=close, format=_error_format(request))
    record.answer_bytes = records.size_of(answer)
    return answer


def _error_format(request: web.BaseRequest) -> Format:
    """Return the format in which a client expects errors. Anthropic's libraries are recognised by their header."""
    found = format_at(arrivals.of(request).path)
    return MESSAGES if found is CHAT and "anthropic-version" in request.headers else found


def _check(gateway: Gateway, request: web.BaseRequest, entrance: Entrance, arrival: Arrival) -> web.BaseRequest:
    """Return a request that passes the guard, with its path in the API. Raises ClientError for any other."""
    check_version(request.version)
    check_host(request.headers, arrival.path)
    origin = entrance.guard.check(request.raw_path, request.headers)
    check_method(request.method)
    check_hops(request.headers, gateway.client.hop)
    arrival.shared = shared_with(origin) if origin else {}
    if not arrival.path:
        raise _not_found(request, entrance.base_path)
    return with_path(request, arrival.path)


def _is_preflight(request: web.BaseRequest) -> bool:
    """Return whether a browser asks what a page of another origin may send."""
    return request.method == "OPTIONS" and hdrs.ACCESS_CONTROL_REQUEST_METHOD in request.headers


def _answer_preflight(request: web.BaseRequest) -> web.Response:
    """Answer a preflight request of a page whose origin passed the guard."""
    record = records.of(request)
    record.why = "own"
    record.set_outcome(204)
    return web.Response(status=204, headers=preflight(request.headers[hdrs.ORIGIN], request.headers))


async def _route(gateway: Gateway, request: web.BaseRequest) -> web.StreamResponse:
    """Give a request to the handler of its path, within the limits of keys, admission and upload speed."""
    path = request.rel_url.raw_path
    if not path.startswith("/v1/") and not is_native(request.method, path):
        return _own_page(gateway, request, path)
    settings = gateway.settings
    if settings.asks_for_keys:
        await keys.admit(gateway, request, arrivals.of(request))
    limits = settings.server
    with gateway.admission.admitted(request, limits), gateway.uploads.watched(request, limits.min_upload_rate):
        if websocket.wants_websocket(request):
            return await websocket.connect(gateway, request)
        format = format_of(path) if request.method == "POST" else None
        if hdrs.EXPECT in request.headers:
            _send_continue(request, limits.max_body if format is not None else None)
        if format is not None:
            return await chat(gateway, request, format)
        if request.method == "POST" and (endpoint := FALLBACK_ENDPOINTS.get(path)) is not None:
            return await endpoint(gateway, request)
        if listing.wanted(request):
            return await listing.models(gateway, request)
        return await forward(gateway, request)


def _own_page(gateway: Gateway, request: web.BaseRequest, path: str) -> web.StreamResponse:
    """Serve the paths of the gateway itself: health, readiness, and the root. Raises ClientError for any other."""
    record = records.of(request)
    if path in PROBES:
        record.done = True  # machines ask every few seconds, and about this process alone: no log line, no metric
        if path == "/healthz":
            return _status_page("ok")
        return _status_page(gateway.readiness, 200 if gateway.readiness == "ready" else 503)
    if path == "/" and request.method in ("GET", "HEAD"):  # Claude Code checks that the server is there
        record.why = "own"
        return _status_page("ok")
    raise _not_found(request, gateway.settings.server.base_path)


def _status_page(word: str, status: int = 200) -> web.Response:
    return web.Response(status=status, body=b'{"status":"%b"}' % word.encode(), content_type=errors.JSON)


def _not_found(request: web.BaseRequest, base_path: str) -> errors.ClientError:
    path = request.rel_url.raw_path[:200]
    if is_of_ollama(path.removeprefix(base_path)):
        hint = "of Ollama's own API, the endpoints that compute an answer or describe the models are. What loads or changes models is closed"
    elif OPERATORS.match(path.removeprefix(base_path)):
        hint = "it is served on the admin port (admin.port, 8788 by default)"
    else:
        hint = f"the API lives under {base_path}/v1: set the client's base URL to http://HOST:PORT{base_path}/v1"
    return errors.ClientError(404, f"Nothing is served at {request.method} {path}; {hint}.", code="not_found")


def _send_continue(request: web.BaseRequest, longest: int | None) -> None:
    """Tell a client that waits before sending its body to continue (curl waits from 1 MB). Raises ClientError for a body of
    more than ``longest`` bytes: it need not be sent."""
    announced = request.content_length or 0
    if longest is not None and announced > longest:
        raise too_large(longest, announced)
    if request.headers[hdrs.EXPECT].lower() == "100-continue" and request.transport is not None:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
