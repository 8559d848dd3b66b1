"""The gateway as an ASGI application, for uvicorn, granian and whatever else serves one: ``uvicorn turnfold.asgi:app``.

The configuration is the file that ``TURNFOLD_CONFIG`` names (``turnfold.yaml``). A request travels to the gateway in this process over a
pair of connected sockets, so it is read, limited, streamed and recorded as on the gateway's own port. WebSockets are not served.
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any, Final

import aiohttp
from aiohttp.client_proto import ResponseHandler
from msgspec.structs import replace
from multidict import CIMultiDict
from yarl import URL

from gateway.config import Settings, SettingsError, dangers, load
from gateway.observe.log import configure
from gateway.serve import app as gateway_app
from gateway.serve.incoming.headers import HOP_BY_HOP
from gateway.serve.process import start_loading

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ADDED: Final = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")  # by aiohttp, to a request without them


class Pairs(aiohttp.BaseConnector):
    """Connects aiohttp's client to the gateway in this process."""

    def __init__(self, running: gateway_app.Running) -> None:
        super().__init__(limit=0)
        self._running = running

    async def _create_connection(self, *__: Any) -> ResponseHandler:
        (ours, its), loop = socket.socketpair(), asyncio.get_running_loop()
        await loop.connect_accepted_socket(self._running.connection, its)
        _transport, protocol = await loop.create_connection(lambda: ResponseHandler(loop=loop), sock=ours)
        return protocol


class Application:
    """The application. It starts with the server, or with the first request of a server that does not tell of its start."""

    def __init__(self) -> None:
        self._running: gateway_app.Running | None = None
        self._session: aiohttp.ClientSession | None = None
        self._starting = asyncio.Lock()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one connection of the server: its own life, or one request."""
        match scope["type"]:
            case "lifespan":
                await self._live(receive, send)
            case "http":
                session, client = await self._started(), AsgiClient(receive)
                async with asyncio.TaskGroup() as group:
                    work = group.create_task(_forward(session, scope, client, send))
                    watch = group.create_task(client.leaves(work))
                    work.add_done_callback(lambda _: watch.cancel())
            case _:
                await send({"type": "websocket.close", "code": 1003, "reason": "WebSockets need `turnfold serve`"})

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self._started()
        except Exception as error:  # noqa: BLE001  # the server prints it and ends
            return await send({"type": "lifespan.startup.failed", "message": f"turnfold: {error}"})
        await send({"type": "lifespan.startup.complete"})
        await receive()
        if self._session is not None and self._running is not None:
            await self._session.close()
            await self._running.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _started(self) -> aiohttp.ClientSession:
        async with self._starting:
            if self._session is None:
                settings = _settings()
                configure(form=settings.log.format, level=settings.log.level)
                self._running = await gateway_app.start(settings, listens=False)
                start_loading(self._running.gateway)
                self._session = aiohttp.ClientSession(
                    connector=Pairs(self._running), auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar(),
                    timeout=aiohttp.ClientTimeout(total=None), max_line_size=2**18, max_field_size=2**18, skip_auto_headers=ADDED,
                )  # fmt: skip
            return self._session


def _settings() -> Settings:
    """Read the file. Raises SettingsError, also for what is safe on loopback alone: the server may listen anywhere."""
    settings = load(Path(os.environ.get("TURNFOLD_CONFIG", "turnfold.yaml")), os.environ)
    settings = replace(settings, server=replace(settings.server, host="0.0.0.0", tls_cert="", tls_key=""))
    if problems := [f"{place}: {problem}." for place, problem in dangers(settings)]:
        raise SettingsError(problems)
    return settings


class AsgiClient:
    """The client of one request: its body, and whether it is still there."""

    def __init__(self, receive: Receive) -> None:
        self._receive, self._left = receive, False
        self._ahead: Message | None = None  # the first piece of a body, if it was asked for already
        self.heard = asyncio.Event()  # set when no more of a body comes

    async def sends_body(self) -> bool:
        """Return whether a body comes that no header tells of: HTTP/2 needs none."""
        self._ahead = await self._receive()
        self._left = self._ahead["type"] == "http.disconnect"
        return bool(self._ahead.get("body") or self._ahead.get("more_body"))

    async def body(self) -> AsyncIterator[bytes]:
        """Yield the body as it comes. If the client leaves before its end, wait to be cancelled."""
        while not self._left:
            message, self._ahead = self._ahead or await self._receive(), None
            self._left = message["type"] == "http.disconnect"
            yield message.get("body", b"")
            if not message.get("more_body") and not self._left:
                self.heard.set()
                return
        self.heard.set()
        await asyncio.Event().wait()

    async def leaves(self, work: "asyncio.Task[None]") -> None:
        """Give up the work for a client that leaves: the model need not go on."""
        await self.heard.wait()
        while not self._left:
            self._left = (await self._receive())["type"] == "http.disconnect"
        work.cancel()


async def _forward(session: aiohttp.ClientSession, scope: Message, client: AsgiClient, send: Send) -> None:
    headers = CIMultiDict((name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"])
    is_told = "content-length" in headers or "transfer-encoding" in headers
    has_body = headers.get("content-length") != "0" if is_told else await client.sends_body()
    for name in (*HOP_BY_HOP, "expect"):
        headers.popall(name, None)
    path = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1").partition("?")[0]
    query = scope.get("query_string", b"").decode("latin-1")
    url = URL.build(scheme="http", host="turnfold", path=path, query_string=query, encoded=True)
    if not has_body:
        client.heard.set()
    async with session.request(
        scope["method"], url, headers=headers, data=client.body() if has_body else None, allow_redirects=False
    ) as answer:
        kept = [(name.lower(), value) for name, value in answer.raw_headers if name.decode().lower() not in HOP_BY_HOP]
        await send({"type": "http.response.start", "status": answer.status, "headers": kept})
        async for chunk in answer.content.iter_any():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


app: Final = Application()  # what an ASGI server is given
