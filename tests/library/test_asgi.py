"""The gateway behind an ASGI server, uvicorn, in a process of its own."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from gateway.standin import Raw, StandIn
from tests import fakes
from tests.running import PATIENCE_S, ROOT, Gateway, configured, free_ports, process_at

WINDOW = 3000
LONG = {"model": "gpt-4o", "messages": fakes.chat(60)}


@asynccontextmanager
async def behind_uvicorn(standin: StandIn, folder: Path) -> AsyncIterator[tuple[Gateway, asyncio.subprocess.Process]]:
    """Run the application behind uvicorn."""
    port, admin_port = free_ports(2)
    config = {"models": {"gpt-4o": {"context_window": WINDOW}}, "admin": {"port": admin_port}}
    (folder / "turnfold.yaml").write_text(configured(standin, config))
    arguments = ("turnfold.asgi:app", "--port", str(port), "--log-level", "warning")
    async with process_at(port, admin_port, folder, "uvicorn", *arguments) as running:
        yield running


async def test_requests_pass_fold_and_recover_as_on_the_gateways_own_port(tmp_path: Path) -> None:
    short = b'{ "model": "gpt-4o",  "messages": [{"role":"user","content":"Caf\\u00e9?"}], "x": 1e2 }'
    async with StandIn(window=WINDOW, scale=2.5) as standin, behind_uvicorn(standin, tmp_path) as (gateway, _):
        passed = await gateway.chat(short)
        folded = await gateway.chat(LONG)
        listed = await gateway.ask("GET", "/models?limit=2")
        unknown = await gateway.ask("POST", "/../nothing", b"{}")

        assert (passed.action, standin.requests[0].body) == ("none", short)
        assert (folded.status, folded.action) == (200, "retry")
        assert [seen.status for seen in standin.requests if seen.method == "POST"][:3] == [200, 400, 200]
        assert listed.status == 200 and unknown.json["error"]["code"] == "invalid_path"
        assert "x-turnfold-request-id" in passed.headers
        metrics = await gateway.session.get(f"{gateway.admin_url}/metrics")
        assert 'action="retry"' in await metrics.text()


async def test_a_stream_comes_piece_by_piece_and_ends_with_its_client(tmp_path: Path) -> None:
    gate = fakes.Gate(2)
    async with StandIn(window=WINDOW) as standin, behind_uvicorn(standin, tmp_path) as (gateway, _):
        standin.script.append(fakes.reply("One. Two. Three.", gate=gate))
        url = f"{gateway.base_url}/chat/completions"
        async with gateway.session.post(url, json={**LONG, "stream": True}) as answer:
            assert (await answer.content.readany()).startswith(b"data: ")

        async with asyncio.timeout(PATIENCE_S):
            await standin.chats[0].done.wait()
        assert standin.chats[0].left


async def test_a_client_that_leaves_before_the_answer_ends_the_call(tmp_path: Path) -> None:
    async with StandIn(window=WINDOW) as standin, behind_uvicorn(standin, tmp_path) as (gateway, process):
        standin.script.append(fakes.SILENCE)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2):
                await gateway.chat(LONG)
        async with asyncio.timeout(PATIENCE_S):
            await (await standin.arrived(2)).done.wait()
        assert standin.chats[0].left

        process.send_signal(signal.SIGTERM)
        said, _ = await process.communicate()
    assert b"Traceback" not in said


async def test_a_body_without_a_length_arrives_whole(tmp_path: Path) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b'{"model":"gpt-4o",'
        yield b'"messages":[{"role":"user","content":"Hello"}]}'

    async with StandIn(window=WINDOW) as standin, behind_uvicorn(standin, tmp_path) as (gateway, _):
        standin.script.append(Raw(200, (b'{"any":1}',)))
        async with gateway.session.post(f"{gateway.base_url}/chat/completions", data=pieces()) as answer:
            assert (answer.status, await answer.read()) == (200, b'{"any":1}')
        assert orjson.loads(standin.requests[0].body)["messages"][0]["content"] == "Hello"


@pytest.mark.parametrize("pieces", [[b""], [b'{"model":"m",', b'"messages":[{"role":"user","content":"Hello"}]}']])
async def test_a_body_that_no_header_tells_of_arrives_whole(
    pieces: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HTTP/2 needs neither a length nor a transfer encoding."""
    from turnfold.asgi import Application  # noqa: PLC0415

    arriving, sent = asyncio.Queue[Any](), []
    for number, piece in enumerate(pieces, 1):
        arriving.put_nowait({"type": "http.request", "body": piece, "more_body": number < len(pieces)})

    async def send(message: Any) -> None:
        sent.append(message)

    async with StandIn(window=WINDOW) as standin:
        (tmp_path / "turnfold.yaml").write_text(configured(standin, {"admin": {"port": 0}}))
        monkeypatch.setenv("TURNFOLD_CONFIG", str(tmp_path / "turnfold.yaml"))
        application = Application()
        path = "/v1/chat/completions" if pieces[0] else "/v1/models"
        scope = {
            "type": "http",
            "http_version": "2",
            "method": "POST" if pieces[0] else "GET",
            "path": path,
            "headers": [],
        }
        await application(scope, arriving.get, send)
        orders: asyncio.Queue[Any] = asyncio.Queue()
        orders.put_nowait({"type": "lifespan.startup"})
        orders.put_nowait({"type": "lifespan.shutdown"})
        await application({"type": "lifespan"}, orders.get, send)

        assert sent[0]["status"] == 200
        (seen,) = standin.requests[-1:]
        assert (seen.path, seen.body) == (path, b"".join(pieces))
        assert "transfer-encoding" not in seen.headers


KEYED = "upstreams: {u: {provider: openai, base_url: 'http://127.0.0.1:9/v1', api_key: k}}\n"


@pytest.mark.parametrize(("config", "told"), [("upstreems: {}\n", b"upstreems"), (KEYED, b"server.open")])
async def test_a_wrong_or_open_configuration_ends_the_server_in_words(tmp_path: Path, config: str, told: bytes) -> None:
    (tmp_path / "turnfold.yaml").write_text(config)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "uvicorn", "turnfold.asgi:app", "--port", str(free_ports(1)[0]),
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    said, _ = await asyncio.wait_for(process.communicate(), PATIENCE_S)

    assert process.returncode != 0
    assert told in said


async def test_a_websocket_is_refused() -> None:
    from turnfold.asgi import Application  # noqa: PLC0415

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await Application()({"type": "websocket"}, None, send)  # type: ignore[arg-type]

    assert [message["type"] for message in sent] == ["websocket.close"]


async def test_what_the_first_fold_would_wait_for_is_loaded_beside_serving(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gateway.serve import process  # noqa: PLC0415
    from turnfold.asgi import Application  # noqa: PLC0415

    (tmp_path / "turnfold.yaml").write_text(configured("http://127.0.0.1:9/v1", {"admin": {"port": 0}}))
    monkeypatch.setenv("TURNFOLD_CONFIG", str(tmp_path / "turnfold.yaml"))
    loaded, told = threading.Event(), asyncio.Queue[str]()
    monkeypatch.setattr(process, "load_remaining_code", loaded.set)
    orders: asyncio.Queue[Any] = asyncio.Queue()

    async def send(message: Any) -> None:
        told.put_nowait(message["type"])

    living = asyncio.ensure_future(Application()({"type": "lifespan"}, orders.get, send))  # noqa: TID251  # the test's own server
    orders.put_nowait({"type": "lifespan.startup"})
    assert await told.get() == "lifespan.startup.complete"
    assert await asyncio.to_thread(loaded.wait, PATIENCE_S)
    orders.put_nowait({"type": "lifespan.shutdown"})
    await living
    assert await told.get() == "lifespan.shutdown.complete"
