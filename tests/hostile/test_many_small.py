"""Bytes in very many small pieces, from a client or an upstream: the event loop reads them in short steps, so other clients do not wait."""

import asyncio
import sys
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gateway.serve.answers.tail import LONGEST_READ_ALONG
from gateway.serve.incoming.connection import FRAMES_AT_ONCE
from tests import fakes, raw
from tests.hostile.wire import connected, head, until

PIECES = 40_000
MOST_CALLS = 8_000
"""Calls of Python functions in one turn of the event loop, some milliseconds. Each of the pieces takes at least one call."""
ASK = {"model": "m", "stream": True, "messages": [fakes.user("hi")]}
EVENTS = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
CONTENT = b'data: {"choices":[{"index":0,"delta":{"content":"Ha"}}]}\n\n'
HANDSHAKE = {
    "connection": "Upgrade",
    "upgrade": "websocket",
    "sec_websocket_version": "13",
    "sec_websocket_key": "A" * 22 + "==",
}


@asynccontextmanager
async def busiest_turn():
    """Count the calls of Python functions in each turn of the event loop; the list holds the most in one turn."""
    loop, counted, most = asyncio.get_running_loop(), 0, [0]
    handle = None

    def turn():
        nonlocal counted, handle
        most[0], counted = max(most[0], counted), 0
        handle = loop.call_soon(turn)

    def note(frame, event, argument):
        nonlocal counted
        counted += event == "call"

    turn()
    sys.setprofile(note)
    try:
        yield most
    finally:
        sys.setprofile(None)
        handle.cancel()


def streamed(body: bytes) -> bytes:
    """An answer of events with a length."""
    return EVENTS + b"content-length: %d\r\n\r\n" % len(body) + body


async def test_a_body_in_chunks_of_one_byte(gateway, standin):
    proxy = await gateway(standin)
    said = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}' + b" " * PIECES
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in said) + b"0\r\n\r\n"
    async with connected(proxy.port) as client, busiest_turn() as most:
        await client.send(head(None, transfer_encoding="chunked") + chunks)
        assert (await client.answer())[0] == 200
    assert standin.requests[-1].body == said
    assert most[0] < MOST_CALLS


async def test_an_answer_in_chunks_of_one_byte(gateway):
    said = CONTENT + b":" * PIECES + b"\n\n"
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in said) + b"0\r\n\r\n"
    async with raw.upstream(lambda *_: EVENTS + b"transfer-encoding: chunked\r\n\r\n" + chunks) as upstream:
        proxy = await gateway(upstream.base_url)
        async with busiest_turn() as most:
            assert (await proxy.chat(ASK)).body == said
            assert (await proxy.chat(ASK)).body == said
        assert len(upstream.writers) == 1, "the connection is used again"
    assert most[0] < MOST_CALLS


async def test_nothing_behind_an_answer_in_small_chunks_is_the_next_answer(gateway):
    said = CONTENT + b":" * PIECES + b"\n\n"
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in said) + b"0\r\n\r\n"
    unasked = streamed(b'data: {"choices":[{"index":0,"delta":{"content":"not yours"}}]}\n\n' + b":\r\n" * PIECES)
    async with raw.upstream(lambda *_: EVENTS + b"transfer-encoding: chunked\r\n\r\n" + chunks + unasked) as upstream:
        proxy = await gateway(upstream.base_url)
        for _ in range(3):
            assert (await proxy.chat(ASK)).body == said


@pytest.mark.parametrize("start", [b"data:\n\n", b":\n", b"data: {}\n\n"])
async def test_a_stream_that_begins_without_content(gateway, start):
    said = start * 20_000 + CONTENT
    async with raw.upstream(lambda *_: streamed(said)) as upstream:
        proxy = await gateway(upstream.base_url)
        async with busiest_turn() as most:
            assert (await proxy.chat(ASK)).body == said
    assert most[0] < MOST_CALLS


@pytest.mark.parametrize("end", [b'data: "usage"\n\n', b":\n", b'data:"usage"\r\r'])
async def test_a_stream_that_ends_in_very_many_lines(gateway, end):
    last = b'event: response.completed\ndata: {"type":"response.completed"}\n\n'
    said = b'data: {"type":"response.output_text.delta","delta":"x"}\n\n' + last + end * (LONGEST_READ_ALONG // 40)
    async with raw.upstream(lambda *_: streamed(said)) as upstream:
        proxy = await gateway(upstream.base_url)
        async with busiest_turn() as most:
            answer = await proxy.ask("POST", "/responses", b'{"model":"m","stream":true,"input":"hi"}')
    assert answer.body == said
    assert most[0] < MOST_CALLS


@asynccontextmanager
async def sockets(serve):
    """Run an upstream that serves WebSockets."""

    async def handle(request):
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await serve(request, socket)
        return socket

    app = web.Application()
    app.router.add_get("/{path:.*}", handle)
    async with TestServer(app) as server:
        yield str(server.make_url("/v1"))


TEXT, PING = b"\x81\x81\0\0\0\0a", b"\x89\x80\0\0\0\0"
EMPTY_PARTS = b"\x01\x80\0\0\0\0" + b"\x00\x80\0\0\0\0" * PIECES + b"\x80\x80\0\0\0\0"


@pytest.mark.parametrize("frames", [TEXT * PIECES, PING * PIECES, EMPTY_PARTS])
async def test_frames_of_a_client_that_arrive_together(gateway, monkeypatch, frames):
    received, parsed = [], []
    parse = web.RequestHandler.data_received

    def note(connection, data):
        if connection._upgraded:
            parsed.append(len(data))
        parse(connection, data)

    monkeypatch.setattr(web.RequestHandler, "data_received", note)

    async def collect(request, socket):
        async for frame in socket:
            received.append(frame.data)
            await asyncio.sleep(0)

    async with sockets(collect) as base_url:
        proxy = await gateway(base_url)
        async with connected(proxy.port) as client, busiest_turn() as most:
            await client.send(raw.request("/v1/realtime?model=m", **HANDSHAKE))
            assert b" 101 " in await client.reader.readuntil(b"\r\n\r\n")
            await client.send(frames + b"\x81\x84\0\0\0\0last")
            await until(lambda: received[-1:] == ["last"])
    assert most[0] < MOST_CALLS
    assert max(parsed) <= FRAMES_AT_ONCE, "aiohttp parses frames without calling Python"


async def test_frames_of_an_upstream_that_arrive_together(gateway):
    async def flood(request, socket):
        request.transport.write(b"\x81\x01a" * PIECES)
        await socket.receive()

    async with sockets(flood) as base_url:
        proxy = await gateway(base_url)
        async with connected(proxy.port) as client, busiest_turn() as most:
            await client.send(raw.request("/v1/realtime?model=m", **HANDSHAKE))
            assert b" 101 " in await client.reader.readuntil(b"\r\n\r\n")
            assert await client.reader.readexactly(3 * PIECES) == b"\x81\x01a" * PIECES
    assert most[0] < MOST_CALLS
