"""The stand-in upstream answers, refuses and fails as real ones do."""

import asyncio

import aiohttp
import orjson
import pytest
from aiohttp import ClientSession

from gateway.standin import Completion, Gate, StandIn
from gateway.standin.dialects import DIALECTS
from tests import fakes

ASK = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}]}


@pytest.fixture
async def session():
    async with ClientSession() as session:
        yield session


async def post(session, standin, body, **headers):
    async with session.post(f"{standin.base_url}/chat/completions", json=body, headers=headers) as response:
        return response.status, await response.read(), response.headers


async def test_a_good_request_is_answered_with_usage(session):
    async with StandIn() as standin:
        status, body, _ = await post(session, standin, ASK)
    answer = orjson.loads(body)
    assert status == 200
    assert answer["choices"][0]["message"]["content"] == "Understood."
    assert answer["usage"]["prompt_tokens"] == standin.requests[0].prompt_tokens == 8


async def test_a_stream_ends_with_usage_when_asked_and_done(session):
    async with StandIn(reply=Completion("one two three", pieces=3)) as standin:
        body = {**ASK, "stream": True, "stream_options": {"include_usage": True}}
        _, text, headers = await post(session, standin, body)
    lines = [line for line in text.decode().split("\n\n") if line]
    told = [orjson.loads(line.removeprefix("data: ")) for line in lines[:-1]]
    assert headers["content-type"] == "text/event-stream"
    assert lines[-1] == "data: [DONE]"
    assert "".join(part["choices"][0]["delta"].get("content", "") for part in told[:-1]) == "one two three"
    assert told[-1]["usage"]["prompt_tokens"] == 8


async def test_a_stream_is_paced_by_a_gate(session):
    gate = Gate()
    async with (
        StandIn(script=[fakes.reply("hi", gate=gate)]) as standin,
        session.post(f"{standin.base_url}/chat/completions", json={**ASK, "stream": True}) as response,
    ):
        gate.release()
        first = await response.content.readany()
        assert first.count(b"data:") == 1
        gate.release(9)
        assert (await response.read()).endswith(b"[DONE]\n\n")


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_prompt_over_the_window_is_refused_in_every_dialect(session, dialect):
    async with StandIn(window=50, dialect=dialect) as standin:
        body = {"model": "m", "messages": [{"role": "user", "content": fakes.words(80)}], "max_tokens": 10}
        status, text, _ = await post(session, standin, body)
    assert status == DIALECTS[dialect].status
    assert isinstance(orjson.loads(text), dict | list)
    assert b"{limit}" not in text


async def test_a_prompt_that_fills_the_window_with_its_answer_fits(session):
    async with StandIn(window=18) as standin:
        assert (await post(session, standin, {**ASK, "max_tokens": 10}))[0] == 200
        assert (await post(session, standin, {**ASK, "max_tokens": 11}))[0] == 400


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b"nonsense", 400, b"could not parse"),
        (b"[]", 400, b"could not parse"),
        (orjson.dumps({"model": "gpt-4o"}), 400, b"'messages'"),
        (orjson.dumps({"messages": ASK["messages"]}), 400, b"model parameter"),
        (orjson.dumps({**ASK, "messages": []}), 400, b"empty array"),
        (orjson.dumps({**ASK, "model": "gpt-9"}), 404, b"does not exist"),
        (orjson.dumps({**ASK, "messages": [fakes.user("x"), fakes.result("call_1", "y")]}), 400, b"preceeding"),
    ],
)
async def test_a_bad_request_is_refused_as_openai_words_it(session, body, status, says):
    async with (
        StandIn(models=("gpt-4o",)) as standin,
        session.post(f"{standin.base_url}/chat/completions", data=body) as response,
    ):
        assert response.status == status
        assert says in await response.read()


async def test_a_wrong_key_is_refused(session):
    async with StandIn(key="right") as standin:
        assert (await post(session, standin, ASK, authorization="Bearer wrong"))[0] == 401
        assert (await post(session, standin, ASK, authorization="Bearer right"))[0] == 200


async def test_a_truncating_server_answers_200_and_bills_less_than_it_was_sent(session):
    async with StandIn(window=50, truncates=True) as standin:
        body = {"model": "m", "messages": [{"role": "user", "content": fakes.words(80)}]}
        status, text, _ = await post(session, standin, body)
    assert status == 200
    assert orjson.loads(text)["usage"]["prompt_tokens"] == 25


@pytest.mark.parametrize("fault", [fakes.RESET, fakes.HALF_A_BODY, fakes.HALF_A_STREAM])
async def test_a_fault_breaks_the_connection(session, fault):
    async with StandIn(script=[fault]) as standin:
        with pytest.raises(aiohttp.ClientError):
            await post(session, standin, ASK)


async def test_a_client_that_leaves_is_noticed(session):
    async with StandIn(script=[fakes.SILENCE]) as standin:
        request = asyncio.ensure_future(post(session, standin, ASK))  # noqa: TID251  # the test owns it
        seen = await standin.arrived(1)
        request.cancel()
        async with asyncio.timeout(5):
            await seen.done.wait()
    assert seen.left


async def test_any_path_and_method_is_told_back(session):
    async with StandIn() as standin:
        url = f"{standin.base_url}/threads/x%20y?limit=2&limit=3"
        async with session.request("PATCH", url, data=b"\x00\xff") as response:
            told = await response.json()
    assert (told["method"], told["query"], told["bytes"]) == ("PATCH", "limit=2&limit=3", 2)
    assert standin.requests[0].body == b"\x00\xff"
