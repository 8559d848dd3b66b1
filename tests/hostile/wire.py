"""A client that speaks HTTP byte by byte, so that it can stop in the middle."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import orjson

from tests.running import PATIENCE_S


@dataclass(slots=True)
class Connection:
    """One connection to a gateway."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Read one answer with a content length: status, headers, body."""
        async with asyncio.timeout(PATIENCE_S):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
            status, *lines = head.rstrip().split("\r\n")
            headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
            body = await self.reader.readexactly(int(headers.get("content-length", "0")))
            return int(status.split()[1]), headers, body

    async def rest(self) -> bytes:
        """Read until the other side closes."""
        async with asyncio.timeout(PATIENCE_S):
            return await self.reader.read()


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Connection]:
    """Open a connection and close it at the end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Connection(reader, writer)
    finally:
        writer.close()


def head(length: int | None, path: str = "/v1/chat/completions", **headers: str) -> bytes:
    """The head of a POST that announces so many bytes."""
    lines = {"host": "localhost", "content-type": "application/json", **headers}
    if length is not None:
        lines["content-length"] = str(length)
    text = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in lines.items())
    return f"POST {path} HTTP/1.1\r\n{text}\r\n".encode()


def request(body: object, **headers: str) -> bytes:
    """A whole chat completion."""
    raw = orjson.dumps(body)
    return head(len(raw), **headers) + raw


async def until(fact: Callable[[], bool]) -> None:
    """Let the event loop go on until something is so; a test that never gets there ends with TimeoutError."""
    async with asyncio.timeout(PATIENCE_S):
        while not fact():  # noqa: ASYNC110  # what is awaited lies inside the gateway and has no event
            await asyncio.sleep(0)
