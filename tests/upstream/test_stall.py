"""Patience: answers that bring nothing for too long are ended, and only those."""

import asyncio
import gc
from contextlib import asynccontextmanager

import aiohttp
import pytest

from gateway.upstream.stall import Patience

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 10000000\r\n\r\n"
WHOLE = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
LONG_S = 600.0


@asynccontextmanager
async def answer(first: bytes):
    """An answer under way, and the writer of the upstream that gives it."""
    writers: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()

    async def give(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(first)
        await writers.put(writer)

    server = await asyncio.start_server(give, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    timeout = aiohttp.ClientTimeout(total=None, sock_read=LONG_S)
    async with aiohttp.ClientSession(timeout=timeout, read_bufsize=2**10) as session:
        response = await session.get(f"http://127.0.0.1:{port}/")
        writer = await writers.get()
        yield response, writer
        response.close()
        writer.close()
    server.close()


@pytest.fixture
async def patience():
    patience = Patience()
    yield patience
    patience.close()


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_an_answer_that_falls_silent_is_ended_and_whoever_reads_it_hears_of_it(patience):
    async with answer(HEAD + b"abc") as (response, _):
        patience.watch(response, LONG_S)
        assert await response.content.readany() == b"abc"
        reading = asyncio.ensure_future(response.content.readany())  # noqa: TID251  # the test's own reader
        patience.look(now() + LONG_S - 1)
        assert not reading.done()
        patience.look(now() + LONG_S + 1)
        with pytest.raises(TimeoutError):
            await reading
        assert response.closed
        assert len(patience) == 0


async def test_an_answer_that_goes_on_is_left_alone(patience):
    async with answer(HEAD) as (response, writer):
        patience.watch(response, LONG_S)
        later = now()
        for _ in range(5):
            writer.write(b"x")
            assert await response.content.readany() == b"x"
            later += LONG_S - 1
            patience.look(later)
        assert not response.closed


async def test_a_client_that_reads_slowly_is_no_silence_of_the_upstream(patience):
    async with answer(HEAD) as (response, writer):
        patience.watch(response, LONG_S)
        assert response.connection is not None
        while response.connection.transport.is_reading():
            writer.write(b"x" * 4096)
            await asyncio.sleep(0)
        patience.look(now() + 1)
        patience.look(now() + 3 * LONG_S)
        assert not response.closed


async def test_a_complete_answer_needs_nobody(patience):
    async with answer(WHOLE) as (response, _):
        assert await response.read() == b"ok"
        patience.watch(response, LONG_S)
        assert len(patience) == 0


async def test_an_answer_that_ended_or_was_dropped_is_forgotten(patience):
    async with answer(HEAD) as (response, _):
        patience.watch(response, LONG_S)
        response.close()
        patience.look(now())
        assert len(patience) == 0


async def test_an_answer_nobody_holds_is_not_kept(patience):
    async with answer(HEAD) as (response, _):
        patience.watch(response, LONG_S)
        response.close()
    del response
    gc.collect()
    assert len(patience) == 0


async def test_a_short_patience_ends_by_itself(patience):
    async with answer(HEAD) as (response, _):
        patience.watch(response, 0.02)
        with pytest.raises(TimeoutError):
            await response.content.readany()
