"""WebSockets under /v1 are connected through, frame by frame."""

from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests import running


async def echo(request: web.Request) -> web.WebSocketResponse:
    """Say every frame back, with what was asked for; "bye" ends it."""
    socket = web.WebSocketResponse(protocols=("realtime",))
    await socket.prepare(request)
    await socket.send_str(f"{request.path_qs} {request.headers['Authorization']}")
    async for frame in socket:
        if frame.type is aiohttp.WSMsgType.TEXT and frame.data == "bye":
            await socket.close(code=4001)
        elif frame.type is aiohttp.WSMsgType.TEXT:
            await socket.send_str(frame.data)
        elif frame.type is aiohttp.WSMsgType.BINARY:
            await socket.send_bytes(frame.data)
    return socket


@pytest.fixture
async def gateway_url(aiohttp_server: Any) -> Any:
    """A gateway in front of the echo."""
    app = web.Application()
    app.router.add_get("/v1/realtime", echo)
    server = await aiohttp_server(app)
    async with AsyncExitStack() as stack:
        config = running.configured(f"http://127.0.0.1:{server.port}/v1")
        yield (await stack.enter_async_context(running.in_process(config))).base_url


async def test_frames_travel_both_ways_and_so_does_the_end(gateway_url: str) -> None:
    headers = {"Authorization": "Bearer sk-mine"}
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{gateway_url}/realtime?model=x&y=1", headers=headers, protocols=["realtime"]) as socket,
    ):
        assert socket.protocol == "realtime"
        assert await socket.receive_str() == "/v1/realtime?model=x&y=1 Bearer sk-mine"
        await socket.send_str("hé")
        assert await socket.receive_str() == "hé"
        await socket.send_bytes(b"\x00\xff")
        assert await socket.receive_bytes() == b"\x00\xff"
        await socket.send_str("bye")
        assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
        assert socket.close_code == 4001


async def test_a_socket_the_upstream_refuses_is_an_error_in_json(gateway_url: str) -> None:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(f"{gateway_url}/unknown")

    assert refused.value.status == 502
