"""Everything that passes with our own client passes with aiohttp's, which serves where our parser cannot be loaded."""

import asyncio
import sys
from contextlib import suppress

import aiohttp
import pytest
import structlog
from multidict import CIMultiDict
from yarl import URL

from gateway.upstream import client
from gateway.upstream.own_http import OwnHttp
from gateway.upstream.public_http import PublicHttp
from tests.e2e.test_cases_passing import *  # noqa: F403


@pytest.fixture(autouse=True)
def no_httptools(monkeypatch):
    """Let the parser of our own client be missing."""
    monkeypatch.delitem(sys.modules, "gateway.upstream.own_http")
    monkeypatch.delitem(sys.modules, "gateway.upstream.http1")
    monkeypatch.setitem(sys.modules, "httptools", None)


async def test_without_its_parser_our_client_is_replaced_and_that_is_said():
    with structlog.testing.capture_logs() as logs:
        http = client.best_http()
        await http.close()
    assert isinstance(http, PublicHttp)
    assert logs == [{"event": "slower_http_client", "missing": "httptools", "log_level": "warning"}]


async def test_our_own_client_is_used_where_its_parser_is_there(monkeypatch):
    monkeypatch.undo()
    http = client.best_http()
    await http.close()
    assert isinstance(http, OwnHttp)


async def test_a_head_that_arrives_byte_by_byte_is_not_waited_for_without_end():
    async def drip(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nx-a: ")
        with suppress(OSError):
            while not ended.is_set():
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0)
        writer.close()

    ended = asyncio.Event()
    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    http = PublicHttp()
    limits = aiohttp.ClientTimeout(total=None, sock_read=0.1)
    url = URL(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
    try:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(20) as ours:
                await http.send("POST", url, CIMultiDict(), b"x", tls=True, limits=limits)
        assert not ours.expired()
    finally:
        ended.set()
        await http.close()
        server.close()
