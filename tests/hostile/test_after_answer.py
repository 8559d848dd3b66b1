"""Nothing after a good answer can spoil it: each part that comes after is made to fail, and the client gets its answer all the same."""

import asyncio
from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from gateway.context.life.states import Answered, Measured, Refused
from gateway.serve import chat as driver
from gateway.serve.answers import answer, relay
from gateway.serve.request import measure, outcome, places, sending, summary, uncounted_bill
from gateway.standin import Raw, StandIn
from gateway.state.learning import Learning
from tests import raw
from tests import running as running_tests
from tests.fakes import RATE_LIMITED, chat, refuse, reply, verbatim

CONFIG = {"models": {"m": {"context_window": 8192}, "s": {"context_window": 8192}}, "fold": {"summary": {"model": "s"}}}
SHORT = {"model": "m", "messages": chat(2)}
LONG = {"model": "m", "messages": chat(60, 250)}


def broken(*_: Any, **__: Any) -> Any:
    raise RecursionError("forced")


# What fails, in which request it is at work, and whether the request is then sent as it came.
PARTS: list[tuple[str, Any, str, dict[str, Any]]] = [
    ("learning from a counted answer", (Answered, "find_lessons"), "learning", LONG),
    ("learning from an uncounted answer", (uncounted_bill, "lessons_of"), "learning", SHORT),
    ("taking a lesson in", (Learning, "learn"), "learning", LONG),
    ("asking for a summary", (summary, "request_if_needed"), "summary", LONG),
    ("response headers", (outcome, "headers"), "headers", SHORT),
    ("the record", (outcome, "exchange"), "record", SHORT),
    ("the proof by size", (measure, "fits_by_size"), "fold", SHORT),
    ("counting", (measure, "task_for"), "fold", LONG),
    ("looking up a summary", (summary, "with_summary"), "fold", LONG),
    ("folding", (Measured, "make_first_attempt"), "fold", LONG),
    ("the table of transitions", (driver, "advance"), "life", SHORT),
    ("finding places", (places, "places_for"), "places", SHORT),
]


async def is_counted(running: Any, part: str) -> None:
    """Wait until the failure of a part shows in the metrics: what follows a stream is done after the client has it all."""
    async with asyncio.timeout(running_tests.PATIENCE_S):
        while True:
            async with running.session.get(f"{running.admin_url}/metrics") as response:
                if f'turnfold_degraded_total{{part="{part}"}}' in (await response.read()).decode():
                    return


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("part", "target", "counted", "body"), PARTS, ids=[part[0] for part in PARTS])
async def test_the_answer_is_delivered_whatever_fails(gateway, monkeypatch, part, target, counted, body, stream):
    async with StandIn(window=200_000) as standin:
        running = await gateway(standin, CONFIG)
        monkeypatch.setattr(*target, broken)
        answer = await running.chat({**body, "stream": stream, "stream_options": {"include_usage": True}})
        assert answer.status == 200
        assert b"Understood" in answer.body or b"chat.completion" in answer.body
        assert standin.requests[-1].status == 200
        assert answer.headers["x-turnfold-request-id"].startswith("tf-")
        await is_counted(running, counted)


@pytest.mark.parametrize(
    "target", [(Refused, "make_smaller_attempt"), (Refused, "find_lessons"), (measure, "task_for")]
)
async def test_a_refusal_is_handed_on_or_retried_whatever_fails(gateway, monkeypatch, target):
    async with StandIn(window=200_000, script=[refuse(limit=4096, prompt=9000)]) as standin:
        running = await gateway(standin, CONFIG)
        monkeypatch.setattr(*target, broken)
        answer = await running.chat({"model": "m", "messages": chat(20, 250)})
        assert answer.status in (200, 400)
        if answer.status == 400:
            assert answer.json["error"]["code"] == "context_length_exceeded"


@pytest.mark.parametrize("reader", ["read_refusal", "read_usage"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_provider_whose_reading_fails_still_delivers(gateway, standin, monkeypatch, reader, stream):
    running = await gateway(standin, CONFIG)
    called = sending.peek

    async def peek(target: Any, *rest: Any) -> Any:
        return await called(replace(target, provider=replace(target.provider, **{reader: broken})), *rest)

    monkeypatch.setattr(sending, "peek", peek)
    answer = await running.chat({**SHORT, "stream": stream, "stream_options": {"include_usage": True}})
    assert answer.status == 200
    await is_counted(running, {"read_refusal": "refusal", "read_usage": "usage"}[reader])


DEEP = b'{"error":' * 1000 + b'"maximum context length"' + b"}" * 1000
ODD = [
    verbatim(400, DEEP),
    Raw(429, (b"{}",), {"content-type": "application/json", "retry-after": "²".encode().decode("latin-1")}),
    Raw(503, (b"{}",), {"content-type": "application/json", "retry-after": "1.2.3"}),
    Raw(503, (b"{}",), {"content-type": "application/json", "retry-after": "9" * 400}),
    RATE_LIMITED,
    Raw(200, (b'{"usage":' * 1000 + b"1" + b"}" * 1000,)),
    Raw(200, (b'data: {"usage":' * 500 + b"\n\n",), {"content-type": "text/event-stream"}),
    Raw(200, (b'{"usage":{"prompt_tokens":-1}}',)),
    Raw(200, (b'{"usage":{"prompt_tokens":1e400}}',)),
    Raw(200, (b'{"usage":{"prompt_tokens":%d}}' % 10**400,)),
    Raw(200, (b'{"usage":{"prompt_tokens":5,"completion_tokens":%d,"total_tokens":7}}' % 2**64,)),
    Raw(200, (b'{"usage":{"prompt_tokens":5,"prompt_tokens_details":{"cached_tokens":%d}}}' % 2**70,)),
    Raw(200, (b"\xff\xfe",)),
]


@pytest.mark.parametrize("number", range(len(ODD)))
async def test_odd_answers_are_handed_on_as_they_came(gateway, standin, number, capfd):
    running = await gateway(standin, CONFIG)
    standin.script.append(ODD[number])
    answer = await running.chat(SHORT)
    assert (answer.status, answer.body) == (ODD[number].status, b"".join(ODD[number].chunks))
    await running.settled()
    async with running.session.get(f"{running.admin_url}/api/exchanges") as response:
        assert [each["status"] for each in await response.json()] == [ODD[number].status], "it has its record"
    assert '"event": "unhandled"' not in (logged := capfd.readouterr()).err + logged.out
    standin.script.append(reply("Still here."))
    assert orjson.loads((await running.chat(SHORT)).body)["choices"], "the next request is served"


@pytest.mark.parametrize("path", ["/models/m", "/chat/completions", "/messages/count_tokens", "/responses/compact"])
async def test_after_a_fault_of_our_own_the_upstreams_answer_is_closed_at_once(gateway, monkeypatch, path):
    """It would keep an upstream's place, and its connection, until it falls silent."""
    begun = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9999\r\n\r\n{"
    async with raw.upstream(lambda connection, number: begun) as upstream:
        running = await gateway(upstream.base_url, CONFIG)
        monkeypatch.setattr(relay.http, "returned", broken)
        monkeypatch.setattr(answer, "LONGEST_HELD", 0)
        method = "GET" if path.startswith("/models") else "POST"
        body = None if method == "GET" else orjson.dumps({**SHORT, "input": "Hello", "max_tokens": 5})
        told = await running.ask(method, path, body, {"content-type": "application/json"})
        assert told.status == 500
        assert upstream.heads
        assert not running.inside.gateway.client._http._busy
