"""An alias in a message on a socket reaches its upstream by the upstream's name, and nothing else of the message changes."""

from typing import Any

import aiohttp
import orjson
import pytest
from aiohttp import web

from tests.running import PATIENCE_S, configured, in_process

MODELS = {
    "fast": {"upstream": "standin", "name": "real"},
    "ears": {"upstream": "standin", "name": "whisper"},
    "far": {"upstream": "other", "name": "away"},
    "held": {"upstream": "standin", "name": "real", "fold": {"mode": "off"}},
    "seen": {"upstream": "standin", "name": "real", "fold": {"mode": "observe"}},
}
ONE = {name: model for name, model in MODELS.items() if model["upstream"] == "standin"}
SPEECH = "/realtime?model=fast"
MESSAGES = [
    ("/responses", '{"type": "response.create", "model":"fast",  "input":"hi"}', '{"type": "response.create", "model":"real",  "input":"hi"}'),
    ("/responses", '{"type":"response.create","model":"fast","previous_response_id":"r","input":"hi"}', '{"type":"response.create","model":"real","previous_response_id":"r","input":"hi"}'),
    ("/responses", '{"type":"response.create","model":"held","input":"hi"}', '{"type":"response.create","model":"real","input":"hi"}'),
    ("/responses", '{"type":"response.create","model":"seen","input":"hi"}', '{"type":"response.create","model":"real","input":"hi"}'),
    ("/responses", '{"type":"response.create","model":"gpt-4o","input":"fast"}', None),
    (SPEECH, '{"type":"session.update", "session":{"model":"fast","voice":"a"}}', '{"type":"session.update", "session":{"model":"real","voice":"a"}}'),
    (SPEECH, '{"type":"session.update","session":{"audio":{"input":{ "transcription":{"model":"ears"}}}}}', '{"type":"session.update","session":{"audio":{"input":{ "transcription":{"model":"whisper"}}}}}'),
    (SPEECH, '{"type":"transcription_session.update","session":{"input_audio_transcription":{"model":"ears"}}}', '{"type":"transcription_session.update","session":{"input_audio_transcription":{"model":"whisper"}}}'),
    (SPEECH, '{"type":"session.update","session":{"model":"far"}}', None),
    (SPEECH, '{"type":"session.update","session":{"model":"unknown"}}', None),
    (SPEECH, '{"type":"session.update","session":{"model":7}}', None),
    (SPEECH, '{"type":"conversation.item.create","item":{"model":"fast"}}', None),
    (SPEECH, 'not JSON, but "model"', None),
]  # fmt: skip
"""By path a message, and what the upstream gets; None for the message itself."""


async def echo(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for frame in socket:
        await (socket.send_str if frame.type is aiohttp.WSMsgType.TEXT else socket.send_bytes)(frame.data)
    return socket


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize(("path", "message", "sent"), MESSAGES)
async def test_an_alias_in_a_message_is_replaced(
    aiohttp_server: Any, path: str, message: str, sent: str | None, binary: bool
) -> None:
    app = web.Application()
    app.router.add_get("/v1/realtime", echo)
    app.router.add_get("/v1/responses", echo)
    server = await aiohttp_server(app)
    other = {"other": {"provider": "openai", "base_url": "http://127.0.0.1:1/v1"}}
    config = {"models": MODELS, "upstreams": other} if "far" in message else {"models": ONE}
    async with (
        in_process(configured(f"http://127.0.0.1:{server.port}/v1", config)) as gateway,
        gateway.session.ws_connect(f"{gateway.base_url}{path}") as socket,
    ):
        await (socket.send_bytes(message.encode()) if binary else socket.send_str(message))
        answer = (await socket.receive(PATIENCE_S)).data
    expected = message if sent is None else sent
    assert answer == (expected.encode() if binary else expected)


async def test_a_folded_message_has_its_alias_replaced_once(aiohttp_server: Any) -> None:
    app = web.Application()
    app.router.add_get("/v1/responses", echo)
    server = await aiohttp_server(app)
    small = {name: {**model, "context_window": 4000} for name, model in ONE.items()}
    history = [{"role": role, "content": f"{n} " + "word " * 300} for n in range(20) for role in ("user", "assistant")]
    create = {"type": "response.create", "model": "fast", "input": [*history, {"role": "user", "content": "Well?"}]}
    async with (
        in_process(configured(f"http://127.0.0.1:{server.port}/v1", {"models": small})) as gateway,
        gateway.session.ws_connect(f"{gateway.base_url}/responses") as socket,
    ):
        await socket.send_json(create)
        answer = orjson.loads((await socket.receive(PATIENCE_S)).data)
    assert answer["model"] == "real"
    assert len(orjson.dumps(answer)) < len(orjson.dumps(create)) / 2
