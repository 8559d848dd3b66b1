"""Several processes share a port; one that crashes takes only its own streams with it."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from gateway.command import workers
from tests.redis_server import free_port
from tests.running import PATIENCE_S

SERVER = """
import asyncio, os, signal, sys
from aiohttp import web
from gateway.command import workers
from gateway.serve.dealt import DealtSite

async def main():
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)

    async def who(request):
        return web.Response(text=str(os.getpid()), headers={"Connection": "close"})

    async def stream(request):
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"%d\\n" % os.getpid())
        await stop.wait()
        await response.write(b"end\\n")
        return response

    app = web.Application()
    app.add_routes([web.get("/who", who), web.get("/stream", stream)])
    runner = web.AppRunner(app)
    await runner.setup()
    await DealtSite(runner, workers.channel()).start()
    os.write(1, b"\\nready %d %d\\n" % (workers.number(), os.getpid()))  # in one piece, whoever else writes
    await stop.wait()
    await runner.cleanup()

asyncio.run(main())
"""

SUPERVISOR = """
import os, sys
from gateway.command import dealing, workers
from gateway.config import Server

workers.REPLACED_AFTER_S = float(os.environ.get("REPLACED_AFTER_S", workers.REPLACED_AFTER_S))
listening = dealing.listeners(Server(port=int(sys.argv[2])))
sys.exit(workers.run(int(sys.argv[1]), sys.argv[3:], folder=workers.socket_folder(), listeners=listening))
"""


class Supervised:
    """A supervisor in a process of its own, and the workers that said they are ready."""

    def __init__(self, count: int, port: int, command: list[str], **variables: str) -> None:
        environment = {name: value for name, value in os.environ.items() if name != workers.NUMBER} | variables
        self.process = subprocess.Popen(
            [sys.executable, "-c", SUPERVISOR, str(count), str(port), *command],
            stdout=subprocess.PIPE, text=True, env=environment, cwd=Path(__file__).parents[2],
        )  # fmt: skip

    def next_ready(self) -> tuple[int, int]:
        """Wait for the next worker that is ready: its number and process id."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("ready "):
                _, number, pid = line.split()
                return int(number), int(pid)
        raise AssertionError("the supervisor ended")

    def until_logged(self, event: str) -> None:
        """Wait until the supervisor has logged something."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if event in line:
                return
        raise AssertionError("the supervisor ended")

    def stop(self) -> int:
        self.process.terminate()
        return self.wait()

    def wait(self) -> int:
        self.process.communicate(timeout=60)
        return self.process.returncode


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def three(port: int) -> Iterator[Supervised]:
    supervised = Supervised(3, port, [sys.executable, "-c", SERVER])
    yield supervised
    if supervised.process.poll() is None:
        supervised.stop()


async def ask(session: aiohttp.ClientSession, port: int, path: str) -> str:
    async with session.get(f"http://127.0.0.1:{port}{path}") as response:
        return await response.text()


async def test_the_workers_of_a_port_have_as_many_connections_each(three: Supervised, port: int) -> None:
    ready = dict(three.next_ready() for _ in range(3))
    assert sorted(ready) == [0, 1, 2]
    async with aiohttp.ClientSession() as session:
        streams = [await session.get(f"http://127.0.0.1:{port}/stream") for _ in range(30)]
        served_by = Counter([int(await stream.content.readline()) for stream in streams])
        for stream in streams:
            stream.close()
    assert served_by == dict.fromkeys(ready.values(), 10)


async def test_a_killed_worker_is_replaced_and_the_others_keep_their_streams(three: Supervised, port: int) -> None:
    ready = dict(three.next_ready() for _ in range(3))
    async with aiohttp.ClientSession() as session:
        streams = [await session.get(f"http://127.0.0.1:{port}/stream") for _ in range(30)]
        served_by = [int(await stream.content.readline()) for stream in streams]
        victim = served_by[0]
        number = next(number for number, pid in ready.items() if pid == victim)
        os.kill(victim, signal.SIGKILL)
        replaced, new_pid = three.next_ready()
        assert (replaced, new_pid != victim) == (number, True)
        assert three.stop() == 0
        ends = []
        for stream in streams:
            try:
                ends.append(await stream.content.readline())
            except aiohttp.ClientError:
                ends.append(b"broken")
            stream.close()
    assert [end == b"broken" for end in ends] == [pid == victim for pid in served_by]
    assert {end for end, pid in zip(ends, served_by, strict=True) if pid != victim} <= {b"end\n"}


async def test_a_worker_that_hangs_gets_no_connections_until_it_is_back(port: int) -> None:
    two = Supervised(2, port, [sys.executable, "-c", SERVER])
    try:
        (_, stopped), (_, other) = two.next_ready(), two.next_ready()
        os.kill(stopped, signal.SIGSTOP)
        two.until_logged("worker_silent")
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=PATIENCE_S)) as session:
            assert {await ask(session, port, "/who") for _ in range(20)} == {str(other)}
            os.kill(stopped, signal.SIGCONT)
            two.until_logged("worker_back")
            assert str(stopped) in {await ask(session, port, "/who") for _ in range(20)}
    finally:
        os.kill(stopped, signal.SIGCONT)
        assert two.stop() == 0


async def test_a_worker_that_hangs_for_long_is_replaced(port: int) -> None:
    two = Supervised(2, port, [sys.executable, "-c", SERVER], REPLACED_AFTER_S="4")
    try:
        (number, stopped), _ = two.next_ready(), two.next_ready()
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=PATIENCE_S)) as session:
            streams = [await session.get(f"http://127.0.0.1:{port}/stream") for _ in range(2)]
            served_by = [int(await stream.content.readline()) for stream in streams]
            lost = streams[served_by.index(stopped)]
            os.kill(stopped, signal.SIGSTOP)
            two.until_logged("worker_hangs")
            with pytest.raises(aiohttp.ClientError):
                await lost.content.readline()  # its clients notice
            replaced, new = two.next_ready()
            assert (replaced, new != stopped) == (number, True)
            for stream in streams:
                stream.close()
    finally:
        assert two.stop() == 0


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_told_to_stop_it_ends_all_workers_and_itself(three: Supervised, sign: signal.Signals) -> None:
    pids = [three.next_ready()[1] for _ in range(3)]
    three.process.send_signal(sign)
    assert three.wait() == 0
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_workers_that_cannot_start_end_the_supervisor(port: int) -> None:
    assert Supervised(2, port, [sys.executable, "-c", "raise SystemExit(2)"]).wait() == 1
    assert Supervised(1, port, ["/nonexistent/turnfold"]).wait() == 1


def test_workers_end_when_their_supervisor_is_killed(three: Supervised) -> None:
    for _ in range(3):
        three.next_ready()
    three.process.kill()
    three.wait()  # the workers hold the other end of its output until they have ended


def test_outside_a_supervisor_there_is_no_number() -> None:
    assert not workers.is_worker()
    assert workers.number() == 0
