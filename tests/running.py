"""A running gateway to talk to: in this process on a real socket, or as the command in a process of its own."""

import asyncio
import io
import os
import random
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import yaml
from aiohttp import ClientSession, ClientTimeout, TCPConnector
from yarl import URL

from gateway import config as settings
from gateway.serve import app
from gateway.standin import StandIn

ROOT = Path(__file__).resolve().parents[1]
PATIENCE_S = 20
"""Longer than any answer takes; a test that reaches it has found a hang."""


@dataclass(frozen=True, slots=True)
class Answered:
    """One answer of the gateway, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)

    @property
    def action(self) -> str:
        return self.headers["x-turnfold-action"]

    @property
    def tokens(self) -> tuple[int, int]:
        """Tokens before and after; a bound like ``<=500`` reads as 500."""
        before, after = (self.headers[f"x-turnfold-tokens-{which}"].removeprefix("<=") for which in ("before", "after"))
        return int(before), int(after)


@dataclass(frozen=True, slots=True)
class Gateway:
    """Where a gateway runs, and how it is asked."""

    base_url: str
    """With ``/v1``."""
    admin_url: str
    session: ClientSession
    settled: Callable[[], Awaitable[None]] | None = None
    """Waits for the background work of a gateway in this process."""
    inside: app.Running | None = None
    """The gateway itself, where it runs in this process."""

    @property
    def port(self) -> int:
        """Where clients connect."""
        return URL(self.base_url).port or 80

    async def chat(self, body: Any, headers: Mapping[str, str] | None = None) -> Answered:
        """Post a chat completion: a value is sent as JSON, bytes as they are."""
        raw = body if isinstance(body, bytes) else orjson.dumps(body)
        return await self.ask("POST", "/chat/completions", raw, {"content-type": "application/json", **(headers or {})})

    async def ask(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Answered:
        """Ask anything below ``/v1``."""
        url = URL(f"{self.base_url}{path}", encoded=True)
        async with self.session.request(
            method, url, data=io.BytesIO(body) if body else None, headers=headers
        ) as response:
            return Answered(response.status, response.headers, await response.read())


def configured(standin: StandIn | str, config: Mapping[str, Any] | None = None) -> str:
    """Write a configuration for one upstream; what ``config`` says comes over it, section by section."""
    base_url = standin if isinstance(standin, str) else standin.base_url
    whole: dict[str, Any] = {
        "server": {"host": "127.0.0.1", "port": 0},
        "admin": {"host": "127.0.0.1", "port": 0},
        "store": {"url": "memory://", "timeout": "10s"},  # a busy disk may take longer than a user would wait
        "upstreams": {"standin": {"provider": "openai", "base_url": base_url}},
        "default_upstream": "standin",
    }
    for section, value in (config or {}).items():
        known = whole.get(section)
        whole[section] = {**known, **value} if isinstance(known, dict) and isinstance(value, Mapping) else value
    return yaml.safe_dump(whole, sort_keys=False)


@asynccontextmanager
async def client() -> AsyncIterator[ClientSession]:
    """A client that changes nothing on the way: no decompression, no limit on headers, a new connection each time."""
    connector = TCPConnector(force_close=True)
    async with ClientSession(
        connector=connector,
        auto_decompress=False,
        max_line_size=1 << 18,
        max_field_size=1 << 18,
        timeout=ClientTimeout(total=PATIENCE_S),
    ) as session:
        yield session


@asynccontextmanager
async def in_process(config: str) -> AsyncIterator[Gateway]:
    """Run the gateway in this event loop."""
    async with client() as session:
        running = await app.start(settings.parse(config, {}, "test.yaml"))
        try:
            admin = f"http://127.0.0.1:{running.admin_port}"
            yield Gateway(running.url, admin, session, running.gateway.tasks.settled, running)
        finally:
            await running.close()


@asynccontextmanager
async def as_command(
    config: str, folder: Path, *arguments: str
) -> AsyncIterator[tuple[Gateway, asyncio.subprocess.Process]]:
    """Run `python -m gateway serve --config FILE` in a process of its own."""
    port, admin_port = free_ports(2)
    whole = yaml.safe_load(config)
    whole["server"]["port"], whole["admin"]["port"] = port, admin_port
    file = folder / "turnfold.yaml"
    file.write_text(yaml.safe_dump(whole))
    async with process_at(port, admin_port, folder, "gateway", "serve", "--config", str(file), *arguments) as running:
        yield running


@asynccontextmanager
async def process_at(
    port: int, admin_port: int, folder: Path, module: str, *arguments: str
) -> AsyncIterator[tuple[Gateway, asyncio.subprocess.Process]]:
    """Run a module that serves the gateway at these ports in a process of its own, from when it answers."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, *arguments,
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        await answering(port, process)
        async with client() as session:
            yield Gateway(f"http://127.0.0.1:{port}/v1", f"http://127.0.0.1:{admin_port}", session), process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.communicate(), PATIENCE_S)


async def answering(port: int, process: asyncio.subprocess.Process) -> None:
    """Wait until the port accepts connections or the process has ended."""
    async with asyncio.timeout(PATIENCE_S):
        while process.returncode is None:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except ConnectionRefusedError:
                await asyncio.sleep(0.02)  # a foreign process has no event to wait for
                continue
            writer.close()
            await writer.wait_closed()
            return
    raise AssertionError(f"the gateway ended with {process.returncode}: {(await process.communicate())[0].decode()}")


def free_ports(count: int) -> list[int]:
    """Find ports in a row that nobody listens on. They lie below those that systems give to whoever asks for any: a test beside this one
    would else get one of them before it is used."""
    draw = random.SystemRandom()  # not seeded: processes run tests side by side
    while True:
        first = draw.randrange(10_000, 30_000)
        ports = list(range(first, first + count))
        with ExitStack() as sockets, suppress(OSError):
            for port in ports:
                sockets.enter_context(socket.create_server(("127.0.0.1", port)))
            return ports
