"""Patience: exchanges in which the upstream does nothing for too long are ended, and only those."""

import asyncio
from contextlib import asynccontextmanager, suppress

import aiohttp
import pytest
from multidict import CIMultiDict
from yarl import URL

from gateway.upstream.own_http import OwnHttp
from gateway.upstream.stall import Patience

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 10000000\r\n\r\n"
WHOLE = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
LONG_S = 600.0


class Asked:
    """A client with one upstream, whose answers are written by the test."""

    def __init__(self, port: int) -> None:
        self.http = OwnHttp()
        self.patience: Patience = self.http._patience
        self.writers: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()
        self._url = URL(f"http://127.0.0.1:{port}/")

    def send(self, body=b"x", patience_s=LONG_S):
        limits = aiohttp.ClientTimeout(total=None, sock_read=patience_s)
        return self.http.send("POST", self._url, CIMultiDict(), body, tls=True, limits=limits)

    async def answered(self, first: bytes):
        """Send a request, and begin its answer."""
        sending = asyncio.ensure_future(self.send())  # noqa: TID251  # the test's own client
        writer = await self.writers.get()
        writer.write(first)
        return await sending, writer


@asynccontextmanager
async def asking():
    writers: list[asyncio.StreamWriter] = []

    async def give(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writers.append(writer)
        await asked.writers.put(writer)

    server = await asyncio.start_server(give, "127.0.0.1", 0)
    asked = Asked(server.sockets[0].getsockname()[1])
    yield asked
    await asked.http.close()
    server.close()
    for writer in writers:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_an_answer_that_falls_silent_is_ended_and_its_reader_told():
    async with asking() as asked:
        response, _writer = await asked.answered(HEAD + b"abc")
        assert await response.next_piece() == b"abc"
        reading = asyncio.ensure_future(response.next_piece())  # noqa: TID251  # the test's own reader
        asked.patience.check(now())
        asked.patience.check(now() + LONG_S - 1)
        await asyncio.sleep(0)
        assert not reading.done()
        asked.patience.check(now() + LONG_S + 1)
        with pytest.raises(TimeoutError):
            await reading


async def test_an_answer_that_goes_on_is_left_alone():
    async with asking() as asked:
        response, writer = await asked.answered(HEAD)
        later = now()
        asked.patience.check(later)
        for _ in range(5):
            writer.write(b"x")
            assert await response.next_piece() == b"x"
            later += LONG_S - 1
            asked.patience.check(later)
        response.close()


CHUNK = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n"
DRIPS = [
    ("its head", b"", b"HTTP/1.1 200 OK\r\nx-a: "),
    ("the size of a piece", CHUNK, b"1;"),
    ("its trailers", CHUNK, b"0\r\nx-a: "),
]


@pytest.mark.parametrize(("before", "begun"), [each[1:] for each in DRIPS], ids=[each[0] for each in DRIPS])
async def test_bytes_around_a_body_one_by_one_are_waited_for_no_longer_than_silence(before, begun):
    async with asking() as asked:
        arrived = asyncio.Queue()

        async def whole():
            answer = await asked.send()
            while piece := await answer.next_piece():
                arrived.put_nowait(piece)

        reading = asyncio.ensure_future(whole())  # noqa: TID251  # the test's own reader
        writer = await asked.writers.get()
        (connection,) = asked.http._busy
        if before:
            writer.write(before)
            await arrived.get()
        later = now()
        for byte in begun, *([b"x"] * 4):
            seen = connection._bytes_without_content
            writer.write(byte)
            await until(lambda seen=seen: connection._bytes_without_content > seen)
            asked.patience.check(later)
            later += LONG_S / 4 + 1
        asked.patience.check(later)
        with pytest.raises(TimeoutError, match="silent"):
            await reading
        assert not asked.http._busy


async def until(fact):
    async with asyncio.timeout(20):
        while not fact():  # noqa: ASYNC110  # what is awaited has no event
            await asyncio.sleep(0)


async def test_statuses_on_the_way_are_signs_of_life():
    async with asking() as asked:
        sending = asyncio.ensure_future(asked.send())  # noqa: TID251  # the test's own client
        writer = await asked.writers.get()
        (connection,) = asked.http._busy
        later = now()
        for _ in range(4):
            seen = connection.progress
            writer.write(b"HTTP/1.1 102 Processing\r\n\r\n")
            await until(lambda seen=seen: connection.progress > seen)
            asked.patience.check(later)
            later += LONG_S - 1
        writer.write(WHOLE)
        assert (await sending).status == 200


async def test_a_client_that_reads_slowly_is_no_silence_of_the_upstream():
    async with asking() as asked:
        response, writer = await asked.answered(HEAD)
        while not response.held_back:
            writer.write(b"x" * 4096)
            await asyncio.sleep(0)
        for round in range(4):
            asked.patience.check(now() + round * 2 * LONG_S)
        assert await response.next_piece()
        response.close()


async def test_a_client_that_sends_slowly_is_no_silence_of_the_upstream():
    async with asking() as asked:
        client = aiohttp.base_protocol.BaseProtocol(asyncio.get_running_loop())
        client.connection_made(asyncio.Transport())
        body = aiohttp.StreamReader(client, 2**16)
        sending = asyncio.ensure_future(asked.send(body))  # noqa: TID251  # the test's own client
        writer = await asked.writers.get()
        for round in range(4):
            asked.patience.check(now() + round * 2 * LONG_S)
        body.feed_eof()
        writer.write(WHOLE)
        assert (await sending).status == 200


async def test_an_upstream_that_takes_no_more_of_a_body_is_not_waited_for():
    async with asking() as asked:
        sending = asyncio.ensure_future(asked.send(b"x" * 50_000_000))  # noqa: TID251  # the test's own client
        await asked.writers.get()
        later = now()
        while not sending.done():
            later += LONG_S / 2
            asked.patience.check(later)
            await asyncio.sleep(0)
        with pytest.raises(TimeoutError):
            await sending


async def test_a_complete_answer_is_not_watched():
    async with asking() as asked:
        response, _writer = await asked.answered(WHOLE)
        for round in range(4):
            asked.patience.check(now() + round * 2 * LONG_S)
        assert (response.complete, await response.next_piece(), await response.next_piece()) == (True, b"ok", b"")


async def test_a_short_patience_ends_by_itself_beside_a_long_one():
    async with asking() as asked:
        response, _writer = await asked.answered(HEAD)
        with pytest.raises(TimeoutError):
            await asked.send(patience_s=0.02)
        assert not response.complete
        response.close()
