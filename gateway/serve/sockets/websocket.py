"""WebSocket endpoints such as ``/v1/realtime``: frames are forwarded in both directions."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from http import HTTPStatus
from typing import Final

import aiohttp
from aiohttp import hdrs, web
from msgspec.structs import replace

from gateway.serve import keys
from gateway.serve import record as records
from gateway.serve.endpoints import kept
from gateway.serve.gateway import Gateway
from gateway.serve.incoming.admission import Overloaded
from gateway.serve.incoming.errors import ClientError
from gateway.serve.incoming.paths import query_for
from gateway.serve.request.missing_endpoint import MISSING_STATUSES
from gateway.serve.sockets.events import Frame, NotServed, Refused, frame_of
from gateway.serve.sockets.fold import speaks_responses
from gateway.serve.sockets.messages import ClientMessages
from gateway.serve.sockets.models import check_url
from gateway.serve.sockets.pending import PendingResponses
from gateway.serve.sockets.retry import Retries
from gateway.upstream.client import SocketRefused, Target

LARGEST_FRAME: Final = 2**24
"""Bytes. Realtime audio travels as base64 in JSON frames; the largest documented one is 15 MB."""
# Set separately on each of the two connections.
_HANDSHAKE: Final = ("Sec-WebSocket-Key", "Sec-WebSocket-Version", "Sec-WebSocket-Extensions", "Sec-WebSocket-Protocol")

CONTENT: Final = frozenset({aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY})
"""Types of frames with content."""
ENDS: Final = frozenset({aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSING, aiohttp.WSMsgType.CLOSED})
"""Types of frames after which nothing more comes."""
NO_SOCKET: Final = 426
"""The status by which a client learns that there is only HTTP here. Codex then sends its requests by HTTP at once; at any other status of
``MISSING_STATUSES`` it opens the socket six more times, for eight seconds."""
LONGEST_CLOSE_S: Final = 10.0
"""Seconds in which a side must say that it closes, too. aiohttp's own limit begins anew with each frame that still comes."""
NEVER_SENT: Final = frozenset({1005, 1006, 1015})
"""Codes by which a library says that a connection broke. In a frame they are protocol errors (RFC 6455, section 7.4.1)."""


def wants_websocket(request: web.BaseRequest) -> bool:
    """Return whether the client wants to upgrade to a WebSocket."""
    return request.headers.get(hdrs.UPGRADE, "").lower() == "websocket"


async def connect(gateway: Gateway, request: web.BaseRequest) -> web.StreamResponse:
    """Open the same WebSocket at the upstream and forward frames until one side closes.

    Raises UpstreamUnreachable when the upstream does not accept it; then nothing was sent to the client yet. Raises ClientError when the
    client's handshake is not valid.
    """
    if request.method != "GET" or not web.WebSocketResponse().can_prepare(request):
        raise ClientError(400, "The handshake of the WebSocket is not valid (RFC 6455).", code="invalid_handshake")
    target, upstream = await _connect_upstream(gateway, request)
    record, is_responses = records.of(request), speaks_responses(request)
    pending = PendingResponses(gateway, record, request.method, records.path_of(request), speaks_responses=is_responses)
    retries = Retries(gateway, target, pending, upstream.send_str)
    messages = ClientMessages(gateway, request, target, pending, retries)
    chosen = (upstream.protocol,) if upstream.protocol else ()
    client = web.WebSocketResponse(protocols=chosen, max_msg_size=LARGEST_FRAME, autoping=False)
    try:
        client.headers.update(record.own_headers(gateway, "none"))
        await client.prepare(request)
        record.set_outcome(101)
        async with asyncio.TaskGroup() as both:
            both.create_task(_forward_client(client, upstream, messages))
            both.create_task(_forward_upstream(gateway, upstream, client, retries, pending))
        return client
    finally:
        retries.release()
        pending.close()
        await _close(upstream, client)  # a client that closes cancels the forwarding


async def _connect_upstream(
    gateway: Gateway, request: web.BaseRequest
) -> tuple[Target, aiohttp.ClientWebSocketResponse]:
    """Open the WebSocket at the upstream that serves the model in the URL, and enter the call in the record. Return the upstream and its side
    of the socket."""
    model = check_url(gateway, request)
    target = (await kept.destinations_of(gateway, gateway.setup, request, model)).targets[0]
    upstream_model = gateway.setup.settings.route(model).name if model else ""
    headers = keys.forwarded(request)
    for name in _HANDSHAKE:
        headers.popall(name, None)
    record = records.of(request)
    record.why = "websocket"
    record.set_upstream(target, model, upstream_model, headers)
    call = record.arrival.call(request, upstream_model)
    if model:
        call = replace(call, query=query_for(call.query, upstream_model))
    protocols = keys.upstream_protocols(request)
    try:
        upstream = await gateway.client.connect(target, call, target.authorised(headers), protocols, LARGEST_FRAME)
    except SocketRefused as refusal:
        # A server that knows no WebSocket may also answer the plain GET: with a list of responses, or a page.
        if speaks_responses(request) and (refusal.said in MISSING_STATUSES or refusal.said == HTTPStatus.OK):
            refusal.status = NO_SOCKET
        raise
    record.add_call(101)
    return target, upstream


Socket = aiohttp.ClientWebSocketResponse | web.WebSocketResponse


async def _forward_client(
    client: web.WebSocketResponse, upstream: aiohttp.ClientWebSocketResponse, messages: ClientMessages
) -> None:
    """Forward the client's frames, with their messages edited; when it closes, close the upstream with the same code."""
    async for frame in client:
        await asyncio.sleep(0)  # others get their turn between frames that arrived together
        if frame.type not in CONTENT:
            await _send_other(upstream, frame)
            continue
        try:
            content = await messages.edited(frame.data)
        except Refused as event:
            await client.send_str(str(event))
            continue
        except NotServed as reason:
            await client.close(code=aiohttp.WSCloseCode.POLICY_VIOLATION, message=str(reason).encode())
            break
        except Overloaded as full:
            await client.close(code=aiohttp.WSCloseCode.TRY_AGAIN_LATER, message=full.code.encode())
            break
        await _send(upstream, content)
    await _close(upstream, client)


async def _forward_upstream(
    gateway: Gateway,
    upstream: aiohttp.ClientWebSocketResponse,
    client: web.WebSocketResponse,
    retries: Retries,
    pending: PendingResponses,
) -> None:
    """Forward the upstream's frames, content when ``retries`` lets it go; when it closes, close the client with the same code.

    ``pending`` reads each frame of content once it was forwarded.
    """

    async def forward(frames: list[Frame]) -> None:
        for frame in frames:
            await _send(client, frame.content)
            await pending.read(frame)

    reason = ""
    async for arrived in _frames(upstream, retries):
        if arrived is None:
            await forward(retries.release())
        elif arrived.type in ENDS:
            reason = arrived.extra or ""
        elif arrived.type in CONTENT:
            await forward(await retries.receive(await frame_of(gateway, arrived.data)))
        else:
            await _send_other(client, arrived)
    await forward(retries.release())
    await _close(client, upstream, reason)


async def _frames(
    upstream: aiohttp.ClientWebSocketResponse, retries: Retries
) -> AsyncIterator[aiohttp.WSMessage | None]:
    """Yield the upstream's frames, the last one when it closes; None when held events may be held no longer."""
    while True:
        try:
            frame = await upstream.receive(retries.patience_s)
        except TimeoutError:
            yield None
            continue
        yield frame
        if frame.type in ENDS:
            return
        await asyncio.sleep(0)  # others get their turn between frames that arrived together


async def _send(sink: Socket, content: str | bytes) -> None:
    await (sink.send_str(content) if isinstance(content, str) else sink.send_bytes(content))


async def _send_other(sink: Socket, frame: aiohttp.WSMessage) -> None:
    """Forward a frame without content."""
    if frame.type is aiohttp.WSMsgType.PING:
        await sink.ping(frame.data)
    elif frame.type is aiohttp.WSMsgType.PONG:
        await sink.pong(frame.data)


async def _close(sink: Socket, source: Socket, reason: str = "") -> None:
    """Close one side with the code with which the other side was closed, and with its reason. A side that goes on sending is cut off."""
    if not sink.closed:
        code = source.close_code or aiohttp.WSCloseCode.OK
        if code in NEVER_SENT:
            code = aiohttp.WSCloseCode.INTERNAL_ERROR
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_CLOSE_S):
                await sink.close(code=code, message=reason.encode())
