"""`turnfold standin`: a new user's first try, without a key and without a model."""

import asyncio
import signal

import aiohttp
import orjson

from gateway.command.standin import tell
from gateway.standin import Raw, StandIn
from tests import fakes
from tests.command.test_serving import run, started
from tests.hostile.wire import until
from tests.running import PATIENCE_S, free_ports


async def test_the_first_try_of_the_readme_needs_no_key(tmp_path):
    """What is too long for the stand-in is refused there, and answered through a gateway; each request is a line."""
    [port, client, admin] = free_ports(3)
    long = {"model": "gpt-4o", "messages": fakes.chat(80, 200)}
    async with started(tmp_path, "standin", "--port", str(port)) as standin:
        opening = [await line(standin) for _ in range(3)]
        assert f"http://127.0.0.1:{port}/v1" in opening[0]
        command = opening[2].partition("turnfold ")[2].split()
        async with (
            started(tmp_path, *command, "--port", str(client), "--admin-port", str(admin)) as gateway,
            aiohttp.ClientSession() as session,
        ):
            assert "serving" in await line(gateway)
            assert await asked(session, port, long) == 400
            assert await asked(session, client, long) == 200
            assert await asked(session, client, {"model": "any", "messages": [fakes.user("hi")]}) == 200
        lines = [await line(standin) for _ in range(3)]
        lines = [each for each in lines if "GET" not in each]
        assert lines[0].startswith("POST /v1/chat/completions  400  ") and lines[0].endswith(" tokens  too long")
        assert lines[1].startswith("POST /v1/chat/completions  200  ") and lines[1].endswith(" tokens")
        standin.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE_S):
            assert await standin.wait() == 0


async def test_a_request_that_gets_no_end_keeps_no_other_line_back(capsys):
    shown = []
    async with (
        StandIn(script=[Raw(end="silence")]) as standin,
        aiohttp.ClientSession() as session,
        asyncio.timeout(PATIENCE_S),
        asyncio.TaskGroup() as group,
    ):
        told = group.create_task(tell(standin))
        async with session.post(f"{standin.base_url}/responses", json={}):
            async with session.post(f"{standin.base_url}/embeddings", json={}) as answer:
                await answer.read()
            await until(lambda: shown.append(capsys.readouterr().out) or shown[-1])
        told.cancel()
    assert "".join(shown) == "POST /v1/embeddings  200\n"


async def test_a_port_in_use_is_told(tmp_path):
    async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        status, [told] = await run(tmp_path, "standin", "--port", str(port))
    assert status == 1
    assert told == (
        f"turnfold: 127.0.0.1:{port} cannot be bound (Address already in use); end the program that uses it, or choose another port: --port PORT"
    )


async def line(process) -> str:
    async with asyncio.timeout(PATIENCE_S):
        return (await process.stdout.readline()).decode().rstrip()


async def asked(session, port, body) -> int:
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    async with session.post(url, data=orjson.dumps(body), headers={"content-type": "application/json"}) as answer:
        await answer.read()
        return answer.status
