"""A client's connection, without a socket and in a time that passes at once."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any

from aiohttp import web

from gateway.serve.incoming.connection import Connections, Port

GRACE_S = 30
WRITE_TIMEOUT_S = 60


class SkippingLoop(asyncio.SelectorEventLoop):
    """A loop whose time jumps to the next timer instead of waiting for it."""

    def __init__(self) -> None:
        super().__init__(_Selector(self))
        self.now = 0.0

    def time(self) -> float:
        return self.now


class _Selector(selectors.DefaultSelector):
    def __init__(self, loop: SkippingLoop) -> None:
        super().__init__()
        self._skipping = loop

    def select(self, timeout: float | None = None) -> Any:
        self._skipping.now += timeout or 0.0
        return super().select(0)


class Wire(asyncio.Transport):
    """A client that sends a request and reads nothing."""

    unsent = 0
    aborted = False

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def abort(self) -> None:
        self.aborted = True

    def is_closing(self) -> bool:
        return False

    def write(self, data: bytes | bytearray | memoryview) -> None: ...

    def close(self) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


def play(scene: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a scene on a loop that does not wait."""
    with asyncio.Runner(loop_factory=SkippingLoop) as runner:
        runner.run(scene())


def unused(*_: object) -> Any:
    raise AssertionError("nothing is malformed and nothing fails here")


def test_a_stream_that_outlasts_the_grace_is_ended_with_it_and_not_after_twice_as_long() -> None:
    ended: list[float] = []

    async def scene() -> None:
        loop = asyncio.get_running_loop()
        running = asyncio.Event()

        async def stream(_: web.BaseRequest) -> web.StreamResponse:
            running.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(loop.time())
            raise AssertionError

        server = Connections(stream, Port(10, WRITE_TIMEOUT_S, unused, unused), handler_cancellation=True)
        connection = server()
        connection.connection_made(Wire())
        connection.data_received(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        await running.wait()
        server.pre_shutdown()
        await server.shutdown(GRACE_S)
        ended.append(loop.time())

    play(scene)

    assert len(ended) == 2
    assert all(GRACE_S <= moment <= GRACE_S + 1 for moment in ended)  # aiohttp rounds up to whole seconds


async def connected(wire: Wire) -> web.RequestHandler:
    """Return a connection of which nothing is asked yet."""

    async def handler(_: web.BaseRequest) -> web.StreamResponse:
        raise AssertionError

    server = Connections(handler, Port(10**6, WRITE_TIMEOUT_S, unused, unused))
    connection = server()
    connection.connection_made(wire)
    await asyncio.sleep(0)
    return connection


def test_a_client_that_takes_nothing_of_its_answer_is_cut_off_and_a_slow_one_is_not() -> None:
    async def scene() -> None:
        wire = Wire()
        connection = await connected(wire)
        wire.unsent = 100_000
        connection.pause_writing()
        for _ in range(5):
            await asyncio.sleep(WRITE_TIMEOUT_S * 0.9)
            wire.unsent -= 1
        assert not wire.aborted
        await asyncio.sleep(WRITE_TIMEOUT_S * 2)
        assert wire.aborted

    play(scene)


def test_a_client_that_has_taken_its_answer_may_wait_as_long_as_it_likes() -> None:
    async def scene() -> None:
        wire = Wire()
        connection = await connected(wire)
        wire.unsent = 100_000
        connection.pause_writing()
        wire.unsent = 0
        connection.resume_writing()
        await asyncio.sleep(WRITE_TIMEOUT_S * 3)
        assert not wire.aborted

    play(scene)


def test_a_connection_that_is_closed_does_not_stay_open_for_bytes_that_nobody_takes() -> None:
    async def scene() -> None:
        wire = Wire()
        connection = await connected(wire)
        wire.unsent = 10
        connection.force_close()
        await asyncio.sleep(WRITE_TIMEOUT_S * 0.9)
        assert not wire.aborted
        await asyncio.sleep(WRITE_TIMEOUT_S)
        assert wire.aborted

    play(scene)
