"""What one request, or one client that never finishes, may take from all others: little, and never the health check."""

import asyncio
import gzip
from contextlib import AsyncExitStack

import orjson
import pytest
from multidict import CIMultiDict

from gateway.serve.incoming import unfinished_heads
from gateway.serve.incoming.body import decompress
from gateway.serve.incoming.errors import ClientError
from gateway.serve.incoming.uploads import WINDOW_S
from gateway.standin import Gate, Raw, StandIn
from tests import fakes
from tests.allocation import allocation
from tests.compressed import PACK
from tests.hostile.wire import connected, head, request, until
from tests.running import PATIENCE_S

HELLO = {"model": "gpt-4o", "messages": [fakes.user("Hello")]}
MIB = 2**20


def of_size(size: int) -> bytes:
    """A chat completion of so many bytes."""
    raw = orjson.dumps(HELLO)
    return raw.replace(b"Hello", b"x" * (size - len(raw) + 5))


async def healthy(running) -> bool:
    """Whether a new client is told that all is well."""
    async with connected(running.port) as client:
        await client.send(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        return (await client.answer())[0] == 200


# What a request may say


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("m" * 256, 200),
        ("m" * 257, 400),
        ("€" * 86, 400),  # 258 bytes
        (":" * 32_000 + "\nx", 400),
        ("*" * 300, 400),
    ],
)
async def test_the_name_of_a_model_has_256_bytes_at_most(gateway, standin, name, status):
    running = await gateway(standin, {"models": {"*a*a*a*a*b": {"context_window": 8000}}})
    answer = await running.chat({**HELLO, "model": name})
    assert answer.status == status
    if status == 400:
        assert answer.json["error"]["code"] == "invalid_model"
        assert standin.requests == []


@pytest.mark.parametrize("limits", [{"max_messages": 20}])
@pytest.mark.parametrize("length", [10, 2000], ids=["parsed", "skimmed"])
async def test_a_request_has_so_many_messages_at_most(gateway, standin, limits, length):
    running = await gateway(standin, {"server": limits})
    message = fakes.user("x" * length)
    assert (await running.chat({"model": "gpt-4o", "messages": [message] * 20})).status == 200
    answer = await running.chat({"model": "gpt-4o", "messages": [message] * 21})
    assert answer.status == 400
    assert answer.json["error"]["code"] == "request_too_complex"
    assert "server.max_messages (20)" in answer.json["error"]["message"]


def nested(depth: int, shape: str) -> bytes:
    opening, closing = {"list": ("[", "]"), "object": ('{"a":', "}")}[shape]
    inner = opening * depth + "1" + closing * depth
    return b'{"model":"gpt-4o","messages":[{"role":"user","content":"Hello"}],"x":%b}' % inner.encode()


@pytest.mark.parametrize("shape", ["list", "object"])
async def test_a_request_is_nested_so_deep_at_most(gateway, standin, shape):
    running = await gateway(standin, {"server": {"max_depth": 40}})
    assert (await running.chat(nested(39, shape))).status == 200
    for depth in (40, 500):
        answer = await running.chat(nested(depth, shape))
        assert answer.status == 400
        assert "server.max_depth (40)" in answer.json["error"]["message"]


@pytest.mark.parametrize("value", [b"[]", b"{}", b"0", b'""', b'{"a":[]}'])
async def test_a_body_has_so_many_values_at_most(gateway, standin, value):
    """Each of two bytes takes forty times as much memory."""
    running = await gateway(standin, {"server": {"max_values": 10_000}})
    for count, status in ((3_000, 200), (30_000, 400)):
        body = b'{"model":"m","messages":[{"role":"user","content":"Hello"}],"x":[%b]}' % b",".join([value] * count)
        answer = await running.chat(body)
        assert answer.status == status
    assert "server.max_values (10000)" in answer.json["error"]["message"]


async def test_commas_and_brackets_within_texts_are_no_values(gateway, standin):
    running = await gateway(standin, {"server": {"max_values": 10_000}})
    for text in ("[{,}]" * 20_000, '\\"[,' * 20_000, "\\" * 100_000 + "," * 50_000):
        assert (await running.chat({"model": "m", "messages": [fakes.user(text)]})).status == 200


# How large it may be


async def test_too_large_a_body_is_refused_by_its_length_before_a_byte_of_it_is_sent(gateway, standin):
    running = await gateway(standin, {"server": {"max_body": "1MiB"}})
    for more in ({}, {"expect": "100-continue"}):
        async with connected(running.port) as client:
            await client.send(head(MIB + 1, **more))
            status, headers, body = await client.answer()
            assert (status, headers["connection"]) == (413, "close")
            assert "server.max_body (1048576 bytes)" in orjson.loads(body)["error"]["message"]
    assert standin.requests == []


async def test_a_chunked_body_that_does_not_stop_is_refused(gateway, standin):
    running = await gateway(standin, {"server": {"max_body": "1MiB"}})
    async with connected(running.port) as client:
        await client.send(head(None, transfer_encoding="chunked"))
        for _ in range(20):
            await client.send(b"10000\r\n" + b" " * 65536 + b"\r\n")
        assert (await client.answer())[0] == 413


@pytest.mark.parametrize("encoding", PACK)
async def test_a_small_body_that_unpacks_to_gigabytes_is_refused(gateway, standin, encoding):
    running = await gateway(standin, {"server": {"max_body": "4MiB"}})
    bomb = PACK[encoding](bytes(60 * MIB))
    answer = await running.chat(bomb, {"content-encoding": encoding})
    assert answer.status == 413
    assert standin.requests == []
    packed = PACK[encoding](of_size(3 * MIB))
    assert (await running.chat(packed, {"content-encoding": encoding})).status == 200


class Asked:
    """As much of a request as decompressing it needs."""

    def __init__(self, encoding: str) -> None:
        self.headers = CIMultiDict({"Content-Encoding": encoding})


@pytest.mark.parametrize("encoding", PACK)
def test_unpacking_takes_no_more_memory_than_what_is_allowed(encoding):
    bomb = PACK[encoding](bytes(100 * MIB))
    with allocation() as found, pytest.raises(ClientError, match="max_body"):
        decompress(Asked(encoding), bomb, 8 * MIB)
    assert found.peak < 12 * MIB


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
@pytest.mark.parametrize("fault", ["other", "cut off", "two parts", "empty"])
def test_what_cannot_be_unpacked_is_left_for_the_upstream_to_judge(encoding, fault):
    packed = PACK[encoding](b"{}")
    body = {"other": b"not packed", "cut off": packed[:-5], "two parts": packed * 2, "empty": b""}[fault]
    assert decompress(Asked(encoding), body, MIB) == body


# How much there may be at one time


async def test_uploads_that_never_end_count_from_their_first_byte(gateway, standin):
    running = await gateway(standin, {"server": {"max_in_flight": "1MiB", "max_body": "1MiB"}})
    async with connected(running.port) as client:
        await client.send(head(MIB) + bytes(MIB - 100))
        await until(lambda: running.inside.gateway.admission.size_bytes == MIB - 100)
        answer = await running.chat(of_size(2_000))
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert answer.json["error"]["code"] == "overloaded"
        assert await healthy(running)
    await until(lambda: running.inside.gateway.admission.size_bytes == 0)  # it has seen that the client is gone
    assert (await running.chat(of_size(2_000))).status == 200
    assert running.inside.gateway.admission.size_bytes == 0


async def test_a_single_small_body_that_unpacks_to_the_limit_has_room_and_a_second_one_is_told_to_come_again(gateway):
    """Held are the packed and the unpacked bytes; one request alone may hold more than all may hold together."""
    async with StandIn(window=10**6) as standin:
        proxy = await gateway(standin, {"server": {"max_body": "1MiB", "max_in_flight": "1MiB"},
                                        "models": {"m": {"context_window": 8000, "tokenizer": "o200k"}}})  # fmt: skip
        plain = orjson.dumps({"model": "m", "messages": [fakes.user("a" * (2**20 - 100))]})
        packed = {"content-encoding": "gzip"}
        assert (await proxy.chat(gzip.compress(plain), packed)).status == 200
        answers = await asyncio.gather(*(proxy.chat(gzip.compress(plain), packed) for _ in range(4)))
        statuses = [answer.status for answer in answers]
        assert set(statuses) <= {200, 503}
        assert 200 in statuses


async def test_more_requests_than_allowed_are_told_to_come_again_and_health_answers(gateway, standin):
    running = await gateway(standin, {"server": {"max_requests": 2}})
    gate = Gate()
    standin.script.extend([fakes.reply(gate=gate), fakes.reply(gate=gate)])
    async with connected(running.port) as first, connected(running.port) as second:
        await first.send(request(HELLO))
        await second.send(request(HELLO))
        await standin.arrived(2)
        for path in ("/chat/completions", "/embeddings"):
            answer = await running.ask("POST", path, orjson.dumps(HELLO))
            assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert await healthy(running)
        gate.release(10)
        assert [(await client.answer())[0] for client in (first, second)] == [200, 200]
    assert (await running.chat(HELLO)).status == 200


# How long it may take


async def test_a_head_that_does_not_arrive_ends_the_connection(gateway, standin):
    running = await gateway(standin, {"server": {"header_timeout": "100ms"}})
    async with connected(running.port) as silent, connected(running.port) as slow, connected(running.port) as again:
        await slow.send(b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost")
        await again.send(request(HELLO))
        assert (await again.answer())[0] == 200
        await again.send(b"POST /v1")
        assert await silent.rest() == b""
        for client in (slow, again):
            status, headers, body = await client.answer()
            assert (status, headers["connection"]) == (408, "close")
            assert "server.header_timeout" in orjson.loads(body)["error"]["message"]
            assert await client.rest() == b""


async def test_a_head_that_does_not_stop_ends_the_connection(gateway, standin):
    running = await gateway(standin, {"server": {"max_header": "1KiB"}})
    async with connected(running.port) as client:
        await client.send(
            b"GET /v1/models HTTP/1.1\r\n" + b"".join(b"x-%d: %b\r\n" % (n, b"y" * 900) for n in range(20))
        )
        assert (await client.answer())[0] == 431
        assert await client.rest() == b""


async def test_of_too_many_unfinished_heads_the_oldest_go_and_whole_requests_are_served(gateway, standin, monkeypatch):
    monkeypatch.setattr(unfinished_heads, "MOST_HEADS", 3)
    running = await gateway(standin)
    async with AsyncExitStack() as stack:
        slow = [await stack.enter_async_context(connected(running.port)) for _ in range(3)]
        for client in slow:
            await client.send(b"POST /v1/chat/completions HTTP/1.1\r\nhost: loc")
        async with connected(running.port) as honest:
            await honest.send(request(HELLO))
            assert (await honest.answer())[0] == 200
        status, headers, body = await slow[0].answer()
        assert (status, headers["connection"], orjson.loads(body)["error"]["code"]) == (503, "close", "overloaded")
        assert await slow[0].rest() == b""
        await slow[2].send(b"alhost\r\ncontent-length: 0\r\n\r\n")
        assert (await slow[2].answer())[0] != 503, "a younger one may go on"


async def test_unfinished_heads_take_so_many_bytes_together_at_most(gateway, standin, monkeypatch):
    monkeypatch.setattr(unfinished_heads, "MOST_BYTES", 20_000)
    running = await gateway(standin)
    async with connected(running.port) as first, connected(running.port) as second:
        for client in (first, second):
            await client.send(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: " + b"y" * 12_000)
            await healthy(running)  # it has arrived
        assert (await first.answer())[0] == 503
        await second.send(b"\r\n\r\n")
        assert (await second.answer())[0] == 200


async def test_a_keep_alive_connection_outlives_the_time_for_a_head(gateway, standin):
    """The time runs from a head's first byte, not from the answer before it."""
    running = await gateway(standin, {"server": {"header_timeout": "50ms"}})
    gate = Gate()
    standin.script.append(fakes.reply(gate=gate))
    async with connected(running.port) as client, connected(running.port) as witness:
        await client.send(request(HELLO))
        assert await witness.rest() == b""  # a head's time has passed
        gate.release(10)
        assert (await client.answer())[0] == 200
        await client.send(request(HELLO))
        assert (await client.answer())[0] == 200


async def test_a_body_that_does_not_arrive_in_time_is_a_408(gateway, standin):
    running = await gateway(standin, {"server": {"request_timeout": "100ms"}})
    async with connected(running.port) as client:
        await client.send(head(1000) + b"{")
        status, headers, body = await client.answer()
        assert (status, headers["connection"]) == (408, "close")
        assert "server.request_timeout" in orjson.loads(body)["error"]["message"]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/files"])
async def test_a_trickling_body_is_given_up_on_every_path(gateway, standin, path):
    running = await gateway(standin)
    uploads = running.inside.gateway.uploads
    async with connected(running.port) as client:
        await client.send(head(100_000, path) + b" " * 5000)
        await until(lambda: any(body.total_bytes == 5000 and not body._size for body in uploads._uploads))
        now = asyncio.get_running_loop().time()
        uploads.check(now)
        uploads.check(now + WINDOW_S * 0.9)
        assert len(uploads) == 1
        uploads.check(now + WINDOW_S * 2)
        status, headers, body = await client.answer()
        assert (status, headers["connection"]) == (408, "close")
        assert "server.min_upload_rate (1024 bytes a second)" in orjson.loads(body)["error"]["message"]
    assert len(uploads) == 0


@pytest.mark.parametrize("kind", ["text/event-stream", "application/json"])
async def test_a_client_that_does_not_read_its_answer_gives_its_place_back(gateway, standin, kind):
    """It would keep its place, and the upstream's connection, for as long as it likes."""
    running = await gateway(standin, {"server": {"write_timeout": "200ms"}})
    piece = b'data: {"choices":[{"delta":{"content":"' + b"x" * 2**18 + b'"}}]}\n\n'
    standin.script.append(Raw(200, (piece,) * 128, {"content-type": kind}))
    inside = running.inside.gateway
    async with connected(running.port) as client:
        await client.send(request({**HELLO, "stream": True}))
        await until(lambda: inside.admission.streams == 1)
        async with asyncio.timeout(PATIENCE_S):
            while inside.admission.requests:  # noqa: ASYNC110  # in real time, in which a kernel's buffers fill
                await asyncio.sleep(0.05)
        assert not inside.client._http._busy
    assert (await running.chat(HELLO)).status == 200
