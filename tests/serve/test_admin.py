"""The admin port: numbers, the last exchanges and explanations, behind its token."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import pytest
from yarl import URL

from gateway.standin import StandIn
from gateway.wire.message import dumps
from tests import fakes
from tests.running import Gateway

Start = Callable[..., Awaitable[Gateway]]
SMALL = {"models": {"m": {"context_window": 2000, "tokenizer": "o200k"}}}


async def admin(gateway: Gateway, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes]:
    data = None if body is None else body if isinstance(body, bytes) else orjson.dumps(body)
    headers = {"content-type": "application/json", **headers} if data else headers
    async with gateway.session.request(method, gateway.admin_url + path, data=data, headers=headers) as response:
        return response.status, await response.read()


async def test_metrics_and_exchanges_tell_what_was_done(standin: StandIn, gateway: Start) -> None:
    running = await gateway(standin, SMALL)
    await running.chat({"model": "m", "messages": fakes.chat(60, 50)})
    status, metrics = await admin(running, "GET", "/metrics")

    assert status == 200
    assert (
        b'turnfold_requests_total{action="fold",entry="m",mode="enforce",status="200",upstream="standin"} 1.0'
        in metrics
    )
    status, exchanges = await admin(running, "GET", "/api/exchanges?limit=5")
    (newest,) = orjson.loads(exchanges)
    assert newest["action"] == "fold"
    assert newest["tokens_before"] > 2000 >= newest["tokens_after"]
    assert newest["decided_s"] > 0
    assert fakes.PROSE.encode() not in exchanges + metrics


async def test_an_explanation_says_what_would_be_sent_and_calls_nobody(standin: StandIn, gateway: Start) -> None:
    running = await gateway(standin, SMALL)
    body = {"model": "m", "messages": fakes.chat(60, 50), "max_tokens": 100}
    status, raw = await admin(running, "POST", "/api/explain", body)
    told = orjson.loads(raw)

    assert status == 200
    assert told.keys() >= {
        "model", "window", "reserve", "prompt_tokens", "messages_tokens", "tools_tokens", "basis", "fits", "action",
        "prompt_tokens_after", "turns_folded", "steps", "messages",
    }  # fmt: skip
    assert (told["window"], told["reserve"], told["fits"], told["action"]) == (2000, 100, False, "fold")
    assert told["prompt_tokens"] == told["messages_tokens"] + told["tools_tokens"]
    assert told["steps"]
    assert told["steps"][0].keys() == {"stage", "saved", "detail"}
    assert standin.requests == []

    answer = await running.chat(body)
    assert standin.chats[0].json["messages"] == told["messages"]
    assert answer.tokens == (told["prompt_tokens"], told["prompt_tokens_after"])


async def test_what_fits_is_counted_in_an_explanation(standin: StandIn, gateway: Start) -> None:
    running = await gateway(standin, SMALL)
    _, raw = await admin(running, "POST", "/api/explain", {"model": "m", "messages": [fakes.user("Hello")]})
    told = orjson.loads(raw)

    assert (told["action"], told["fits"], told["steps"]) == ("none", True, [])
    assert told["basis"] in ("exact", "anchor", "estimate")
    assert 4 < told["prompt_tokens"] < 12


async def test_a_long_request_is_explained_beside_the_event_loop(standin: StandIn, gateway: Start) -> None:
    """Reading, counting, folding: three jobs of the threads. Other clients are served meanwhile."""
    running = await gateway(standin, SMALL)
    assert running.inside is not None
    threads = running.inside.gateway.threads
    before = threads.jobs
    status, raw = await admin(running, "POST", "/api/explain", {"model": "m", "messages": fakes.chat(600, 200)})

    assert (status, orjson.loads(raw)["action"]) == (200, "fold")
    assert threads.jobs >= before + 3


async def test_a_request_of_any_depth_is_explained(standin: StandIn, gateway: Start) -> None:
    odd = {"type": "odd", "deep": orjson.loads("[" * 300 + "]" * 300)}
    messages = [{"role": "user", "content": [{"type": "text", "text": "Hello"}, odd]}]
    running = await gateway(standin, SMALL)
    status, raw = await admin(running, "POST", "/api/explain", dumps({"model": "m", "messages": messages}))

    assert (status, orjson.loads(raw)["action"]) == (200, "none")


@pytest.mark.parametrize("body", [b"no json", b"[]", b'{"messages": 3}'])
async def test_what_is_no_request_cannot_be_explained(standin: StandIn, gateway: Start, body: bytes) -> None:
    running = await gateway(standin)
    status, raw = await admin(running, "POST", "/api/explain", body)

    assert status == 400
    assert orjson.loads(raw)["error"]["code"] == "invalid_body"


async def test_a_token_from_a_file_needs_no_line_break(standin: StandIn, gateway: Start) -> None:
    running = await gateway(standin, {"admin": {"token": "geheim\n"}})

    assert (await admin(running, "GET", "/metrics", Authorization="Bearer geheim"))[0] == 200


@pytest.mark.parametrize(
    ("header", "expected"), [("", 401), ("Bearer wrong", 401), ("Bearer geheim", 200), ("Bearer \u00e9", 401)]
)
async def test_a_configured_token_is_asked_for(standin: StandIn, gateway: Start, header: str, expected: int) -> None:
    running = await gateway(standin, {"admin": {"token": "geheim"}})

    assert (await admin(running, "GET", "/metrics", Authorization=header))[0] == expected
    assert (await admin(running, "GET", "/healthz"))[0] == 200


@pytest.mark.parametrize(
    ("token", "sent", "expected"),
    [
        ("geheim", b"\xe9", 401),
        ("geheim", b"\xff\xfe", 401),
        ("s\u00e9cret", b"s\xe9cret", 200),
        ("s\u00e9cret", "s\u00e9cret".encode(), 200),
        ("\u79d8", b"?", 401),
    ],
)
async def test_a_token_of_any_bytes_is_compared(
    standin: StandIn, gateway: Start, token: str, sent: bytes, expected: int
) -> None:
    """Browsers send a header's letters in Latin-1, other clients in UTF-8."""
    running = await gateway(standin, {"admin": {"token": token}})

    request = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer " + sent
    reader, writer = await asyncio.open_connection("127.0.0.1", URL(running.admin_url).port)
    writer.write(request + b"\r\n\r\n")
    assert (await reader.readline()).split()[1] == str(expected).encode()
    writer.close()


@pytest.mark.parametrize("path", ["/healthz", "/metrics", "/dashboard/", "/api/status"])
async def test_what_is_read_with_get_may_be_asked_for_with_head(standin: StandIn, gateway: Start, path: str) -> None:
    running = await gateway(standin)

    assert await admin(running, "HEAD", path) == (200, b"")
