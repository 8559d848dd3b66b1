"""What can happen to a Redis server, and what it costs: a value, never a request."""

import asyncio
import re
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis.exceptions import ReadOnlyError

from gateway.state.records.base import Bounds, Query, StoredRecord
from gateway.state.records.opening import open_log
from gateway.state.store import open_store
from gateway.state.store.redis import PER_BATCH, PREFIX, RedisStore
from tests.redis_server import RedisServer, free_port, running_redis
from tests.state.store.conftest import PATIENCE_S

HOUR_S = 3600.0


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[RedisServer]:
    with running_redis(tmp_path) as server:
        yield server


@pytest.fixture
async def raw(own_server: RedisServer) -> AsyncIterator[Redis]:
    client = Redis.from_url(own_server.url)
    yield client
    await client.aclose()


async def test_values_are_there_at_once_after_the_server_restarted(own_server: RedisServer) -> None:
    store = open_store(own_server.url, timeout_s=PATIENCE_S)
    await store.put("summary", "a", b"words", ttl_s=HOUR_S)
    own_server.stop()
    own_server.start()
    assert await store.get("summary", "a") == b"words"
    await store.close()


async def test_a_server_that_is_gone_costs_values_only(own_server: RedisServer) -> None:
    store = open_store(own_server.url, timeout_s=PATIENCE_S)
    await store.put("summary", "a", b"words", ttl_s=HOUR_S)
    own_server.stop()
    for _ in range(50):
        assert await store.get("summary", "a") is None
        await store.put("summary", "a", b"words", ttl_s=HOUR_S)
    assert await store.claim("cut", ttl_s=HOUR_S) is False
    await store.close()


async def test_nobody_waits_for_a_server_that_never_answers() -> None:
    failures: list[tuple[str, str]] = []
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
        store = open_store(url, failed=lambda operation, reason: failures.append((operation, reason)))
        assert await asyncio.gather(*(store.get("summary", "a") for _ in range(100))) == [None] * 100
        waited = len(failures)
        assert [await store.get("summary", "a") for _ in range(1000)] == [None] * 1000
        await store.close()
    assert waited <= 100
    assert len(failures) - waited < 50, "the circuit is open, but for a trial now and then"


async def test_a_closed_port_costs_nothing_but_values() -> None:
    store = open_store(f"redis://127.0.0.1:{free_port()}/0")
    assert await store.get_many("summary", ["a", "b"]) == {}
    with pytest.raises(Exception, match="onnect"):
        await store.forget(None)
    await store.close()


@asynccontextmanager
async def address_of(*servers: RedisServer) -> AsyncIterator[tuple[int, Callable[[], None]]]:
    """An address that leads to the first server, and to the next one after each call of the function beside it. Open connections stay."""
    left = list(servers)

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(65536):
            writer.write(piece)
        writer.close()

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", left[0].port)
        await asyncio.gather(carry(reader, inner_writer), carry(inner_reader, writer))

    server = await asyncio.start_server(connect, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], lambda: left.__delitem__(0)
    finally:
        server.close()


async def test_after_a_failover_values_and_records_go_to_the_new_primary(
    own_server: RedisServer, raw: Redis, tmp_path: Path
) -> None:
    (tmp_path / "new").mkdir()
    new = RedisServer(tmp_path / "new")
    new.start()
    try:
        async with address_of(own_server, new) as (port, fail_over):
            url = f"redis://127.0.0.1:{port}/0"
            store, records = RedisStore(url), open_log(url, Bounds(HOUR_S, 10, 10_000))
            assert records is not None
            row = StoredRecord("id", time.time(), "", "model", "", "", "", b"{}")
            await store.put("summary", "a", b"words", ttl_s=HOUR_S)
            await records.append([row])

            await raw.replicaof("127.0.0.1", new.port)
            fail_over()
            writes = (
                lambda: store.put("summary", "a", b"words", ttl_s=HOUR_S),
                lambda: store.add("tokens", 1, ttl_s=HOUR_S),
                lambda: store.claim("job", ttl_s=HOUR_S),
                lambda: records.append([row]),
            )
            for write in writes:
                with suppress(ReadOnlyError):
                    await write()
                await write()
            assert await store.get("summary", "a") == b"words"
            assert await records.get("id") == b"{}"
            await store.close()
            await records.close()
    finally:
        new.stop()


async def test_foreign_values_are_ignored(own_server: RedisServer, raw: Redis) -> None:
    store = open_store(own_server.url, timeout_s=PATIENCE_S)
    await raw.set(f"{PREFIX}summary:a", b"somebody else's text")
    await raw.lpush(f"{PREFIX}summary:b", b"a list")
    assert await store.get("summary", "a") is None
    assert await store.get("summary", "b") is None
    assert await store.get_many("summary", ["a", "b"]) == {}
    await store.close()


async def test_keys_of_another_type_do_not_stop_the_store(own_server: RedisServer, raw: Redis) -> None:
    store = open_store(own_server.url, timeout_s=PATIENCE_S)
    await store.put("summary", "a", b"words", ttl_s=HOUR_S)
    await raw.lpush(f"{PREFIX}summary:b", b"a list")
    for _ in range(5):
        assert await store.get("summary", "b") is None
    assert await store.get("summary", "a") == b"words"
    await store.close()


async def test_an_index_or_a_count_of_another_type_does_not_stop_the_writes_of_others(
    own_server: RedisServer, raw: Redis
) -> None:
    failed: list[tuple[str, str]] = []
    store = open_store(
        own_server.url, timeout_s=PATIENCE_S, failed=lambda operation, why: failed.append((operation, why))
    )
    log = open_log(own_server.url, Bounds())
    assert log is not None
    for name in ("scope:alice", "exchanges", "exchanges-caller:alice", "count:tokens"):
        await raw.set(f"{PREFIX}{name}", b"not ours")
    await raw.lpush(f"{PREFIX}count:requests", b"a list")
    for _ in range(4):
        await store.put("summary", "a", b"words", ttl_s=HOUR_S, scope="alice")
        await store.add("tokens", 5, ttl_s=HOUR_S)
        await store.add("requests", 1, ttl_s=HOUR_S)
    await log.append([StoredRecord("tf-1", time.time(), "", "m", "", "", "alice", b"a record")])

    assert not failed
    assert (await store.add("tokens", 0, ttl_s=HOUR_S), await store.add("requests", 0, ttl_s=HOUR_S)) == (20, 4)
    assert 0 < await raw.pttl(f"{PREFIX}count:tokens") <= HOUR_S * 1000
    assert await store.forget("alice") == 1
    assert await log.find(Query()) == [("tf-1", b"a record")]
    await log.close()
    await store.close()


async def test_names_of_records_that_are_no_text_do_not_stop_the_log(own_server: RedisServer, raw: Redis) -> None:
    log = open_log(own_server.url, Bounds(most=2))
    assert log is not None
    await raw.zadd(f"{PREFIX}exchanges", {b"\xff\xfe": time.time() - 5})
    await raw.lpush(f"{PREFIX}exchange:list", b"not ours")
    assert await log.find(Query()) == []
    for number in range(3):
        row = StoredRecord(f"tf-{number}", time.time() + number / 10, "", "m", "", "", "alice", b"a record")
        await log.append([row])

    assert [name for name, _ in await log.find(Query())] == ["tf-2", "tf-1"]
    assert await log.get("list") is None
    await log.close()


async def test_forgetting_deletes_an_index_that_has_another_type(own_server: RedisServer, raw: Redis) -> None:
    store, log = open_store(own_server.url, timeout_s=PATIENCE_S), open_log(own_server.url, Bounds())
    assert log is not None
    row = StoredRecord("tf-1", time.time(), "", "m", "", "", "alice", b"a record")
    for index in ("scope:alice", "exchanges", "exchanges-caller:alice"):
        await raw.set(f"{PREFIX}{index}", b"not ours")
    for caller in ("alice", None):
        await store.forget(caller)
        await log.forget(caller)
    await store.put("summary", "a", b"words", ttl_s=HOUR_S, scope="alice")
    await log.append([row])

    assert await store.get("summary", "a") == b"words"
    assert await log.find(Query()) == [("tf-1", b"a record")]
    await log.close()
    await store.close()


async def test_after_lower_bounds_a_large_surplus_goes_in_small_commands(own_server: RedisServer, raw: Redis) -> None:
    """Redis runs one command at a time, so a long one keeps all other clients waiting."""
    log = open_log(own_server.url, Bounds(most=10))
    assert log is not None
    for start in range(0, 20_000, 1000):
        await raw.zadd(f"{PREFIX}exchanges", {f"old-{start + n}": time.time() for n in range(1000)})
    await raw.config_set("slowlog-log-slower-than", 0)
    for number in range(3):
        await log.append([StoredRecord(f"tf-{number}", time.time() + 1, "", "m", "", "", "", b"a record")])
    shown = [entry["command"] for entry in await raw.slowlog_get(1000)]

    assert await raw.zcard(f"{PREFIX}exchanges") == 10
    assert len(await log.find(Query())) == 3
    # The server shows 32 arguments of a command, and the number of the others.
    assert max(int(number) for number in re.findall(rb"(\d+) more arguments", b" ".join(shown))) <= PER_BATCH
    await log.close()


async def test_a_full_server_drops_what_it_cannot_take(own_server: RedisServer, raw: Redis) -> None:
    store = open_store(own_server.url, timeout_s=PATIENCE_S)
    await raw.config_set("maxmemory", "1")
    await store.put("summary", "a", b"words", ttl_s=HOUR_S)
    assert await store.get("summary", "a") is None
    await raw.config_set("maxmemory", "0")
    await store.put("summary", "a", b"words", ttl_s=HOUR_S)
    assert await store.get("summary", "a") == b"words"
    await store.close()


async def test_everything_expires_by_itself(own_server: RedisServer, raw: Redis) -> None:
    store = open_store(own_server.url, timeout_s=PATIENCE_S)
    await store.put("summary", "a", b"words", ttl_s=HOUR_S, scope="alice.openai")
    await store.claim("cut", ttl_s=HOUR_S)
    names = await raw.keys("*")
    assert len(names) == 3
    assert all([await raw.ttl(name) > 0 for name in names])
    await store.close()


async def test_forgetting_everything_leaves_other_programs_keys(own_server: RedisServer, raw: Redis) -> None:
    store = open_store(own_server.url, timeout_s=PATIENCE_S)
    await raw.set("sessions:1", b"not ours")
    for number in range(1200):
        await store.put("summary", str(number), b"words", ttl_s=HOUR_S, scope="alice.openai")
    assert await store.forget("alice") == 1200
    await store.put("summary", "a", b"words", ttl_s=HOUR_S, scope="alice.openai")
    assert await store.forget(None) == 1
    assert await raw.keys("*") == [b"sessions:1"]
    await store.close()
