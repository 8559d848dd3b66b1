"""A client's connection, without a socket and in a time that passes at once."""

import asyncio
import selectors
from typing import Any

from aiohttp import web

from gateway.serve.incoming.connection import Connections

GRACE_S = 30


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

    def is_closing(self) -> bool:
        return False

    def write(self, data: bytes | bytearray | memoryview) -> None: ...

    def close(self) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


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

        server = Connections(stream, patience_s=10, answer=unused, failed=unused, handler_cancellation=True)
        connection = server()
        connection.connection_made(Wire())
        connection.data_received(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        await running.wait()
        server.pre_shutdown()
        await server.shutdown(GRACE_S)
        ended.append(loop.time())

    with asyncio.Runner(loop_factory=SkippingLoop) as runner:
        runner.run(scene())

    assert len(ended) == 2
    assert all(GRACE_S <= moment <= GRACE_S + 1 for moment in ended)  # aiohttp rounds up to whole seconds
