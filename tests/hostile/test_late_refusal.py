"""A stream that says "too long" only after it has begun is retried, as long as nothing with content has gone out."""

import asyncio
from typing import Any

import orjson
import pytest

from gateway.serve.answers import answer as answers
from gateway.standin import Gate, Raw, StandIn
from gateway.standin.answers import EVENTS
from tests.fakes import chat, delta

CONFIG = {"models": {"m": {"context_window": 32_768}}}
LONG = {"model": "m", "messages": chat(60, 250), "stream": True}
REFUSAL = orjson.dumps({"error": {
    "message": "This model's maximum context length is 8192 tokens. However, your messages resulted in 15843 tokens.",
    "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}})  # fmt: skip


def data(event: Any) -> bytes:
    return b"data: " + (event if isinstance(event, bytes) else orjson.dumps(event)) + b"\n\n"


def role(content: str | None = "") -> dict[str, Any]:
    choice = {"index": 0, "delta": {"role": "assistant", "content": content}, "finish_reason": None}
    return {"id": "c", "object": "chat.completion.chunk", "choices": [choice]}


PREAMBLES: list[tuple[str, tuple[bytes, ...]]] = [
    ("a role", (data(role()),)),
    ("a role without content", (data(role(None)),)),
    ("filter results and no choices", (data({"choices": [], "prompt_filter_results": []}), data(role()))),
    ("a comment", (b": keep-alive\n\n",)),
    ("an empty event", (b"data: \n\n", b"data:\n\n")),
    ("a ping of Anthropic's", (b'event: ping\ndata: {"type": "ping"}\n\n', data(role()))),
    ("a ping after the role", (data(role()), data({"type": "ping"}))),
    ("many pings", tuple(b": ping\n\n" for _ in range(200))),
    ("a role in pieces", tuple(bytes([byte]) for byte in data(role()))),
    ("nothing", ()),
]


def stream(*chunks: bytes, pace: Gate | None = None) -> Raw:
    return Raw(200, chunks, {"content-type": EVENTS}, pace)


@pytest.mark.parametrize("preamble", [chunks for _, chunks in PREAMBLES], ids=[name for name, _ in PREAMBLES])
async def test_a_refusal_after_a_preamble_is_retried(gateway, preamble):
    async with StandIn(window=8192, script=[stream(*preamble, data(REFUSAL))]) as standin:
        running = await gateway(standin, CONFIG)
        answer = await running.chat(LONG)
        assert (answer.status, answer.action, answer.headers["x-turnfold-attempts"]) == (200, "retry", "2")
        assert b"maximum context" not in answer.body
        assert answer.body.count(b'"role":"assistant"') <= 1, "nothing of the refused stream went out"


async def test_a_refusal_after_content_is_handed_on_as_it_came(gateway):
    chunks = (data(role()), data(delta("Well")), data(REFUSAL))
    async with StandIn(window=8192, script=[stream(*chunks)]) as standin:
        running = await gateway(standin, CONFIG)
        answer = await running.chat(LONG)
        assert (answer.status, answer.body, sum(seen.method == "POST" for seen in standin.requests)) == (
            200,
            b"".join(chunks),
            1,
        )


async def test_an_error_that_is_no_refusal_is_handed_on_as_it_came(gateway):
    chunks = (data(role()), data({"error": {"message": "overloaded", "code": 529}}))
    async with StandIn(window=8192, script=[stream(*chunks)]) as standin:
        running = await gateway(standin, CONFIG)
        assert (await running.chat(LONG)).body == b"".join(chunks)


async def test_a_good_stream_keeps_its_bytes_after_the_hold(gateway):
    chunks = (b": one\n\n", data(role()), b"data:\n\n", data(delta("Hi")), data(delta("!")), b"data: [DONE]\n\n")
    async with StandIn(script=[stream(*chunks)]) as standin:
        running = await gateway(standin, CONFIG)
        assert (await running.chat(LONG)).body == b"".join(chunks)


async def test_the_hold_is_bounded_in_time(gateway, monkeypatch):
    monkeypatch.setattr(answers.peek, "__defaults__", (0.05,))
    gate = Gate(open_until=1)
    async with StandIn(script=[stream(data(role()), data(delta("Hi")), pace=gate)]) as standin:
        running = await gateway(standin, CONFIG)
        url = f"{running.base_url}/chat/completions"
        async with asyncio.timeout(20), running.session.post(url, json=LONG) as response:
            assert await response.content.readany() == data(role()), (
                "the model thinks on, and the client sees that it lives"
            )
            gate.release(5)
            assert await response.content.read() == data(delta("Hi"))


async def test_the_hold_is_bounded_in_bytes(gateway):
    pings = tuple(b": " + b"p" * 60_000 + b"\n\n" for _ in range(6))
    gate = Gate(open_until=len(pings))
    async with StandIn(script=[stream(*pings, data(delta("Hi")), pace=gate)]) as standin:
        running = await gateway(standin, CONFIG)
        url = f"{running.base_url}/chat/completions"
        async with asyncio.timeout(20), running.session.post(url, json=LONG) as response:
            assert response.status == 200, "headers and pings go out before any content comes"
            gate.release(5)
            assert await response.read() == b"".join(pings) + data(delta("Hi"))
