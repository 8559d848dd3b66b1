"""`turnfold serve` as a process of its own: it serves, it drains, it says what is wrong, and it tells nobody's secrets."""

import asyncio
import contextlib
import os
import signal
import sys

import orjson
import pytest
import yaml
from yarl import URL

from gateway.standin import Gate, StandIn
from tests import fakes
from tests.running import PATIENCE_S, ROOT, answering, client, configured, free_ports

ASK = {"model": "m", "messages": [fakes.user("The launch code is OCELOT-77."), fakes.assistant("ok"), fakes.user("hi")]}


async def run(*arguments: str, **environment: str) -> tuple[int, str]:
    """Run a command of ours to its end."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway", *arguments,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment}, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    async with asyncio.timeout(PATIENCE_S):
        out, _ = await process.communicate()
    return process.returncode or 0, out.decode()


async def test_it_serves_from_a_file(command, standin):
    gateway, _ = await command(standin)
    assert (await gateway.chat(ASK)).status == 200
    async with gateway.session.get(f"{gateway.admin_url}/metrics") as response:
        assert b"turnfold_" in await response.read()


async def test_it_serves_without_a_file(standin):
    port, admin_port = free_ports(2)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway", "serve", "--upstream", standin.base_url, "--window", "4000", "--port", str(port),
        "--admin-port", str(admin_port),
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        await answering(port, process)
        body = orjson.dumps({**ASK, "messages": fakes.chat(60)})
        async with (
            client() as session,
            session.post(f"http://127.0.0.1:{port}/v1/chat/completions", data=body) as response,
        ):
            assert (response.status, response.headers["x-turnfold-action"]) == (200, "fold")
    finally:
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE_S):
            await process.communicate()
    assert process.returncode == 0


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
async def test_a_running_stream_ends_properly_before_the_process_does(command, stop):
    gate = Gate(1)
    async with StandIn(script=[fakes.reply("one two three", gate=gate)]) as standin:
        gateway, process = await command(standin)
        url = f"{gateway.base_url}/chat/completions"
        async with gateway.session.post(url, json={**ASK, "stream": True}) as response:
            await response.content.readany()
            process.send_signal(stop)
            await refused(gateway.port)
            gate.release(9)
            assert (await response.read()).endswith(b"data: [DONE]\n\n")
        async with asyncio.timeout(PATIENCE_S):
            assert await process.wait() == 0


async def refused(port: int) -> None:
    """Wait until nobody listens any more."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                return
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            await asyncio.sleep(0.01)  # a foreign process has no event to wait for


@pytest.mark.parametrize("form", ["json", "console"])
async def test_neither_text_nor_key_is_in_the_log_or_the_metrics(command, form):
    secret = "sk-very-secret-91"
    async with StandIn(window=3000) as standin:
        gateway, process = await command(standin, {"log": {"format": form, "level": "debug"}, "models": {"m": {"context_window": 9000}}})  # fmt: skip
        for messages in (ASK["messages"], [*ASK["messages"][:2], *fakes.chat(60)], [fakes.system("OCELOT-77 " * 9000)]):
            await gateway.chat({"model": "m", "messages": messages}, {"authorization": f"Bearer {secret}"})
        await gateway.chat(b'{"OCELOT-77": broken', {"authorization": f"Bearer {secret}"})
        async with gateway.session.get(f"{gateway.admin_url}/metrics") as response:
            metrics = await response.text()
        process.send_signal(signal.SIGTERM)
        log = (await process.communicate())[0].decode()
        assert "not_json" in log  # a line for each request, in either form
        for told in (log, metrics):
            assert "OCELOT" not in told
            assert "secret" not in told


async def test_every_mistake_of_a_configuration_is_told_at_once(tmp_path):
    file = tmp_path / "bad.yaml"
    file.write_text(
        "server: {port: many}\nmodels: {gpt-4o: {context_windw: 5, context_window: '128q'}}\nupstream: {}\n"
    )
    for arguments in (("serve", "--config", str(file)), ("check", str(file))):
        status, out = await run(*arguments)
        assert status == 1
        assert "Traceback" not in out
        for path in ("server.port", "models.gpt-4o.context_windw", "models.gpt-4o.context_window", "upstream"):
            assert path in out


async def test_a_taken_port_is_told_and_not_a_traceback(tmp_path, standin):
    config = yaml.safe_load(configured(standin))
    config["server"]["port"] = URL(standin.base_url).port
    file = tmp_path / "taken.yaml"
    file.write_text(yaml.safe_dump(config))
    status, out = await run("serve", "--config", str(file))
    assert status == 1
    assert "Traceback" not in out
    assert str(config["server"]["port"]) in out


async def test_the_demo_ends_by_itself():
    status, out = await run("demo", COLUMNS="120")
    assert status == 0
    assert "0 with it" in out
