"""The supervisor deals each connection to the worker that has the fewest, and loses none while no worker can take it."""

import asyncio
import os
import resource
import socket
import ssl
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from gateway.command.dealing import PAUSE_S, SILENT_AFTER_S, Dealer, listeners
from gateway.command.workers import POLL_S
from gateway.config import Server
from gateway.serve.dealt import AT_ONCE, READY, DealtSite
from gateway.serve.incoming.connection import Connections, Port
from tests.fakes import Clock
from tests.redis_server import free_port
from tests.running import PATIENCE_S

REQUEST = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


def server_of(name: str) -> Connections:
    """A server whose every answer is its name."""

    async def handler(_: web.BaseRequest) -> web.Response:
        return web.Response(text=name)

    def nothing(*_: Any) -> Any:
        raise AssertionError("no request is invalid here")

    return Connections(handler, Port(60, 60, nothing, nothing), access_log=None)


class Workers:
    """A dealer and its workers, all in this process."""

    def __init__(self, stack: AsyncExitStack, server: Server) -> None:
        self.server = server
        self.clock = Clock()
        self.dealer = Dealer(listeners(server), clock=self.clock)
        self.sites: list[DealtSite] = []
        self._stack = stack
        stack.callback(self.dealer.close)

    async def begin(self, number: int, tls: ssl.SSLContext | None = None) -> None:
        """Start a worker."""
        runner = web.ServerRunner(server_of(str(number)), shutdown_timeout=0)
        await runner.setup()
        self._stack.push_async_callback(runner.cleanup)
        self._stack.callback(self.dealer.end, number)
        self.sites.append(DealtSite(runner, self.dealer.begin(number), ssl_context=tls))
        await self.sites[-1].start()

    async def until(self, done: Callable[[], bool]) -> None:
        """Let the dealer work until something is true."""
        async with asyncio.timeout(PATIENCE_S):
            while not done():
                self.dealer.serve(0)
                await asyncio.sleep(0)

    def pass_time(self, seconds: float) -> None:
        """Let time pass for the dealer, in rounds."""
        for _ in range(round(seconds / POLL_S)):
            self.clock.now += POLL_S
            self.dealer.serve(0)

    async def asked(self) -> tuple[str, asyncio.StreamWriter]:
        """Open a connection and ask; return the name of the worker, and the connection."""
        return await self.answer(*await asyncio.open_connection(self.server.host, self.server.port))

    async def answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> tuple[str, asyncio.StreamWriter]:
        writer.write(REQUEST)
        answer = asyncio.create_task(reader.readuntil(b"\r\n\r\n"))  # noqa: TID251
        await self.until(answer.done)
        self._stack.callback(writer.close)
        return (await reader.readexactly(1)).decode(), writer


@asynccontextmanager
async def working(**server: Any) -> AsyncIterator[Workers]:
    async with AsyncExitStack() as stack:
        yield Workers(stack, Server(port=free_port(), **server))


async def test_the_worker_with_the_fewest_connections_gets_the_next() -> None:
    async with working() as workers:
        await workers.begin(0)
        await workers.begin(1)
        names, connections = zip(*[await workers.asked() for _ in range(6)], strict=True)
        assert sorted(names) == list("000111")
        left = [each for name, each in zip(names, connections, strict=True) if name == "1"]
        for each in left:
            each.close()
        await workers.until(lambda: workers.dealer._channels[1].connections == 0)
        assert [(await workers.asked())[0] for _ in range(3)] == list("111")


async def test_a_connection_waits_for_the_first_worker() -> None:
    async with working() as workers:
        opened = await asyncio.open_connection(workers.server.host, workers.server.port)
        workers.dealer.serve(0)
        await workers.begin(0)
        name, _ = await workers.answer(*opened)
        assert name == "0"


async def test_a_worker_that_has_ended_gets_no_more() -> None:
    async with working() as workers:
        await workers.begin(0)
        await workers.begin(1)
        await workers.sites[0].stop()
        assert [(await workers.asked())[0] for _ in range(3)] == list("111")


async def test_a_silent_worker_gets_no_connections_until_it_is_back() -> None:
    async with working() as workers:
        await workers.begin(0)
        await workers.begin(1)
        await workers.until(lambda: all(each.ready for each in workers.dealer._channels.values()))
        workers.pass_time(SILENT_AFTER_S)
        assert workers.dealer.silence_s(0) >= SILENT_AFTER_S
        workers.sites[0]._show_life()
        assert [(await workers.asked())[0] for _ in range(4)] == list("0000")
        workers.sites[1]._show_life()
        assert [(await workers.asked())[0] for _ in range(4)] == list("1111")
        assert workers.dealer.silence_s(1) == 0


async def test_while_the_supervisor_stands_still_no_worker_is_silent() -> None:
    """A suspended machine is no reason to replace all workers when it goes on."""
    async with working() as workers:
        await workers.begin(0)
        await workers.until(lambda: workers.dealer._channels[0].ready)
        workers.clock.now += 3600
        workers.dealer.serve(0)
        assert workers.dealer.silence_s(0) < SILENT_AFTER_S
        assert (await workers.asked())[0] == "0"


async def test_while_all_workers_are_silent_connections_wait() -> None:
    async with working() as workers:
        await workers.begin(0)
        await workers.until(lambda: workers.dealer._channels[0].ready)
        workers.pass_time(SILENT_AFTER_S)
        opened = await asyncio.open_connection(workers.server.host, workers.server.port)
        workers.pass_time(1)
        workers.sites[0]._show_life()
        assert (await workers.answer(*opened))[0] == "0"


async def test_a_worker_that_is_not_ready_yet_is_not_silent() -> None:
    async with working() as workers:
        theirs = workers.dealer.begin(0)
        workers.pass_time(60)
        assert workers.dealer.silence_s(0) == 0
        workers.dealer.end(0)
        theirs.close()


async def test_a_failed_handshake_is_no_connection(tmp_path: Path) -> None:
    async with working() as workers:
        await workers.begin(0, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))  # without a certificate every handshake fails
        reader, writer = await asyncio.open_connection(workers.server.host, workers.server.port)
        writer.write(REQUEST)
        channel = workers.dealer._channels[0]
        await workers.until(lambda: channel.latest == 1 and channel.connections == 0)
        assert await reader.read() == b""
        writer.close()


async def test_a_client_that_never_says_hello_does_not_hold_up_the_end(tmp_path: Path) -> None:
    """A load balancer that only checks the port, and a browser that connects ahead, send nothing."""
    async with working() as workers:
        await workers.begin(0, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        _, writer = await asyncio.open_connection(workers.server.host, workers.server.port)
        channel, site = workers.dealer._channels[0], workers.sites[0]
        await workers.until(lambda: channel.latest == 1 and len(site._opening) == 1)
        async with asyncio.timeout(PATIENCE_S):
            await site.stop()
        writer.close()


async def test_a_worker_that_ends_serves_all_that_was_dealt_to_it() -> None:
    async with working() as workers:
        await workers.begin(0)
        await workers.until(lambda: workers.dealer._channels[0].ready)
        opened = [
            await asyncio.open_connection(workers.server.host, workers.server.port) for _ in range(AT_ONCE // 2 * 3)
        ]
        asyncio.get_running_loop().remove_reader(workers.sites[0]._channel)  # its loop has other work
        await workers.until(lambda: workers.dealer._channels[0].latest == len(opened))
        await workers.sites[0].stop()
        assert {(await workers.answer(*each))[0] for each in opened} == {"0"}


async def test_connections_of_the_unix_socket_are_dealt_too(tmp_path: Path) -> None:
    path = tmp_path / "clients.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))  # left by a process that was killed
    async with working(socket=str(path)) as workers:
        await workers.begin(0)
        await workers.begin(1)
        assert stat.S_ISSOCK(os.stat(path).st_mode)
        assert {(await workers.answer(*await asyncio.open_unix_connection(path)))[0] for _ in range(2)} == {"0", "1"}


def test_a_taken_port_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        listeners(Server(port=taken.getsockname()[1]))


def test_without_file_descriptors_the_supervisor_pauses_between_tries() -> None:
    listening = listeners(Server(host="127.0.0.1", port=free_port()))
    pauses: list[float] = []
    dealer = Dealer(listening, pauses.append)
    worker = dealer.begin(0)
    worker.send(READY)
    client = socket.create_connection(listening[0].getsockname())
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        dealer.serve(PATIENCE_S)  # the worker says that it is ready
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        dealer.serve(PATIENCE_S)
        assert pauses == [PAUSE_S]
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        dealer.serve(PATIENCE_S)
        assert len(socket.recv_fds(worker, 1, 1)[1]) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for each in (client, worker):
            each.close()
        dealer.close()
        dealer.end(0)
