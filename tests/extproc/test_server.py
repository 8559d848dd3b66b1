"""The processor over gRPC: what does not follow the protocol ends its own call and no other, and the health check is gRPC's own."""

import gzip
from collections.abc import AsyncIterator
from typing import Any

import grpc
import orjson
import pytest

from gateway import config
from gateway.extproc import protocol, server
from tests import fakes
from tests.allocation import allocation
from tests.running import configured

WINDOW = 3000
CONFIG = {"models": {"gpt-4o": {"context_window": WINDOW}}}


@pytest.fixture
async def channel() -> AsyncIterator[Any]:
    """A channel to a processor in this process, and the processor."""
    settings = config.parse(configured("http://127.0.0.1:9/v1", CONFIG), {}, "test.yaml")
    running = await server.start(settings, "127.0.0.1:0")
    async with grpc.aio.insecure_channel(f"127.0.0.1:{running.port}") as opened:
        yield opened, running
    await running.close()


def headers(path: str = "/v1/chat/completions", **more: str) -> bytes:
    pairs = {":method": "POST", ":path": path, **{name.replace("_", "-"): value for name, value in more.items()}}
    values = [{"key": name, "raw_value": value.encode()} for name, value in pairs.items()]
    return protocol.encode(protocol.message("ProcessingRequest", request_headers={"headers": {"headers": values}}))


def body(raw: bytes) -> bytes:
    return protocol.encode(protocol.message("ProcessingRequest", request_body={"body": raw, "end_of_stream": True}))


async def asked(channel: Any, *messages: bytes) -> list[Any]:
    """Send messages one by one; return the reply to each."""
    call = channel.stream_stream(protocol.PROCESS)()
    found = []
    for message in messages:
        await call.write(message)
        found.append(protocol.parse("ProcessingResponse", await call.read()))
    await call.done_writing()
    return found


async def health(channel: Any) -> int:
    raw = await channel.unary_unary(protocol.CHECK)(protocol.encode(protocol.message("HealthCheckRequest")))
    return int(protocol.parse("HealthCheckResponse", raw).status)


async def test_a_long_body_is_replaced_and_its_length_is_stated(channel: Any) -> None:
    raw = orjson.dumps({"model": "gpt-4o", "messages": fakes.chat(60)})

    _, reply = await asked(channel[0], headers(), body(raw))

    common = reply.request_body.response
    stated = {each.header.key: each.header.raw_value for each in common.header_mutation.set_headers}
    assert len(common.body_mutation.body) < len(raw)
    assert stated["content-length"] == str(len(common.body_mutation.body)).encode()


async def test_ollamas_api_is_folded_at_an_ollama_server_alone() -> None:
    """Many applications have an ``/api/chat`` of their own."""
    raw = orjson.dumps({"model": "m", "messages": fakes.chat(60)})
    for provider, folds in (("ollama", True), ("openai", False)):
        upstreams = {"standin": {"provider": provider, "base_url": "http://127.0.0.1:9/v1"}}
        models = {"m": {"context_window": 2000}}
        text = configured("http://127.0.0.1:9/v1", {**CONFIG, "upstreams": upstreams, "models": models})
        running = await server.start(config.parse(text, {}, "test.yaml"), "127.0.0.1:0")
        async with grpc.aio.insecure_channel(f"127.0.0.1:{running.port}") as opened:
            _, reply = await asked(opened, headers("/api/chat"), body(raw))
        await running.close()
        assert bool(reply.request_body.response.body_mutation.body) is folds


async def test_headers_in_our_name_are_taken_off(channel: Any) -> None:
    (reply,) = await asked(channel[0], headers(x_turnfold_mode="off", x_turnfold_caller="me", x_other="1"))

    removed = set(reply.request_headers.response.header_mutation.remove_headers)
    assert removed == {"x-turnfold-mode", "x-turnfold-caller"}


@pytest.mark.parametrize("raw", [b"\xff\xff\xff", b"", protocol.encode(protocol.message("HttpBody"))])
async def test_what_is_not_of_the_protocol_ends_its_call_alone(channel: Any, raw: bytes) -> None:
    call = channel[0].stream_stream(protocol.PROCESS)()
    await call.write(raw)
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await call.read()

    assert failed.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert len(await asked(channel[0], headers(), body(b"{}"))) == 2


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b'{"messages":[{}]}', b'{"model":7,"messages":[{"role":"user"}]}', b"\x00"]
)
async def test_an_odd_body_passes_as_it_came(channel: Any, raw: bytes) -> None:
    _, reply = await asked(channel[0], headers(), body(raw))

    assert not reply.request_body.response.HasField("body_mutation")
    assert not reply.HasField("immediate_response")


def answered(status: str, **more: str) -> bytes:
    pairs = {":status": status, **{name.replace("_", "-"): value for name, value in more.items()}}
    values = [{"key": name, "raw_value": value.encode()} for name, value in pairs.items()]
    return protocol.encode(protocol.message("ProcessingRequest", response_headers={"headers": {"headers": values}}))


@pytest.mark.parametrize("bytes_unpacked", [10, 100_000_000])
async def test_a_packed_error_is_read_without_unpacking_all_of_it(channel: Any, bytes_unpacked: int) -> None:
    """100 KB of an upstream's error may unpack to 100 MB."""
    said = (
        b'{"error":{"code":"context_length_exceeded","message":"This model\'s maximum context length is 2000 tokens. '
    )
    said += b'However, your messages resulted in 2900 tokens."}}' + b" " * bytes_unpacked
    packed = protocol.encode(
        protocol.message("ProcessingRequest", response_body={"body": gzip.compress(said), "end_of_stream": True})
    )
    raw = orjson.dumps({"model": "gpt-4o", "messages": fakes.chat(20)})
    sent = headers(x_envoy_attempt_count="1"), body(raw), answered("400", content_encoding="gzip"), packed
    with allocation() as found:
        *_, reply = await asked(channel[0], *sent)
    assert found.peak < 40_000_000
    stated = {each.header.key for each in reply.response_body.response.header_mutation.set_headers}
    assert "x-turnfold-retry" in stated


async def test_the_health_check_says_when_it_drains(channel: Any) -> None:
    opened, running = channel
    assert await health(opened) == protocol.SERVING

    running.gateway.draining = True

    assert await health(opened) == protocol.NOT_SERVING


async def test_an_address_that_is_taken_is_an_error_in_words(channel: Any) -> None:
    settings = config.parse(configured("http://127.0.0.1:9/v1", CONFIG), {}, "test.yaml")
    with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{channel[1].port}"):
        await server.start(settings, f"127.0.0.1:{channel[1].port}")
