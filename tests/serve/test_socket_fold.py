"""The websocket mode of Responses: stateless messages are folded, all others pass as they came."""

from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import orjson
import pytest
from aiohttp import web

from gateway.standin import responses
from gateway.wire import surrogates
from gateway.wire.compaction import SEAL, item
from tests import running
from tests.e2e.native import MODEL, RESPONSES

CONFIG = {"models": {MODEL: {"context_window": 4000, "tokenizer": "o200k"}}}


async def echo(request: web.Request) -> web.WebSocketResponse:
    """Say every frame back."""
    socket = web.WebSocketResponse(max_msg_size=0)
    await socket.prepare(request)
    async for frame in socket:
        await (socket.send_str if isinstance(frame.data, str) else socket.send_bytes)(frame.data)
    return socket


@pytest.fixture
async def said(aiohttp_server: Any) -> Any:
    """Send one message through a gateway; return what the upstream got."""
    app = web.Application()
    app.router.add_get("/v1/responses", echo)
    server = await aiohttp_server(app)

    async def send(message: str | bytes) -> str | bytes:
        config = running.configured(f"http://127.0.0.1:{server.port}/v1", CONFIG)
        async with AsyncExitStack() as stack:
            gateway = await stack.enter_async_context(running.in_process(config))
            session = await stack.enter_async_context(aiohttp.ClientSession())
            socket = await stack.enter_async_context(
                session.ws_connect(f"{gateway.base_url}/responses", max_msg_size=0)
            )
            if isinstance(message, bytes):
                await socket.send_bytes(message)
                return await socket.receive_bytes()
            await socket.send_str(message)
            return await socket.receive_str()

    return send


def create(turns: int, **more: Any) -> dict[str, Any]:
    return {"type": "response.create", **RESPONSES.body(turns, **more)}


@pytest.mark.parametrize("frame", [bytes.decode, bytes], ids=["text", "binary"])
async def test_a_stateless_message_above_the_window_is_folded(said, frame) -> None:
    body = create(60)

    sent = orjson.loads(await said(frame(orjson.dumps(body))))

    assert sent["type"] == "response.create"
    assert responses.added(body, sent) == []
    assert len(orjson.dumps(sent)) < len(orjson.dumps(body)) / 3


@pytest.mark.parametrize("odd", [r'"half of an emoji: \ud83d"', "NaN"])
async def test_a_message_that_strict_parsers_refuse_is_folded_as_over_http(said, odd) -> None:
    """It was taken for a message that asks for nothing: neither folded nor counted before it was sent."""
    message = f'{orjson.dumps(create(60)).decode()[:-1]},"metadata":{odd}}}'

    sent = surrogates.loads((await said(message)).encode())

    assert sent["type"] == "response.create"
    assert len(orjson.dumps(sent)) < len(message) / 3


@pytest.mark.parametrize(
    "message",
    [
        orjson.dumps(create(3)).decode(),
        orjson.dumps(create(60, previous_response_id="resp_1")).decode(),
        '{"type":"response.cancel"}',
        "no json",
        '{"type":"response.create"}',
        orjson.dumps(create(3)),
        orjson.dumps(create(3)).decode().encode("utf-16"),
        b"{audio\xff",
    ],
    ids=["it fits", "it continues a response", "another type", "no JSON", "no input", "bytes", "UTF-16", "audio"],
)
async def test_any_other_message_passes_as_it_came(said, message: str | bytes) -> None:
    assert await said(message) == message


async def test_a_message_beyond_the_limits_of_a_request_passes_as_it_came(said) -> None:
    """It is not worth the work of reading it: the upstream judges it."""
    many = orjson.dumps({**create(60), "metadata": [1] * 260_000}).decode()
    assert await said(many) == many


async def test_our_own_compaction_is_opened_in_a_message_that_fits(said) -> None:
    body = create(1)
    body["input"] = [item(("The invoice is number 88-1234.", ""), "1"), *body["input"]]

    sent = await said(orjson.dumps(body).decode())

    assert SEAL not in sent
    assert "88-1234" in sent
