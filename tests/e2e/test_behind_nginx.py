"""Two replicas behind a real nginx, with one Redis: limits are shared, client addresses are known, a replica may die."""

import asyncio
import os
import shutil
import sys
import time
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager
from hashlib import sha256

import aiohttp
import pytest
import yaml

from gateway.standin import StandIn
from tests import fakes, running
from tests.redis_server import BINARY, REASON, RedisServer, free_port

pytestmark = [
    pytest.mark.skipif(BINARY is None, reason=REASON),
    pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed"),
]
ASK = {"model": "gpt-4o", "messages": [fakes.user("hi")]}
LIMITED, HELD, FREE = ({"x-api-key": name} for name in ("limited", "held", "free"))


def hashed(name):
    return f"sha256:{sha256(name.encode()).hexdigest()}"


KEYS = {
    "limited": {"hash": hashed("limited"), "rpm": 7},
    "held": {"hash": hashed("held"), "addresses": ["127.0.0.3"]},
    "free": {"hash": hashed("free")},
}


@asynccontextmanager
async def nginx(folder, ports):
    """Run the nginx of `deploy/nginx.conf` in front of gateways."""
    port = free_port()
    text = (
        (running.ROOT / "deploy" / "nginx.conf").read_text("utf-8").replace("listen 8080", f"listen 127.0.0.1:{port}")
    )
    for number, gateway in enumerate(ports, 1):
        text = text.replace(f"gateway-{number}:8787", f"127.0.0.1:{gateway}")
    (folder / "nginx.conf").write_text(f"daemon off;\npid {folder}/pid;\nerror_log {folder}/error.log;\n{text}")
    process = await asyncio.create_subprocess_exec(
        "nginx", "-p", str(folder), "-c", "nginx.conf", stderr=asyncio.subprocess.STDOUT, stdout=asyncio.subprocess.PIPE
    )
    try:
        await running.answering(port, process)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        await process.wait()


@asynccontextmanager
async def replica(folder, standin, redis_url):
    """Run one gateway as the command; yield its port and its process."""
    text = running.configured(standin, {
        "server": {"trusted_proxies": ["127.0.0.1"]}, "store": {"url": redis_url, "timeout": "2s"}, "keys": KEYS,
    })  # fmt: skip
    whole = yaml.safe_load(text)
    whole["server"]["port"], whole["admin"]["port"] = port, _ = free_port(), free_port()
    file = folder / f"{port}.yaml"
    file.write_text(yaml.safe_dump(whole))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway", "serve", "--config", str(file), cwd=folder,
        env={**os.environ, "PYTHONPATH": str(running.ROOT)},
    )  # fmt: skip
    try:
        await running.answering(port, process)
        yield port, process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


@asynccontextmanager
async def two_replicas(folder):
    """Run a Redis, two gateways that share it, and nginx in front; yield the Redis, the gateways' processes and the way through nginx."""
    redis = RedisServer(folder)
    redis.start()
    try:
        async with AsyncExitStack() as stack:
            standin = await stack.enter_async_context(StandIn())
            replicas = [await stack.enter_async_context(replica(folder, standin, redis.url)) for _ in range(2)]
            base_url = await stack.enter_async_context(nginx(folder, [port for port, _ in replicas]))
            client = await stack.enter_async_context(running.client())
            yield redis, [process for _, process in replicas], running.Gateway(base_url, "", client)
    finally:
        redis.stop()


async def test_two_replicas_share_limits_behind_nginx_and_one_may_die(tmp_path):
    async with two_replicas(tmp_path) as (_, replicas, front):
        while rest_of_the_minute() < 5:  # noqa: ASYNC110  # the limit is that of one minute of the clock
            await asyncio.sleep(1)
        answers = await asyncio.gather(*(front.chat(ASK, LIMITED) for _ in range(20)))
        assert Counter(each.status for each in answers) == {200: 7, 429: 13}
        served = {each.headers["x-turnfold-request-id"].split("-")[1] for each in answers}
        assert len(served) == 2, "both replicas took part"

        assert await status_from("127.0.0.3", front.base_url) == 200, "nginx tells the true address"
        assert await status_from("127.0.0.2", front.base_url) == 403
        claimed = {"x-forwarded-for": "127.0.0.3", "forwarded": "for=127.0.0.3"}
        assert await status_from("127.0.0.2", front.base_url, claimed) == 403, "a client's own claim is not read"

        replicas[0].kill()
        await replicas[0].wait()
        statuses = [(await front.chat(ASK, FREE)).status for _ in range(12)]
        assert set(statuses) == {200}, "a replica that is gone costs no request"


async def test_redis_may_be_killed_and_come_back_and_no_request_fails(tmp_path):
    """Without it each replica keeps the limit by itself; with it again they share it again."""
    async with two_replicas(tmp_path) as (redis, _, front):
        statuses, stop = [], asyncio.Event()

        async def traffic():
            while not stop.is_set():
                statuses.append((await front.chat(ASK, FREE)).status)

        users = [asyncio.create_task(traffic()) for _ in range(2)]  # noqa: TID251
        await many(statuses, 20)
        redis.kill()
        await many(statuses, len(statuses) + 40)
        assert {(await front.chat(ASK, LIMITED)).status for _ in range(3)} <= {200, 429}, (
            "a limit without a store is no error"
        )
        redis.start()
        await many(statuses, len(statuses) + 40)
        stop.set()
        await asyncio.gather(*users)
        assert set(statuses) == {200}

        await next_minute()
        found = await until_shared(front)
        assert found[429] >= 1


async def many(statuses, count):
    """Wait until so many requests have ended."""
    async with asyncio.timeout(3 * running.PATIENCE_S):
        while len(statuses) < count:  # noqa: ASYNC110  # traffic has no event for its length
            await asyncio.sleep(0.02)


async def next_minute():
    """Wait for the first seconds of a minute of the clock, in which limits start anew."""
    while rest_of_the_minute() < 40:  # noqa: ASYNC110
        await asyncio.sleep(0.5)


async def until_shared(front):
    """Use a key up at both replicas; return the statuses, once together they are no more than the limit."""
    for _ in range(3):  # a process tries a store that failed again after some seconds
        found = Counter([(await front.chat(ASK, LIMITED)).status for _ in range(12)])
        if found[200] <= KEYS["limited"]["rpm"]:
            return found
        await asyncio.sleep(61 - time.time() % 60)
    raise AssertionError(f"the limit is not shared again: {found}")


async def status_from(address, base_url, headers=None):
    """Ask from another address of this machine; return the status."""
    connector = aiohttp.TCPConnector(local_addr=(address, 0))
    async with aiohttp.ClientSession(connector=connector) as session:
        url = f"{base_url}/chat/completions"
        async with session.post(url, json=ASK, headers={**HELD, **(headers or {})}) as answer:
            return answer.status


def rest_of_the_minute():
    """Seconds until the minute of the clock ends."""
    return 60 - time.time() % 60
