"""Sockets without any HTTP library: requests as bytes, answers as bytes, and an upstream that answers what it is told."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import orjson

PATIENCE_S = 15


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer, read to its end."""

    status: int
    headers: dict[str, str]
    """Names in lower case; of two alike, the last."""
    body: bytes

    @property
    def error(self) -> dict[str, object]:
        return orjson.loads(self.body)["error"]


def request(target: str = "/v1/models", method: str = "GET", body: bytes = b"", **headers: str) -> bytes:
    """Write a request; underscores in names of headers are hyphens. A Host is added where none is given."""
    lines = {"host": "127.0.0.1", **({"content-length": str(len(body))} if body else {}), **headers}
    head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in lines.items() if value)
    return f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + body


async def ask(port: int, *pieces: bytes) -> Reply:
    """Send the bytes over a connection of their own, piece by piece, and read one answer."""
    async with asyncio.timeout(PATIENCE_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            return await read_reply(reader)
        finally:
            writer.close()


async def read_reply(reader: asyncio.StreamReader) -> Reply:
    """Read an answer with a length, in chunks or up to the end of the connection."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *rest = head.strip().split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (each.partition(":") for each in rest)}
    if line.split(" ")[1] == "204":
        body = b""
    elif "content-length" in headers:
        body = await reader.readexactly(int(headers["content-length"]))
    elif "chunked" in headers.get("transfer-encoding", ""):
        body = await _chunks(reader)
    else:
        body = await reader.read()
    return Reply(int(line.split(" ")[1]), headers, body)


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int(await reader.readline(), 16):
        body += await reader.readexactly(size)
        await reader.readline()
    return body


Script = Callable[[int, int], bytes]
"""The bytes to answer with, by the number of the connection and of the request on it, both from 0."""


@dataclass
class Upstream:
    """A server that answers with given bytes, keeps its connections open and remembers what it was sent."""

    script: Script
    port: int = 0
    heads: list[bytes] = field(default_factory=list)
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = len(self.writers)
        self.writers.append(writer)
        for number in _numbers():
            try:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    (int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0
                )
                await reader.readexactly(length)
            except (asyncio.IncompleteReadError, ConnectionError):
                break
            self.heads.append(head)
            writer.write(self.script(connection, number))
            await writer.drain()
        writer.close()


def _numbers() -> Iterator[int]:
    number = 0
    while True:
        yield number
        number += 1


@asynccontextmanager
async def upstream(script: Script) -> AsyncIterator[Upstream]:
    """Run a scripted upstream."""
    running = Upstream(script)
    server = await asyncio.start_server(running.serve, "127.0.0.1", 0)
    running.port = server.sockets[0].getsockname()[1]
    try:
        yield running
    finally:
        server.close()
        for writer in running.writers:
            writer.close()
