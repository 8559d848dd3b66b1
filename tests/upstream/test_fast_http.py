"""Requests to upstreams: on the wire stands what was given, and nothing else."""

import asyncio
from contextlib import asynccontextmanager

import aiohttp
import pytest
from multidict import CIMultiDict
from yarl import URL

from gateway.upstream.fast_http import AT_ONCE, ONE_PACKET, PIECE, Request, exchange

LIMITS = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=5)


class Upstream:
    """Remembers the bytes of each request and answers all alike."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.heads: list[bytes] = []
        self.bodies: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await self._head(reader):
            length = next(
                (int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
            )
            self.heads.append(head)
            self.bodies.append(await reader.readexactly(length))
            writer.write(self.answer)
        writer.close()

    async def _head(self, reader: asyncio.StreamReader) -> bytes:
        try:
            return await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return b""


@asynccontextmanager
async def asking(answer: bytes = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"):
    """An upstream, and a function that asks it."""
    upstream = Upstream(answer)
    server = await asyncio.start_server(upstream.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    connector = aiohttp.TCPConnector()
    session = aiohttp.ClientSession(connector=connector)

    async def ask(method: str, headers: dict[str, str], body: bytes | None) -> aiohttp.ClientResponse:
        url = URL(f"http://127.0.0.1:{port}/v1/a%2Fb?q=%20", encoded=True)
        loop = asyncio.get_running_loop()
        request = Request(method, url, CIMultiDict(headers), body, session=session, loop=loop)
        return await exchange(connector, request, LIMITS)

    yield upstream, ask
    await session.close()
    server.close()


async def test_the_head_carries_the_headers_given_and_host_and_length_alone():
    async with asking() as (upstream, ask):
        response = await ask("POST", {"X-One": "1", "authorization": "Bearer k"}, b"{}")
        assert (response.status, await response.read()) == (200, b"ok")
        line, *headers = upstream.heads[0].decode().strip().split("\r\n")
        assert line == "POST /v1/a%2Fb?q=%20 HTTP/1.1"
        names = sorted(header.partition(":")[0].lower() for header in headers)
        assert names == ["authorization", "content-length", "host", "x-one"]


@pytest.mark.parametrize("method", ["GET", "DELETE", "OPTIONS"])
async def test_a_request_without_a_body_has_none(method):
    async with asking() as (upstream, ask):
        assert await (await ask(method, {}, None)).read() == b"ok"
        assert upstream.bodies == [b""]


@pytest.mark.parametrize("size", [0, 1, ONE_PACKET, ONE_PACKET + 1, AT_ONCE, AT_ONCE + 1, 3 * PIECE + 5, 9 * 2**20])
async def test_a_body_of_any_size_arrives_whole_and_in_order(size):
    body = bytes(range(251)) * (size // 251 + 1)
    async with asking() as (upstream, ask):
        assert await (await ask("POST", {}, body[:size])).read() == b"ok"
        assert upstream.bodies == [body[:size]]


async def test_one_connection_serves_many_requests():
    async with asking() as (upstream, ask):
        for number in range(5):
            assert await (await ask("POST", {}, b"%d" % number)).read() == b"ok"
        assert upstream.bodies == [b"0", b"1", b"2", b"3", b"4"]


async def test_a_redirect_is_an_answer_like_any_other():
    answer = b"HTTP/1.1 307 Temporary Redirect\r\nlocation: http://elsewhere/\r\nset-cookie: a=b\r\ncontent-length: 0\r\n\r\n"
    async with asking(answer) as (upstream, ask):
        response = await ask("POST", {}, b"x")
        assert (response.status, response.headers["location"]) == (307, "http://elsewhere/")
        await ask("POST", {}, b"y")
        assert b"cookie" not in upstream.heads[1].lower()


async def test_a_compressed_answer_stays_compressed():
    async with asking(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\n\x1f\x8bzz") as (_, ask):
        assert await (await ask("POST", {}, b"x")).read() == b"\x1f\x8bzz"


async def test_the_answer_to_head_has_no_body():
    async with asking(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n") as (_, ask):
        response = await ask("HEAD", {}, None)
        assert await response.read() == b""
        assert response.headers["content-length"] == "9"


@pytest.mark.parametrize("answer", [b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nbad\x00header: x\r\n\r\n"])
async def test_what_is_no_http_raises_and_its_connection_is_not_used_again(answer):
    async with asking(answer) as (upstream, ask):
        for _ in range(2):
            with pytest.raises(aiohttp.ClientError):
                await ask("POST", {}, b"x")
        assert len(upstream.heads) == 2
