"""An operator's day with the command: hand out a key, serve, reload and rotate the key under traffic, and lose no request."""

import asyncio
import os
import signal
import ssl
import sys

import aiohttp
import orjson
import pytest
import yaml

from gateway.standin import StandIn
from tests import fakes, running
from tests.e2e.test_serving_tls import cert_bytes, made, shown_after

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


async def until(condition):
    """Wait until something outside this process has happened; nothing tells when."""
    async with asyncio.timeout(3 * running.PATIENCE_S):
        while not await condition():  # noqa: ASYNC110
            await asyncio.sleep(0.05)


class Traffic:
    """Clients that ask without a pause, each over connections of its own."""

    def __init__(self, url, headers):
        self.statuses = []
        self._stop = asyncio.Event()
        self._users = [asyncio.create_task(self._ask(url, headers)) for _ in range(3)]  # noqa: TID251

    async def _ask(self, url, headers):
        async with aiohttp.ClientSession(headers=headers) as session:
            while not self._stop.is_set():
                async with session.post(url, json=ASK, ssl=unchecked()) as answer:
                    await answer.read()
                    self.statuses.append(answer.status)

    async def ended(self):
        """Stop, and return the different statuses of all requests."""
        self._stop.set()
        await asyncio.gather(*self._users)
        assert len(self.statuses) > 10
        return set(self.statuses)


def unchecked():
    """TLS that takes any certificate: which one is shown is asked for on its own."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@pytest.mark.slow
async def test_the_first_day_from_an_empty_folder_to_a_gateway_that_loses_no_request(tmp_path):
    """Init, check, keys, TLS, two workers; under traffic: reload, a broken file, a new certificate, a new key; then parts die."""
    standin = StandIn()
    await standin.start()
    try:
        await turnfold(tmp_path, "init", "--upstream", standin.base_url)
        file = tmp_path / "turnfold.yaml"
        cert, key = made(tmp_path, "first")
        port, admin_port, _ = running.free_ports(3)  # the second worker's admin port follows the first one's
        settings = yaml.safe_load(file.read_text("utf-8"))
        settings["server"] |= {"port": port, "workers": 2, "keys_file": "keys.yaml", "tls": {"cert": cert, "key": key}}
        settings["admin"]["port"] = admin_port
        settings["log"] = {"level": "info", "format": "json"}
        file.write_text(yaml.safe_dump(settings))
        steady = await turnfold(tmp_path, "keys", "add", "steady")
        old = await turnfold(tmp_path, "keys", "add", "old")
        await turnfold(tmp_path, "check", "turnfold.yaml", "--live")

        log = (tmp_path / "log").open("wb")
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "gateway", "serve", "--config", str(file), cwd=tmp_path,
            env={"PYTHONPATH": str(running.ROOT)}, stdout=log, stderr=log,
        )  # fmt: skip
        url = f"https://127.0.0.1:{port}/v1/chat/completions"

        def events(name):
            whole, _, _ = (tmp_path / "log").read_text("utf-8").rpartition("\n")  # the last line may still be written
            lines = whole.splitlines()
            return [line for line in map(orjson.loads, filter(None, lines)) if line.get("event") == name]

        async def logged(name, count):
            return len(events(name)) >= count

        async with aiohttp.ClientSession() as session:

            async def status(key, **more):
                try:
                    async with session.post(
                        url, json=ASK, headers={"x-api-key": key, "connection": "close", **more}, ssl=unchecked()
                    ) as answer:
                        return answer.status
                except aiohttp.ClientError:
                    return 0

            try:
                await until(lambda: logged("serving", 2))
                traffic = Traffic(url, {"x-api-key": steady})

                file.write_text("server: {port: nonsense}")
                await until(lambda: logged("configuration_refused", 2))
                file.write_text(yaml.safe_dump(settings | {"fold": {"client_modes": ["enforce"]}}))
                await until(lambda: logged("configuration_reloaded", 2))
                assert await status(steady, **{"x-turnfold-mode": "off"}) == 403

                made(tmp_path, "second")
                for name in ("pem", "key"):
                    (tmp_path / f"second.{name}").replace(tmp_path / f"first.{name}")
                process.send_signal(signal.SIGHUP)
                new_certificate = cert_bytes(tmp_path / "first.pem")

                async def shown():
                    return all([await shown_after(port) == new_certificate for _ in range(6)])

                await until(shown)

                new = await turnfold(tmp_path, "keys", "add", "new")

                async def taken_up():
                    return {await status(new) for _ in range(6)} == {200}

                await until(taken_up)
                await turnfold(tmp_path, "keys", "remove", "old")

                async def refused():
                    return {await status(old) for _ in range(6)} == {401}

                await until(refused)
                assert await traffic.ended() == {200}, "none of it cost a request"

                os.kill(events("worker_started")[0]["pid"], signal.SIGKILL)
                await until(lambda: logged("worker_started", 3))
                await until(lambda: logged("serving", 3))
                assert {await status(new) for _ in range(10)} == {200}, "a worker that died is replaced"

                (tmp_path / "turnfold.db").unlink(missing_ok=True)
                assert {await status(new) for _ in range(4)} == {200}, "the store may go at any moment"

                where = int(standin.base_url.rpartition(":")[2].partition("/")[0])
                await standin.close()
                assert await status(new) in {502, 503, 504}, "without an upstream, an error that says so"
                await standin.start(where)

                async def answered():
                    return {await status(new) for _ in range(6)} == {200}

                await until(answered)  # an upstream that failed is left alone for a moment
            finally:
                if process.returncode is None:
                    process.send_signal(signal.SIGTERM)
                async with asyncio.timeout(running.PATIENCE_S):
                    assert await process.wait() == 0
                log.close()
    finally:
        await standin.close()
