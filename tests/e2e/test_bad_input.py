"""Bad input of every kind gets a clear error in OpenAI's shape or the upstream's own: never a 500 of ours, a hang, a lost byte."""

import asyncio

import aiohttp
import orjson
import pytest

from gateway.standin import StandIn
from tests import fakes
from tests.fakes import user

ASK = {"model": "gpt-4o", "messages": [user("hi")]}


def in_openai_shape(answer) -> dict:
    """The error, if the answer is one every SDK can read."""
    error = answer.json["error"]
    assert isinstance(error["message"], str) and error["message"]
    assert error.keys() >= {"message", "type", "param", "code"}
    return error


@pytest.mark.parametrize("path", ["/chat/completions", "/embeddings"])
async def test_a_body_over_the_limit_is_a_413(gateway, standin, path):
    running = await gateway(standin, {"server": {"max_body": "1MiB"}})
    answer = await running.ask("POST", path, b"x" * (1 << 20) + b"y", {"content-type": "application/json"})
    if path == "/chat/completions":
        assert answer.status == 413
        assert "1048576" in in_openai_shape(answer)["message"]
        assert standin.requests == []
    else:
        assert answer.status in (200, 413)


async def test_a_body_of_200_mb_is_refused_without_being_kept(gateway, standin):
    running = await gateway(standin)

    async def flood():
        block = b"x" * (1 << 20)
        for _ in range(200):
            yield block

    url = f"{running.base_url}/chat/completions"
    try:
        async with running.session.post(url, data=flood(), headers={"content-type": "application/json"}) as response:
            assert response.status == 413
            assert orjson.loads(await response.read())["error"]["code"]
    except (aiohttp.ClientConnectionError, ConnectionError):
        pass  # it was told and did not listen: the connection is closed under it
    assert (await running.chat(ASK)).status == 200, "the next request is served"


async def test_a_large_body_below_the_limit_passes_whole(gateway, standin):
    running = await gateway(standin)
    raw = orjson.dumps({**ASK, "metadata": {"blob": "x" * (20 << 20)}})
    assert (await running.chat(raw, {"x-turnfold-mode": "off"})).status == 200
    assert standin.chats[0].body == raw


@pytest.mark.parametrize(
    "request_line",
    [
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-long: " + b"a" * 100_000 + b"\r\n\r\n",
        b"POST /v1/" + b"a" * 100_000 + b" HTTP/1.1\r\nhost: x\r\n\r\n",
        b"NONSENSE\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: many\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhello\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
    ids=["a long header", "a long path", "no HTTP", "a bad length", "a bad chunk", "TLS"],
)
async def test_a_broken_request_is_a_400_and_not_a_500(gateway, standin, request_line):
    running = await gateway(standin)
    async with asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(request_line)
        await writer.drain()
        if request_line.startswith(b"\x16"):
            writer.write(b"\r\n\r\n")
        answered = await reader.read(65_536)
        writer.close()
    assert answered.split(b" ")[1][:2] == b"40" or answered.split(b" ")[1] in (b"414", b"431"), answered[:200]
    assert (await running.chat(ASK)).status == 200


async def test_half_a_request_that_ends_reaches_nobody(gateway, standin):
    running = await gateway(standin)
    _, writer = await asyncio.open_connection("127.0.0.1", running.port)
    writer.write(b'POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{"model":')
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    assert (await running.chat(ASK)).status == 200
    assert len(standin.requests) == 1


async def test_an_unknown_model_gets_the_upstreams_own_404(gateway):
    async with StandIn(models=("gpt-4o",)) as standin:
        answer = await (await gateway(standin)).chat({**ASK, "model": "gpt-9"})
        assert answer.status == 404
        assert answer.json["error"]["code"] == "model_not_found"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_an_unreachable_upstream_is_a_502(gateway, stream):
    running = await gateway("http://127.0.0.1:9/v1")
    answer = await running.chat({**ASK, "stream": stream})
    assert answer.status == 502
    assert in_openai_shape(answer)["code"] == "upstream_unreachable"
    assert (await running.ask("GET", "/models")).status == 502


@pytest.mark.parametrize("fault", [fakes.RESET, fakes.HALF_A_BODY], ids=["a reset", "half a body"])
async def test_an_upstream_that_breaks_off_before_the_answer_is_a_502(gateway, fault):
    async with StandIn(script=[fault] * 5) as standin:
        answer = await (await gateway(standin)).chat(ASK)
        assert answer.status == 502
        assert in_openai_shape(answer)["type"] == "upstream_error"


async def test_an_upstream_that_stays_silent_is_a_504(gateway):
    async with StandIn(script=[fakes.SILENCE] * 5) as standin:
        upstream = {"provider": "openai", "base_url": standin.base_url, "timeout": "300ms"}
        answer = await (await gateway(standin, {"upstreams": {"standin": upstream}})).chat(ASK)
        assert answer.status == 504
        assert in_openai_shape(answer)["code"] == "upstream_timeout"


async def test_a_stream_that_breaks_off_in_the_middle_is_no_complete_answer(gateway):
    """The client must see that it broke: everything that came, and then no proper end."""
    async with StandIn(script=[fakes.HALF_A_STREAM]) as standin:
        running = await gateway(standin)
        read = b""
        with pytest.raises((aiohttp.ClientError, ConnectionError)):
            async with running.session.post(
                f"{running.base_url}/chat/completions", json={**ASK, "stream": True}
            ) as response:
                while chunk := await response.content.readany():
                    read += chunk
        assert read == fakes.HALF_A_STREAM.chunks[0]


async def test_a_long_answer_that_breaks_off_is_no_complete_answer(gateway):
    long = fakes.Raw(
        200, (b"x" * 200_000,), {"content-type": "application/json", "content-length": "400000"}, end="reset"
    )
    async with StandIn(script=[long] * 5) as standin:
        running = await gateway(standin)
        with pytest.raises((aiohttp.ClientError, ConnectionError)):
            await running.chat(ASK)


async def test_invalid_utf8_from_the_upstream_passes(gateway):
    async with StandIn(script=[fakes.BAD_UTF8]) as standin:
        answer = await (await gateway(standin)).chat(ASK)
        assert (answer.status, answer.body) == (200, fakes.BAD_UTF8.chunks[0])


@pytest.mark.parametrize(
    "stream",
    [
        b"data: not json\n\ndata: [DONE]\n\n",
        b"data: \xff\xfe\n\n",
        b"no event at all",
        b"data: " + b"x" * 3_000_000 + b"\n\n",
        b"event: ping\n\n: comment\n\n",
        b"\n\n\n\n",
        b'data: {"error":null,"choices":[]}\n\ndata: [DONE]\n\n',
        b"data: []\n\ndata: 5\n\ndata: null\n\n",
    ],
    ids=["no JSON", "bad UTF-8", "no events", "an endless line", "comments", "blank lines", "null error", "odd JSON"],
)
async def test_a_stream_of_nonsense_passes_byte_for_byte(gateway, stream):
    async with StandIn(script=[fakes.Raw(200, (stream,), {"content-type": "text/event-stream"})]) as standin:
        answer = await (await gateway(standin)).chat({**ASK, "stream": True})
        assert (answer.status, answer.body) == (200, stream)


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"5", b'"x"', b"{}", b'{"choices":5,"usage":"x"}', b"<html>"])
@pytest.mark.parametrize("status", [200, 400, 500])
async def test_an_answer_of_nonsense_passes_byte_for_byte(gateway, status, body):
    async with StandIn(script=[fakes.verbatim(status, body)]) as standin:
        answer = await (await gateway(standin)).chat(ASK)
        assert (answer.status, answer.body) == (status, body)


@pytest.mark.parametrize("mode", ["", "ENFORCE", "of", "ünknown"])
async def test_an_odd_mode_header_does_no_harm(gateway, standin, mode):
    answer = await (await gateway(standin)).chat(ASK, {"x-turnfold-mode": mode})
    assert answer.status in (200, 400)
    if answer.status == 400:
        in_openai_shape(answer)


ODD_MESSAGES = [
    [{"role": "user", "content": {"text": "a dict"}}],
    [{"role": "user", "content": [{"type": "text"}, {"type": "image_url"}, {"type": "image_url", "image_url": 5}]}],
    [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [None, 5, {}, {"function": None}, {"function": {"arguments": 5}}],
        }
    ],
    [{"role": "tool", "content": None, "tool_call_id": None}, {"role": "function"}],
    [{"role": "assistant", "function_call": "f"}, {"role": "assistant", "tool_calls": "x"}],
    [{"role": "user", "content": "a\u0000b\ufffe"}, {"role": "", "content": ""}],
    [{"role": "system", "content": [{"type": "text", "text": 5}]}, {"role": "user", "content": True}],
]


@pytest.mark.parametrize("messages", ODD_MESSAGES)
@pytest.mark.parametrize("last", [[], [user("and now?")]], ids=["alone", "with a question"])
async def test_odd_messages_over_the_window_never_fail_in_us(gateway, messages, last):
    """The upstream decides; whatever it is sent, the client gets its answer."""
    many = [*messages, *fakes.chat(60), *messages, *last]
    async with StandIn(rules=(), otherwise=lambda _: fakes.reply("ok")) as standin:
        running = await gateway(standin, {"models": {"m": {"context_window": 3000, "tokenizer": "o200k"}}})
        answer = await running.chat({"model": "m", "messages": many, "max_tokens": 100})
        assert answer.status in (200, 400)
        if answer.status == 400:
            assert in_openai_shape(answer)["code"] == "context_length_exceeded"
