"""WebSocket endpoints such as ``/v1/realtime``: frames are forwarded in both directions."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import aiohttp
from aiohttp import web

from gateway.serve import keys
from gateway.serve import record as records
from gateway.serve.endpoints.passthrough import only_model
from gateway.serve.incoming.admission import Overloaded, holding
from gateway.serve.incoming.body import READS_FASTER
from gateway.serve.shared import Gateway
from gateway.serve.sockets import socket_fold
from gateway.serve.sockets.socket_fold import Message, NotServed
from gateway.serve.sockets.socket_turns import Turns
from gateway.upstream.client import call_of

# Bytes. Realtime audio travels as base64 in JSON frames; the largest documented one is 15 MB.
LARGEST_FRAME: Final = 2**24
# Set separately on each of the two connections.
_HANDSHAKE: Final = ("Sec-WebSocket-Key", "Sec-WebSocket-Version", "Sec-WebSocket-Extensions", "Sec-WebSocket-Protocol")

CONTENT: Final = frozenset({aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY})
"""Types of frames with content."""


def wanted(request: web.BaseRequest) -> bool:
    """Return whether the client wants to upgrade to a WebSocket."""
    return request.headers.get("Upgrade", "").lower() == "websocket"


async def connect(gateway: Gateway, request: web.BaseRequest) -> web.StreamResponse:
    """Open the same WebSocket at the upstream and forward frames until one side closes.

    Raises UpstreamUnreachable when the upstream does not accept it; then nothing was sent to the client yet.
    """
    headers = keys.forwarded(request)
    for name in _HANDSHAKE:
        headers.popall(name, None)
    model = only_model(request)
    if model or not socket_fold.folds(request):  # a Responses socket names the model in each message
        keys.check_model(request, model)
    target = gateway.setup.target_of(model)
    record = records.of(request)
    record.why = "websocket"
    record.sent_to(target, model, gateway.settings.route(model).name if model else "", headers)
    call = call_of("GET", request.rel_url, model)
    offered = keys.protocols(request)
    upstream = await gateway.client.connect(target, call, target.authorised(headers), offered, LARGEST_FRAME)
    record.called(101)
    speaks_responses = socket_fold.folds(request)
    turns = Turns(gateway, record, request.method, records.path_of(request), opened_by_client=speaks_responses)
    try:
        chosen = (upstream.protocol,) if upstream.protocol else ()
        client = web.WebSocketResponse(protocols=chosen, max_msg_size=LARGEST_FRAME, autoping=False)
        client.headers.update(record.marks(gateway, "none"))
        await client.prepare(request)
        record.answered(101)
        async with asyncio.TaskGroup() as both:
            edit = partial(socket_fold.folded, gateway, request, target) if speaks_responses else _unchanged
            if keys.is_restricted(request):
                edit = partial(_allowed, gateway, request, edit)
            both.create_task(_hand_on(client, upstream, partial(_asked, request, turns, edit), record.received))
            both.create_task(_hand_on(upstream, client, _as_it_came, record.answered_with, turns.received))
        return client
    finally:
        turns.close()
        await upstream.close()


Socket = aiohttp.ClientWebSocketResponse | web.WebSocketResponse


Edit = Callable[[str], Awaitable[Message]]
"""Makes of a client's message the one for the upstream."""


async def _unchanged(text: str) -> Message:
    return Message(text)


async def _as_it_came(text: str) -> str:
    return text


async def _asked(request: web.BaseRequest, turns: Turns, edit: Edit, text: str) -> str:
    """Edit a client's message, and open a turn where it asks for a response. Raises Overloaded when it has no room."""
    with holding(request, len(text)):
        message = await edit(text)
    if message.asks:
        turns.opened(len(text.encode("utf-8", "surrogatepass")), message.facts)
    return message.text


async def _allowed(gateway: Gateway, request: web.BaseRequest, edit: Edit, text: str) -> Message:
    if not await gateway.pool.run(lambda: keys.allows_message(request, text), size_bytes=len(text) // READS_FASTER):
        raise NotServed("model_not_allowed")
    return await edit(text)


async def _hand_on(
    source: Socket,
    sink: Socket,
    edit: Callable[[str], Awaitable[str]],
    count: Callable[[int], None],
    read: Callable[[str], None] = lambda text: None,
) -> None:
    """Forward frames, texts as ``edit`` returns them; when one side closes, close the other with the same code.

    ``count`` is called with the size of each frame's content: characters of a text, bytes of others. ``read`` gets each
    text once it was forwarded.
    """
    async for frame in source:
        if frame.type in CONTENT:
            count(len(frame.data))
        if frame.type is aiohttp.WSMsgType.TEXT:
            try:
                await sink.send_str(await edit(frame.data))
                read(frame.data)
            except NotServed as reason:
                await source.close(code=aiohttp.WSCloseCode.POLICY_VIOLATION, message=str(reason).encode())
                break
            except Overloaded as full:
                await source.close(code=aiohttp.WSCloseCode.TRY_AGAIN_LATER, message=full.code.encode())
                break
        elif frame.type is aiohttp.WSMsgType.BINARY:
            await sink.send_bytes(frame.data)
        elif frame.type is aiohttp.WSMsgType.PING:
            await sink.ping(frame.data)
        elif frame.type is aiohttp.WSMsgType.PONG:
            await sink.pong(frame.data)
    if not sink.closed:
        await sink.close(code=source.close_code or 1000)
