"""Both ends of the measured proxies in one process: an upstream that answers at once, and clients that send in step.

Nothing depends on how slow the proxy between them is: a group of clients sends together and waits for all answers, and
the next chunk of a stream leaves when the client has the one before.
"""

import asyncio
import socket
import time
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

from benchmarks.speed.servers import ANSWER
from benchmarks.speed.streams import CHUNK, CHUNKS, END, HEAD, length_of

LONGEST_START_S = 120.0
"""How long a proxy may take to start: valgrind makes it some fifty times slower."""


class Upstream(asyncio.Protocol):
    """One connection of the upstream: a JSON answer, or a stream whose chunks leave one at a time."""

    streaming: "Upstream | None" = None
    """The connection that sends a stream now."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.pieces: list[bytes] = []
        self.missing: int | None = None

    def data_received(self, data: bytes) -> None:
        self.pieces.append(data)
        if self.missing is None:
            self.pieces = [b"".join(self.pieces)]
            head, found, body = self.pieces[0].partition(b"\r\n\r\n")
            if not found:
                return
            self.missing = length_of(head) - len(body)
        else:
            self.missing -= len(data)
        if self.missing <= 0:
            self._answer(b"".join(self.pieces))

    def _answer(self, request: bytes) -> None:
        self.pieces, self.missing = [], None
        if b'"stream":true' in request[:4096]:
            Upstream.streaming = self
            self.transport.write(HEAD + CHUNK)
            return
        body = ANSWER.replace("$tokens", str(len(request) // 4)).encode()
        head = b"HTTP/1.1 200 OK\r\nServer: upstream\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: keep-alive\r\n\r\n"
        self.transport.write(head % len(body) + body)

    def send(self, piece: bytes) -> None:
        self.transport.write(piece)


class Exchange:
    """The upstream and the clients."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._server = self._loop.run_until_complete(self._loop.create_server(Upstream, "127.0.0.1", 0))
        self.upstream_port: int = self._server.sockets[0].getsockname()[1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._server.close()
        self._loop.close()

    def wait_for(self, ports: Iterable[int]) -> None:
        """Wait until each port is listened on."""
        for port in ports:
            deadline = time.monotonic() + LONGEST_START_S
            while not _listens(port):
                if time.monotonic() > deadline:
                    raise RuntimeError(f"nothing answers on port {port}")
                time.sleep(0.2)

    def send(self, port: int, requests: Sequence[bytes], wide: int) -> None:
        """Send these bodies, ``wide`` at a time, each on its own connection, and wait for the answers."""
        self._loop.run_until_complete(self._send(port, requests, wide))

    async def _send(self, port: int, requests: Sequence[bytes], wide: int) -> None:
        clients = [await asyncio.open_connection("127.0.0.1", port) for _ in range(wide)]
        for start in range(0, len(requests), wide):
            group = list(zip(clients, requests[start : start + wide], strict=False))
            for (_, writer), body in group:
                writer.write(_head(port, body) + body)
            for (reader, _), _ in group:
                await _read_answer(reader)
        for _, writer in clients:
            writer.close()
            await writer.wait_closed()


def _head(port: int, body: bytes) -> bytes:
    return (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer sk-bench\r\n"
        "Accept: application/json\r\nContent-Type: application/json\r\nUser-Agent: OpenAI/Python 1.99.0\r\n"
        f"X-Stainless-Lang: python\r\nX-Stainless-Retry-Count: 0\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode()


async def _read_answer(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"the proxy answered: {head[:200]!r} {await reader.read(500)!r}")
    if b"chunked" not in head.lower():
        await reader.readexactly(length_of(head))
        return
    for sent in range(1, CHUNKS + 1):
        await reader.readuntil(b"\n\n")
        assert Upstream.streaming is not None
        Upstream.streaming.send(END if sent == CHUNKS else CHUNK)
    await reader.readuntil(b"0\r\n\r\n")


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return False
    return True
