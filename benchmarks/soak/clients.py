"""The clients of the soak: streams whose bytes are compared by hash, conversations that grow, clients that leave or read slowly."""

import asyncio
import hashlib
import random
import socket
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Final, Literal

import aiohttp
import orjson

from benchmarks.soak.formats import CHUNKS, FORMATS, Format, Message
from benchmarks.speed.bodies import WORDS

JSON: Final = {"content-type": "application/json"}
STREAM_S: Final = 50.0
"""How long a stream takes."""
TURN_WORDS: Final = 350
LONGEST: Final = 60
"""Messages of a conversation; then a new one begins."""
BROKEN: Final = (aiohttp.ClientError, ConnectionError, asyncio.IncompleteReadError)


@dataclass
class Seen:
    """What the clients saw."""

    wrong: int = 0
    """Answers whose bytes differ from the expected ones."""
    broken: int = 0
    """Answers that ended early, all bytes before it right."""
    whole: int = 0
    """Streams that arrived whole."""
    statuses: Counter[str] = field(default_factory=Counter)
    actions: Counter[str] = field(default_factory=Counter)
    health_s: list[float] = field(default_factory=list)


def words(count: int, random_: random.Random) -> str:
    return " ".join(random_.choices(WORDS, k=count)) + f" {random_.getrandbits(64):x}."


async def streams(session: aiohttp.ClientSession, seen: Seen, number: int, until: float) -> None:
    """One stream after the other."""
    format, round_ = FORMATS[number % len(FORMATS)], 0
    await asyncio.sleep(random.Random(number).random() * min(STREAM_S, until - time.monotonic()) / 5)
    while (left := until - time.monotonic()) > 0:
        seed = f"{number}-{round_}"
        round_ += 1
        await stream(session, seen, format, seed, min(STREAM_S, left) / CHUNKS)


async def stream(session: aiohttp.ClientSession, seen: Seen, format: Format, seed: str, pause_s: float) -> None:
    """Ask for one stream and compare its bytes."""
    raw = format.body([{"role": "user", "content": f"Tell me about {seed}."}], stream=True, user=seed, pause_s=pause_s)
    got = []
    try:
        async with session.post(format.path, data=raw, headers=JSON) as response:
            seen.statuses[f"stream {response.status}"] += 1
            if response.status != 200:
                await response.read()
                await asyncio.sleep(1)
                return
            async for chunk in response.content.iter_any():
                got.append(chunk)
    except BROKEN:
        await asyncio.sleep(1)
    match judged(format, seed, b"".join(got)):
        case "whole":
            seen.whole += 1
        case "broken":
            seen.broken += 1
        case "wrong":
            seen.wrong += 1


def judged(format: Format, seed: str, got: bytes) -> Literal["whole", "broken", "wrong"]:
    """Compare a stream with what it must be: an end that is missing is no wrong byte."""
    if hashlib.sha256(got).hexdigest() == format.hash(seed):
        return "whole"
    return "broken" if b"".join(format.pieces(seed)).startswith(_without_notice(got)) else "wrong"


def _without_notice(got: bytes) -> bytes:
    """Return a stream without the event by which the gateway says that the upstream broke off."""
    for mark in (b"event: error\ndata: ", b'data: {"error"', b"event: response.failed", b'\n{"error"'):
        at = got.rfind(mark)
        if at >= 0:
            return got[:at]
    return got


async def converse(session: aiohttp.ClientSession, seen: Seen, number: int, until: float, pause_s: float) -> None:
    """Conversations that start near the window and grow over it, one after the other."""
    format, random_ = FORMATS[number % len(FORMATS)], random.Random(number)
    await asyncio.sleep(pause_s * random_.random())
    messages: list[Message] = []
    while time.monotonic() < until:
        if len(messages) >= LONGEST:
            messages = []
        times = 1 if messages else 12
        messages.append({"role": "user", "content": words(TURN_WORDS * times, random_)})
        reply = await ask(session, seen, format, messages)
        messages.append({"role": "assistant", "content": reply or "..."})
        await asyncio.sleep(pause_s)


async def ask(session: aiohttp.ClientSession, seen: Seen, format: Format, messages: list[Message]) -> str:
    """Ask once. What fits must arrive byte for byte, of what is folded the question."""
    raw = format.body(messages)
    try:
        async with session.post(format.path, data=raw, headers=JSON) as response:
            seen.statuses[f"conversation {response.status}"] += 1
            answer = await response.read()
            action = response.headers.get("x-turnfold-action", "")
            status = response.status
    except BROKEN:
        seen.statuses["conversation broken off"] += 1
        return ""
    seen.actions[f"{format.name} {action}"] += 1
    if status != 200:
        return ""
    said = orjson.loads(format.text_in(orjson.loads(answer)))
    whole = said["sha256"] == hashlib.sha256(raw).hexdigest()
    if not (whole if action == "none" else messages[-1]["content"] in said["last"]):
        seen.wrong += 1
    return "Noted: " + str(said["sha256"])


async def watch(session: aiohttp.ClientSession, seen: Seen, until: float) -> None:
    """Ask for the gateway's health, five times a second."""
    while time.monotonic() < until:
        await health(session, seen)
        await asyncio.sleep(0.2)


async def health(session: aiohttp.ClientSession, seen: Seen) -> None:
    began = time.perf_counter()
    async with session.get("/healthz") as response:
        seen.statuses[f"health {response.status}"] += 1
        await response.read()
    seen.health_s.append(time.perf_counter() - began)


def request(format: Format, **more: object) -> bytes:
    """Return the bytes of a request for a stream."""
    raw = format.body([{"role": "user", "content": "Tell me much."}], stream=True, **more)
    head = f"POST {format.path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {len(raw)}\r\n\r\n"
    return head.encode() + raw


async def leave(port: int, number: int) -> None:
    """Begin a stream and leave in its middle without a word."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request(FORMATS[number % len(FORMATS)], user=f"leaver-{number}", pause_s=0.2))
    await reader.readuntil(b"\r\n\r\n")
    await reader.read(100)
    writer.transport.abort()


async def read_slowly(port: int, number: int, size: int, pause_s: float) -> bool:
    """Ask for a stream that is sent at once, read nothing for a while, then everything; return whether it was right."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.setblocking(False)
    await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", port))
    reader, writer = await asyncio.open_connection(sock=client, limit=2**13)
    format, seed = FORMATS[number % len(FORMATS)], f"slow-{number}"
    writer.write(request(format, user=seed, pause_s=0, size=size // CHUNKS))
    try:
        await asyncio.sleep(pause_s)
        await reader.readuntil(b"\r\n\r\n")
        found = hashlib.sha256()
        while (length := int(await reader.readline(), 16)) > 0:
            for start in range(0, length, 2**16):
                found.update(await reader.readexactly(min(2**16, length - start)))
            await reader.readline()
        return found.hexdigest() == format.hash(seed, size // CHUNKS)
    finally:
        writer.close()
