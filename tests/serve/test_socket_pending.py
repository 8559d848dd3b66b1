"""Each response on a WebSocket leaves a record of its own, beside that of the socket."""

from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import orjson
import pytest
from aiohttp import web

from tests import running
from tests.e2e.native import MODEL
from tests.serve.test_socket_fold import create

CONFIG = {
    "models": {MODEL: {"context_window": 4000, "tokenizer": "o200k"}},
    "keys": {"team": {"hash": "sha256:" + "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b", "tpm": 10_000}},
}  # fmt: skip
KEY = {"x-api-key": "secret", "x-session-id": "mine"}
USAGE = {"input_tokens": 900, "output_tokens": 30, "input_tokens_details": {"cached_tokens": 512}}
ENDS = {
    "completed": {"type": "response.completed", "response": {"id": "resp_1", "usage": USAGE}},
    "failed": {"type": "response.failed", "response": {"id": "resp_1", "error": {"code": "server_error"}}},
    "refused": {"type": "error", "status": 400, "error": {"code": "context_length_exceeded"}},
}


async def answer(request: web.Request) -> web.WebSocketResponse:
    """Answer as the API does: a response is created, grows, and ends as the message's metadata asks."""
    socket = web.WebSocketResponse(max_msg_size=0)
    await socket.prepare(request)
    async for frame in socket:
        asked = orjson.loads(frame.data)
        if asked["type"] not in ("response.create", "conversation.item.create"):
            continue
        end = "" if "realtime" in request.path else asked.get("metadata", {}).get("end", "completed")
        await socket.send_json({"type": "response.created", "response": {"id": "resp_1"}})
        await socket.send_json({"type": "response.output_text.delta", "delta": "Hello"})
        if end in ENDS:
            await socket.send_json(ENDS[end])
        if "realtime" in request.path:
            await socket.send_json({"type": "response.done", "response": {"id": "resp_1", "usage": USAGE}})
    return socket


@pytest.fixture
async def spoken(aiohttp_server: Any) -> Any:
    """Send messages over one socket, each after the end of the one before; return the records, oldest first."""
    app = web.Application()
    app.router.add_get("/v1/responses", answer)
    app.router.add_get("/v1/realtime", answer)
    server = await aiohttp_server(app)

    async def speak(*messages: Any, path: str = "/responses", headers: dict[str, str] | None = None) -> list[Any]:
        config = running.configured(f"http://127.0.0.1:{server.port}/v1", CONFIG)
        async with AsyncExitStack() as stack:
            gateway = await stack.enter_async_context(running.in_process(config))
            session = await stack.enter_async_context(aiohttp.ClientSession(headers={**KEY, **(headers or {})}))
            async with session.ws_connect(f"{gateway.base_url}{path}", max_msg_size=0) as socket:
                for message in messages:
                    await socket.send_json(message)
                    ends = {event["type"] for event in ENDS.values()} | {"response.done"}
                    if message.get("metadata", {}).get("end") == "never":
                        ends = {"response.output_text.delta"}
                    while orjson.loads(await socket.receive_str())["type"] not in ends:
                        pass
            await gateway.settled()
            async with gateway.session.get(f"{gateway.admin_url}/api/exchanges") as response:
                return sorted(await response.json(), key=lambda one: float(one["at"]))

    return speak


async def test_each_response_leaves_a_record_and_so_does_the_socket(spoken) -> None:
    socket, fits, folded, continued = await spoken(create(3), create(60), create(1, previous_response_id="resp_1"))
    assert (socket["why"], socket["status"], socket["prompt_tokens"]) == ("websocket", 101, None)
    assert [one["why"] for one in (fits, folded, continued)] == ["fits", "folded", "stateful"]
    assert [one["action"] for one in (fits, folded, continued)] == ["none", "fold", "none"]
    for one in (fits, folded, continued):
        assert (one["status"], one["error"], one["attempts"]) == (200, "", 1)
        assert (one["prompt_tokens"], one["completion_tokens"], one["cached_tokens"]) == (900, 30, 512)
        assert (one["key"], one["session"], one["model"]) == ("team", "mine", MODEL)
        assert one["calls"][0]["status"] == 200
        assert one["answer_bytes"] > 100
    assert folded["tokens_before"] > folded["tokens_after"] > 0
    assert folded["turns_folded"] > 0
    assert folded["lost"]["turns"] == folded["turns_folded"]
    assert fits["conversation"] == folded["conversation"] == continued["conversation"] != "", "one conversation"
    assert len({one["request_id"] for one in (socket, fits, folded, continued)}) == 4


@pytest.mark.parametrize(
    ("end", "status", "error"), [("failed", 500, "response_failed"), ("refused", 400, ""), ("never", 499, "unfinished")]
)
async def test_a_response_that_does_not_complete_says_so(spoken, end, status, error) -> None:
    _, turn = await spoken(create(3, metadata={"end": end}))
    assert (turn["status"], turn["error"]) == (status, error)


@pytest.mark.parametrize(
    ("mode", "why", "action"),
    [("observe", "observe", "observe"), ("off", "off", "off"), ("nonsense", "folded", "fold")],
)
async def test_the_mode_of_a_socket_holds_for_its_responses(spoken, mode, why, action) -> None:
    _, turn = await spoken(create(60), headers={"x-turnfold-mode": mode})
    assert (turn["why"], turn["action"]) == (why, action)
    assert (turn["tokens_after"] is not None) == (mode != "off")


async def test_responses_of_another_socket_are_recorded_as_the_upstream_makes_them(spoken) -> None:
    """The upstream of a realtime socket answers speech without being asked."""
    spoke = {"type": "conversation.item.create"}
    socket, first, second = await spoken(spoke, spoke, path="/realtime?model=gpt-realtime")
    assert socket["status"] == 101
    assert [(one["why"], one["model"], one["prompt_tokens"]) for one in (first, second)] == [
        ("websocket", "gpt-realtime", 900)
    ] * 2
    assert first["format"] == ""
