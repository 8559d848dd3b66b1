"""WebSockets under /v1 are connected through, frame by frame."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from gateway.serve.sockets import websocket
from tests import running


async def echo(request: web.Request) -> web.WebSocketResponse:
    """Say every frame back, with what was asked for; "bye" ends it."""
    socket = web.WebSocketResponse(protocols=("realtime",))
    await socket.prepare(request)
    await socket.send_str(f"{request.path_qs} {request.headers['Authorization']}")
    async for frame in socket:
        if frame.type is aiohttp.WSMsgType.TEXT and frame.data == "bye":
            await socket.close(code=4001, message=b"session over")
        elif frame.type is aiohttp.WSMsgType.TEXT and frame.data == "break":
            request.transport.abort()
        elif frame.type is aiohttp.WSMsgType.TEXT:
            await socket.send_str(frame.data)
        elif frame.type is aiohttp.WSMsgType.BINARY:
            await socket.send_bytes(frame.data)
    return socket


@pytest.fixture
async def gateway_url(aiohttp_server: Any) -> Any:
    """A gateway in front of the echo."""
    server = await aiohttp_server(upstream(echo))
    async with AsyncExitStack() as stack:
        config = running.configured(f"http://127.0.0.1:{server.port}/v1")
        yield (await stack.enter_async_context(running.in_process(config))).base_url


def upstream(handler: Any) -> web.Application:
    """An upstream with one endpoint."""
    app = web.Application()
    app.router.add_get("/v1/realtime", handler)
    return app


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
        end = await socket.receive()
        assert (end.type, end.data, end.extra) == (aiohttp.WSMsgType.CLOSE, 4001, "session over")


async def test_a_socket_that_the_upstream_breaks_off_ends_with_a_code_that_may_be_sent(gateway_url: str) -> None:
    """RFC 6455 reserves 1006 for the library that sees the break; sent in a frame it is a protocol error."""
    headers = {"Authorization": "Bearer sk-mine"}
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{gateway_url}/realtime", headers=headers) as socket,
    ):
        await socket.receive_str()
        await socket.send_str("break")
        end = await socket.receive()
        assert (end.type, end.data) == (aiohttp.WSMsgType.CLOSE, aiohttp.WSCloseCode.INTERNAL_ERROR)


async def test_the_upstream_gets_the_code_with_which_the_client_closes(aiohttp_server: Any) -> None:
    codes: asyncio.Queue[int | None] = asyncio.Queue()

    async def handler(request: web.Request) -> web.WebSocketResponse:
        socket = await echo(request)
        codes.put_nowait(socket.close_code)
        return socket

    server = await aiohttp_server(upstream(handler))
    async with running.in_process(running.configured(f"http://127.0.0.1:{server.port}/v1")) as gateway:
        url, headers = f"{gateway.base_url}/realtime", {"Authorization": "Bearer sk-mine"}
        async with gateway.session.ws_connect(url, headers=headers) as socket:
            await socket.receive_str()
            await socket.close(code=4002)
        assert await codes.get() == 4002


async def test_an_upstream_that_goes_on_sending_is_cut_off_when_its_client_has_left(
    aiohttp_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "LONGEST_CLOSE_S", 0.2)
    ended = asyncio.Event()

    async def talk(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(autoclose=False)
        await socket.prepare(request)
        try:
            while True:
                await socket.send_str("and another thing")
                await asyncio.sleep(0.01)
        except ConnectionError:
            return socket
        finally:
            ended.set()

    server = await aiohttp_server(upstream(talk))
    async with running.in_process(running.configured(f"http://127.0.0.1:{server.port}/v1")) as gateway:
        async with gateway.session.ws_connect(f"{gateway.base_url}/realtime") as socket:
            await socket.receive_str()
        await asyncio.wait_for(ended.wait(), running.PATIENCE_S)


@pytest.mark.parametrize(
    ("said", "passed_on"), [(401, 401), (404, 404), (429, 429), (503, 503), (200, 502), (204, 502)]
)
async def test_a_socket_the_upstream_refuses_is_an_error_in_json_with_its_status(
    aiohttp_server: Any, said: int, passed_on: int
) -> None:
    async def refuse(_: web.Request) -> web.Response:
        return web.Response(status=said)

    server = await aiohttp_server(upstream(refuse))
    async with (
        running.in_process(running.configured(f"http://127.0.0.1:{server.port}/v1")) as gateway,
        gateway.session.get(f"{gateway.base_url}/realtime", headers=HANDSHAKE) as answer,
    ):
        assert answer.status == passed_on
        assert (await answer.json())["error"]["code"] == "websocket_refused"


@pytest.mark.parametrize(
    ("said", "passed_on"), [(404, 426), (405, 426), (501, 426), (200, 426), (400, 400), (401, 401), (503, 503)]
)
async def test_a_client_of_responses_learns_at_once_that_the_upstream_has_only_http(
    aiohttp_server: Any, said: int, passed_on: int
) -> None:
    """At 426 Codex goes on by HTTP; at 404 and 405 it first opens the socket six more times."""

    async def refuse(_: web.Request) -> web.Response:
        return web.Response(status=said)

    app = web.Application()
    app.router.add_get("/v1/responses", refuse)
    server = await aiohttp_server(app)
    async with (
        running.in_process(running.configured(f"http://127.0.0.1:{server.port}/v1")) as gateway,
        gateway.session.get(f"{gateway.base_url}/responses", headers=HANDSHAKE) as answer,
    ):
        assert (answer.status, (await answer.json())["error"]["code"]) == (passed_on, "websocket_refused")


HANDSHAKE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


async def test_a_socket_follows_no_redirect(aiohttp_server: Any) -> None:
    """Otherwise an upstream could have its key, and its clients' keys, sent to any server that the gateway reaches."""
    reached = []

    async def elsewhere(request: web.Request) -> web.Response:
        reached.append(request)
        return web.Response()

    other = await aiohttp_server(upstream(elsewhere))

    async def redirect(_: web.Request) -> web.Response:
        raise web.HTTPTemporaryRedirect(f"http://127.0.0.1:{other.port}/v1/realtime")

    server = await aiohttp_server(upstream(redirect))
    async with (
        running.in_process(running.configured(f"http://127.0.0.1:{server.port}/v1")) as gateway,
        gateway.session.get(f"{gateway.base_url}/realtime", headers={**HANDSHAKE, "api-key": "sk-mine"}) as answer,
    ):
        assert answer.status == 502
        assert "status 307" in (await answer.json())["error"]["message"]
    assert reached == []


BAD_HANDSHAKES = [
    ("GET", {"Sec-WebSocket-Key": "short"}),
    ("GET", {"Sec-WebSocket-Key": ""}),
    ("GET", {"Sec-WebSocket-Version": "99"}),
    ("GET", {"Connection": "close"}),
    ("POST", {}),
]


@pytest.mark.parametrize(("method", "wrong"), BAD_HANDSHAKES)
async def test_a_handshake_that_is_not_valid_is_a_400_and_opens_nothing(
    aiohttp_server: Any, method: str, wrong: dict[str, str]
) -> None:
    reached = []

    async def handler(request: web.Request) -> web.WebSocketResponse:
        reached.append(request)
        return await echo(request)

    server = await aiohttp_server(upstream(handler))
    async with running.in_process(running.configured(f"http://127.0.0.1:{server.port}/v1")) as gateway:
        async with gateway.session.request(
            method, f"{gateway.base_url}/realtime", headers={**HANDSHAKE, **wrong}
        ) as answer:
            assert answer.status == 400
            assert (await answer.json())["error"]["code"] == "invalid_handshake"
        async with gateway.session.get(f"{gateway.admin_url}/metrics") as metrics:
            assert "turnfold_degraded_total{" not in await metrics.text()
    assert reached == []


async def test_a_key_among_the_protocols_of_a_socket_is_in_no_log(aiohttp_server: Any, tmp_path: Path) -> None:
    async def silent(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.close()
        return socket

    server = await aiohttp_server(upstream(silent))
    config = running.configured(f"http://127.0.0.1:{server.port}/v1")
    async with running.as_command(config, tmp_path) as (gateway, process):
        protocols = ["realtime", "openai-insecure-api-key.sk-mine"]
        async with gateway.session.ws_connect(f"{gateway.base_url}/realtime", protocols=protocols) as socket:
            await socket.receive()
        process.terminate()
        written, _ = await process.communicate()
    assert b"websocket" in written
    assert b"sk-mine" not in written
