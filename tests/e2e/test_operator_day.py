"""An operator's day with the command: hand out a key, serve, reload and rotate the key under traffic, and lose no request."""

import asyncio
import sys

import yaml

from gateway.standin import StandIn
from tests import fakes, running

ASK = {"model": "gpt-4o", "messages": [fakes.user("hi")]}


async def turnfold(folder, *arguments):
    """Run a command in the operator's folder; return the last line it prints."""
    return (await turnfold_output(folder, *arguments)).splitlines()[-1]


async def turnfold_output(folder, *arguments):
    """Run a command in the operator's folder; return all that it prints."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway", *arguments, cwd=folder, env={"PYTHONPATH": str(running.ROOT)},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    async with asyncio.timeout(running.PATIENCE_S):
        output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode()


async def until_status(gateway, key, status):
    async with asyncio.timeout(running.PATIENCE_S):
        while (await gateway.chat(ASK, {"x-api-key": key})).status != status:  # noqa: ASYNC110
            await asyncio.sleep(0.05)  # files are polled; nothing tells when


async def test_keys_and_settings_change_under_traffic_and_no_request_fails(tmp_path):
    async with StandIn() as standin:
        text = running.configured(standin, {"server": {"keys_file": "keys.yaml"}, "log": {"level": "error"}})
        (tmp_path / "turnfold.yaml").write_text(text)
        steady = await turnfold(tmp_path, "keys", "add", "steady")
        old = await turnfold(tmp_path, "keys", "add", "old", "--models", "gpt-4o")
        async with running.as_command(text, tmp_path) as (gateway, _):
            statuses, stop = [], asyncio.Event()

            async def traffic():
                while not stop.is_set():
                    statuses.append((await gateway.chat(ASK, {"x-api-key": steady})).status)

            users = [asyncio.create_task(traffic()) for _ in range(3)]  # noqa: TID251
            new = await turnfold(tmp_path, "keys", "add", "new", "--models", "gpt-4o")
            await until_status(gateway, new, 200)
            await turnfold(tmp_path, "keys", "remove", "old")
            await until_status(gateway, old, 401)
            file = tmp_path / "turnfold.yaml"
            settings = yaml.safe_load(file.read_text())
            file.write_text(yaml.safe_dump(settings | {"fold": {"client_modes": []}}))
            async with asyncio.timeout(running.PATIENCE_S):
                while (await gateway.chat(ASK, {"x-api-key": new, "x-turnfold-mode": "off"})).status != 403:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            stop.set()
            await asyncio.gather(*users)
    assert len(statuses) > 10
    assert set(statuses) == {200}
