"""Two replicas, one Redis, two hundred growing conversations; a replica is killed, Redis is restarted, and no client notices."""

import asyncio
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
import yaml

from gateway.context import frames
from gateway.standin import Completion, Seen, StandIn
from tests import running
from tests.fakes import system, user, words
from tests.redis_server import BINARY, REASON, RedisServer, free_port

CONVERSATIONS = 200
TURNS = 12
AT_ONCE = 12
"""Requests under way at a time: two cores serve two replicas, the stand-in, Redis and the clients."""
WINDOW = 1000
SETTLED_S = 2.0
"""After a disturbance: the longest pause of a circuit breaker that saw few failures, and a little."""

pytestmark = [pytest.mark.slow, pytest.mark.skipif(BINARY is None, reason=REASON)]


class Replica:
    """One gateway in a process of its own, always on the same port."""

    def __init__(self, folder: Path, config: dict[str, Any]) -> None:
        self.port, admin_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}/v1/chat/completions"
        self.kills = 0
        self.up = False
        self._process: asyncio.subprocess.Process | None = None
        self._file = folder / f"{self.port}.yaml"
        server = {"host": "127.0.0.1", "port": self.port}
        self._file.write_text(
            yaml.safe_dump({**config, "server": server, "admin": {"host": "127.0.0.1", "port": admin_port}})
        )

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "gateway", "serve", "--config", str(self._file),
            cwd=self._file.parent, env={**os.environ, "PYTHONPATH": str(running.ROOT)},
        )  # fmt: skip
        await running.answering(self.port, self._process)
        self.up = True

    async def kill(self) -> None:
        assert self._process is not None
        self.kills, self.up = self.kills + 1, False
        self._process.kill()
        await self._process.wait()

    async def stop(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            await asyncio.wait_for(self._process.wait(), running.PATIENCE_S)


@dataclass(slots=True)
class Run:
    """What happens in one run, and when."""

    standin: StandIn
    replicas: list[Replica]
    session: aiohttp.ClientSession
    turns_done: int = 0
    failures: list[str] = field(default_factory=list)
    broken_off: int = 0
    """Requests that the killed replica took with it."""
    disturbances: list[tuple[float, float]] = field(default_factory=list)
    _next: int = 0
    _advanced: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def ask(self, body: bytes) -> str:
        """Ask the replicas in turn, as a proxy in front of them does: a closed port means the next one, sent is sent."""
        self._next += 1
        for number in range(self._next, self._next + 10):
            replica = self.replicas[number % len(self.replicas)]
            kills = replica.kills
            try:
                async with self.session.post(replica.url, data=body) as response:
                    raw = await response.read()
            except aiohttp.ClientConnectorError:
                continue
            except aiohttp.ClientError as error:
                if replica.kills == kills and replica.up:
                    self.failures.append(type(error).__name__)
                self.broken_off += 1
                continue
            if response.status != 200:
                self.failures.append(f"{response.status} {raw[:300]!r}")
                return ""
            return str(orjson.loads(raw)["choices"][0]["message"]["content"])
        self.failures.append("nobody answered")
        return ""

    async def advance(self) -> None:
        async with self._advanced:
            self.turns_done += 1
            self._advanced.notify_all()

    async def reached(self, share: float) -> None:
        """Wait until so much of the run is over."""
        async with self._advanced:
            await self._advanced.wait_for(lambda: self.turns_done >= share * CONVERSATIONS * TURNS)

    @asynccontextmanager
    async def disturbed(self) -> AsyncIterator[None]:
        started = time.monotonic()
        yield
        self.disturbances.append((started, time.monotonic() + SETTLED_S))

    def calm(self, moment: float) -> bool:
        return not any(start - 0.5 <= moment <= end for start, end in self.disturbances)


async def converse(run: Run, number: int, slots: asyncio.Semaphore) -> list[dict[str, Any]]:
    """One client: it keeps its whole history and sends it with every question."""
    history = [system(f"You are helpful to client {number}.")]
    for turn in range(TURNS):
        history.append(
            user(f"Client {number} asks {turn}: {words(70, number * 100 + turn)}? Order R-{number:03}-{turn}.")
        )
        async with slots:
            answer = await run.ask(orjson.dumps({"model": "gpt-4o", "messages": history, "max_tokens": 100}))
        history.append({"role": "assistant", "content": answer})
        await run.advance()
    return history


def answered(times: dict[int, float]) -> Any:
    """The upstream: a chat model that answers its question, and a summariser that writes a summary."""

    def reply(seen: Seen) -> Completion:
        times[id(seen)] = time.monotonic()
        asked = str(seen.messages[-1]["content"])
        if seen.json["model"] == "summariser":
            client = asked.partition("Client ")[2].partition(" ")[0]
            return Completion(
                f"Goal: client {client} asks about orders.\nFacts: all orders were answered so far, client {client} waits."
            )
        return Completion(f"Answer to {asked.rpartition('Order ')[2]}: {words(30, len(asked))}.")

    return reply


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path)
    server.start()
    yield server
    server.stop()


async def kill_and_restart(run: Run) -> None:
    await run.reached(1 / 3)
    async with run.disturbed():
        await run.replicas[0].kill()
        await run.reached(0.4)
        await run.replicas[0].start()


async def restart_redis(run: Run, server: RedisServer) -> None:
    await run.reached(2 / 3)
    async with run.disturbed():
        await asyncio.to_thread(server.stop)
        await asyncio.to_thread(server.start)


async def test_a_killed_replica_and_a_restarted_redis_cost_no_request_and_no_prefix(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    times: dict[int, float] = {}
    async with AsyncExitStack() as stack:
        standin = await stack.enter_async_context(
            StandIn(window={"gpt-4o": WINDOW, "summariser": 16_000}, otherwise=answered(times))
        )
        config = {
            "store": {"url": redis_server.url, "timeout": "2s"},
            "log": {"level": "warning"},
            "upstreams": {"standin": {"provider": "openai", "base_url": standin.base_url}},
            "default_upstream": "standin",
            "models": {"gpt-4o": {"context_window": WINDOW}, "summariser": {"context_window": 16_000}},
            "fold": {"summary": {"model": "summariser", "at": 0.7}},
        }  # fmt: skip
        replicas = [Replica(tmp_path, config), Replica(tmp_path, config)]
        for replica in replicas:
            stack.push_async_callback(replica.stop)
            await replica.start()
        headers = {"Content-Type": "application/json", "Authorization": "Bearer sk-client"}
        session = await stack.enter_async_context(
            aiohttp.ClientSession(headers=headers, timeout=aiohttp.ClientTimeout(total=60))
        )
        run = Run(standin, replicas, session)
        slots = asyncio.Semaphore(AT_ONCE)
        *histories, _, _ = await asyncio.gather(
            *(converse(run, number, slots) for number in range(CONVERSATIONS)),
            kill_and_restart(run),
            restart_redis(run, redis_server),
        )
        chats = [seen for seen in standin.chats if seen.json["model"] == "gpt-4o"]
        summaries = [seen for seen in standin.chats if seen.json["model"] == "summariser"]
        lasts = [
            orjson.dumps({"model": "gpt-4o", "messages": history[:-1], "max_tokens": 100}) for history in histories
        ]
        # Once for what is still being summarised, and once more to see.
        for _ in range(2):
            before = len(standin.requests)
            for last in lasts[::10]:
                for _ in replicas:
                    await run.ask(last)
        again = [seen.body for seen in standin.requests[before:] if seen.json["model"] == "gpt-4o"]

    assert Counter(run.failures) == {}
    assert run.broken_off <= AT_ONCE, "only what the killed replica was serving"
    assert [one == other for one, other in zip(again[::2], again[1::2], strict=True)] == [True] * (CONVERSATIONS // 10)
    assert all(not seen.violations for seen in standin.chats)
    _check_summaries(run, summaries, times)
    _check_prefixes(run, chats, times)
    assert sum(frames.SUMMARY in seen.messages[1]["content"] for seen in chats) > CONVERSATIONS, "summaries are used"


def _check_summaries(run: Run, summaries: list[Seen], times: dict[int, float]) -> None:
    """Nobody was asked for the same summary twice, but where the first answer was lost with a process or the store."""
    assert len(summaries) > CONVERSATIONS / 2
    asked = Counter(seen.body for seen in summaries if run.calm(times[id(seen)]))
    assert {times for times in asked.values()} <= {1}


def _check_prefixes(run: Run, chats: list[Seen], times: dict[int, float]) -> None:
    """Whichever replica forwards a conversation, its fold goes from one form to the next and never back."""
    forms: dict[str, list[bytes]] = defaultdict(list)
    for seen in sorted(chats, key=lambda seen: times[id(seen)]):
        name, opening = (seen.messages[place]["content"] for place in (0, 1))
        if run.calm(times[id(seen)]):
            forms[name].append(orjson.dumps(opening.partition(frames.QUOTES)[0]))
    assert len(forms) == CONVERSATIONS
    changes = 0
    for name, seen_forms in forms.items():
        runs = [form for form, following in pairwise([*seen_forms, b""]) if form != following]
        assert len(runs) == len(set(runs)), f"{name} went back to an earlier form"
        changes += len(runs) - 1
    assert changes <= 5 * CONVERSATIONS
