"""A few huge requests do not keep everybody else waiting: what is large is done beside the event loop, what is small is not behind it."""

import asyncio
import gzip
import sys
import threading
from collections import Counter
from contextlib import asynccontextmanager, contextmanager
from hashlib import sha256

import orjson
import pytest
from aiohttp import ClientSession, web

from gateway.standin import Completion, StandIn
from gateway.state.threads import INLINE
from gateway.wire import piecewise
from tests import fakes, running
from tests.hostile.wire import connected, request, until

SMALL = {"model": "m", "messages": [fakes.user("Hello")]}
MESSAGES = 4_001
OURS = tuple(str(running.ROOT / folder) for folder in ("gateway", "providers"))
STANDIN = str(running.ROOT / "gateway" / "standin")


def long_conversation(count: int = MESSAGES) -> list[dict[str, str]]:
    """A conversation of so many short messages."""
    kinds = (fakes.user, fakes.assistant)
    return [kinds[number % 2](f"{number}: {fakes.words(20, number)}") for number in range(count - 1)] + [
        fakes.user("And the first?")
    ]


@asynccontextmanager
async def held_up(threads):
    """Keep the thread for small jobs busy until the block ends."""
    gate = threading.Event()
    held = asyncio.ensure_future(threads.run(gate.wait, size_bytes=INLINE))  # noqa: TID251  # awaited below
    try:
        await until(lambda: threads.waiting == 1)
        yield
    finally:
        gate.set()
        await held


def _for_standin(frame) -> bool:
    """Whether the upstream of the test, which runs in the same thread, is at work."""
    while frame is not None and not frame.f_code.co_filename.startswith(STANDIN):
        frame = frame.f_back
    return frame is not None


@contextmanager
def calls():
    """Count the steps of the gateway in this thread, which is the event loop's: its functions called, and the calls they make."""
    found: Counter[str] = Counter()

    def note(frame, event, argument):
        if event.endswith("return") or not frame.f_code.co_filename.startswith(OURS) or _for_standin(frame):
            return
        found[f"{frame.f_code.co_qualname}{'' if event == 'call' else f' -> {argument.__qualname__}'}"] += 1

    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)


async def test_while_large_requests_wait_all_others_are_served(gateway, standin):
    proxy = await gateway(standin, {"models": {"m": {"context_window": 8000}}})
    threads = proxy.inside.gateway.threads
    large = {"model": "m", "messages": long_conversation(800)}
    async with connected(proxy.port) as waiting, held_up(threads):
        await waiting.send(request(large))
        await until(lambda: threads.waiting == 2)
        assert (await proxy.chat(SMALL)).status == 200
        async with connected(proxy.port) as client:
            await client.send(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert (await client.answer())[0] == 200
        stream = await proxy.chat({**SMALL, "stream": True})
        assert stream.body.endswith(b"data: [DONE]\n\n")
        assert threads.waiting == 2
    # The connection was closed while its request waited: see below.


class Watched(list):
    """A list that tells in which thread it ends."""

    def __init__(self, values, ended):
        super().__init__(values)
        self.ended = ended

    def __del__(self):
        self.ended.append(threading.current_thread().name)


@pytest.mark.parametrize("path", ["/chat/completions", "/responses", "/messages"])
async def test_what_was_read_of_a_large_body_is_freed_beside_the_event_loop(gateway, standin, monkeypatch, path):
    """Freeing a schema of some megabytes takes up to 40 ms, during which nothing else runs."""
    ended = []
    parsed = piecewise.loads

    def watched(raw, *levels):
        value = parsed(raw, *levels)
        return Watched(value, ended) if isinstance(value, list) and not levels else value

    monkeypatch.setattr(piecewise, "loads", watched)
    proxy = await gateway(standin, {"models": {"m": {"context_window": 8000}}})
    tools = [
        {"type": "function", "name": f"f{number}", "description": fakes.words(30, number)} for number in range(2000)
    ]
    said = {"input" if path == "/responses" else "messages": [fakes.user("Hello")], "max_tokens": 5}
    await proxy.ask(
        "POST", path, orjson.dumps({"model": "m", "tools": tools, **said}), {"content-type": "application/json"}
    )
    await until(lambda: bool(ended))
    assert set(ended) == {"freeing"}


@pytest.mark.parametrize("path", ["/embeddings", "/deployments/m/embeddings", "/chat/completions"])
async def test_a_small_body_that_may_unpack_to_a_large_one_is_read_beside_the_event_loop(gateway, standin, path):
    key = f"sha256:{sha256(b'secret').hexdigest()}"
    proxy = await gateway(standin, {"keys": {"a": {"hash": key, "models": ["m"]}}, "server": {"max_folded": "1MiB"}})
    packed = gzip.compress(orjson.dumps({"model": "m", "input": "x" * 2**23}))
    headers = {"content-encoding": "gzip", "content-type": "application/json", "authorization": "Bearer secret"}
    standin.script.append(Completion())  # it does not unpack bodies itself
    with calls() as found:
        assert (await proxy.ask("POST", path, packed, headers)).status == 200
    assert found["decompress"] == 0
    assert found["reading_size"] > 0, "it is counted here"


async def test_the_work_of_a_client_that_has_left_is_dropped(gateway, standin):
    proxy = await gateway(standin, {"models": {"m": {"context_window": 8000}}})
    threads, admission = proxy.inside.gateway.threads, proxy.inside.gateway.admission
    async with held_up(threads):
        async with connected(proxy.port) as client:
            await client.send(request({"model": "m", "messages": long_conversation(800)}))
            await until(lambda: threads.waiting == 2)
        await until(lambda: threads.waiting == 1)
    assert standin.chats == []
    assert (admission.requests, admission.size_bytes) == (0, 0)


async def test_a_full_queue_refuses_large_requests_and_serves_small_ones(gateway, standin):
    proxy = await gateway(standin)
    threads = proxy.inside.gateway.threads
    threads._longest_queue = 1
    async with held_up(threads):
        answer = await proxy.chat({"model": "m", "messages": long_conversation(800)})
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        packed = gzip.compress(orjson.dumps({"model": "m", "messages": long_conversation(800)}))
        assert len(packed) < INLINE
        assert (await proxy.ask("POST", "/chat/completions", packed, {"content-encoding": "gzip"})).status == 503
        assert (await proxy.chat(SMALL)).status == 200
    assert (await proxy.chat({"model": "m", "messages": long_conversation(800)})).status == 200


@pytest.mark.parametrize(
    ("window", "action"), [(8_000, "fold"), (1_000_000, "none"), (60_000, "fold")], ids=["fold", "fits", "a little"]
)
async def test_the_event_loop_takes_less_than_a_step_for_each_message(gateway, window, action):
    """Counting steps instead of seconds: the same on any machine."""
    async with StandIn(
        rules=(), reply=Completion("Noted."), otherwise=lambda _: fakes.verbatim(200, ANSWER)
    ) as upstream:
        proxy = await gateway(upstream, {"models": {"m": {"context_window": window}}})
        raw = orjson.dumps({"model": "m", "messages": long_conversation()})
        with calls() as found:
            answer = await proxy.chat(raw)
        assert (answer.status, answer.action) == (200, action)
        assert found.total() < MESSAGES, found.most_common(8)


def schema(count: int) -> dict[str, object]:
    """An answer's schema of so many properties."""
    properties = {f"p{number}": {"type": "string", "description": fakes.words(5, number)} for number in range(count)}
    inner = {"type": "object", "properties": properties}
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": inner}}}


def tools(count: int) -> dict[str, object]:
    parameters = {"type": "object", "properties": {"a": {"type": "string"}}}
    rows = [{"name": f"tool_{number}", "parameters": parameters} for number in range(count)]
    return {"tools": [{"type": "function", "function": row} for row in rows]}


@pytest.mark.parametrize("window", [8_000, 1_000_000])
@pytest.mark.parametrize("more", [schema(MESSAGES), tools(2 * MESSAGES)], ids=["a schema", "tools"])
async def test_the_event_loop_takes_less_than_a_step_for_each_value_besides_the_messages(gateway, window, more):
    async with StandIn(
        rules=(), reply=Completion("Noted."), otherwise=lambda _: fakes.verbatim(200, ANSWER)
    ) as upstream:
        proxy = await gateway(upstream, {"models": {"m": {"context_window": window}}})
        raw = orjson.dumps({**SMALL, **more})
        with calls() as found:
            await proxy.chat(raw)
        assert found.total() < MESSAGES, found.most_common(8)


ANSWER = orjson.dumps(
    {
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Noted."}}],
        "usage": {"prompt_tokens": 5_000, "completion_tokens": 2},
    }
)


@pytest.fixture
async def echo(aiohttp_server):
    """The base URL of an upstream whose Responses socket sends back what it gets."""

    async def handler(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(max_msg_size=0)
        await socket.prepare(request)
        async for frame in socket:
            await socket.send_str(frame.data)
        return socket

    app = web.Application()
    app.router.add_get("/v1/responses", handler)
    server = await aiohttp_server(app)
    return f"http://127.0.0.1:{server.port}/v1"


async def test_messages_on_sockets_count_among_the_bytes_that_are_held(echo, gateway):
    proxy = await gateway(echo, {"server": {"max_body": "1MiB", "max_in_flight": "1MiB"}})
    threads, admission = proxy.inside.gateway.threads, proxy.inside.gateway.admission
    message = orjson.dumps({"type": "response.create", "model": "m", "input": "word " * 150_000}).decode()
    url = f"{proxy.base_url}/responses"
    async with ClientSession() as session:
        async with session.ws_connect(url, max_msg_size=0) as first, session.ws_connect(url, max_msg_size=0) as second:
            async with held_up(threads):
                await first.send_str(message)
                await until(lambda: admission.size_bytes >= len(message))
                await second.send_str(message)
                refused = await second.receive()
                assert (refused.data, refused.extra) == (1013, "overloaded")
            assert await first.receive_str() == message
        await until(lambda: admission.size_bytes == 0)


async def test_a_large_message_on_a_socket_is_read_off_the_event_loop(echo, gateway):
    proxy = await gateway(echo, {"models": {"m": {"context_window": 1_000_000}}})
    body = {"type": "response.create", "model": "m", "input": long_conversation()}
    async with ClientSession() as session, session.ws_connect(f"{proxy.base_url}/responses", max_msg_size=0) as socket:
        with calls() as found:
            await socket.send_str(orjson.dumps(body).decode())
            await socket.receive_str()
    assert found.total() < MESSAGES, found.most_common(8)
