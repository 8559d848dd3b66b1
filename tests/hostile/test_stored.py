"""What another hand writes into the shared store harms nobody, and what is forgotten is forgotten by all replicas at once."""

import asyncio
import sqlite3
from pathlib import Path

import orjson
import pytest

from gateway.standin import StandIn
from gateway.state import forgetting
from gateway.state.store import open_store
from tests.fakes import chat, system
from tests.hostile.test_learned import HONEST, HONEST_KEY, JSON, WINDOW, as_a_fresh_process_does, config, learned

KINDS = ("window", "ratio", "guess", "usage")
VALUES = [
    b"", b"null", b"[]", b"{}", b"\xff\xfe", b"[" * 2000, b'{"v":3}', b'{"v":3,"ratio":0}', b'{"v":3,"ratio":-1}', b'{"v":3,"billed":true}',
    b'{"v":3,"ratio":1e300,"reports":[],"confirmed":true,"since":0,"until":9e10}',
    b'{"v":3,"stated":[{"tokens":-5}],"largest":0,"largest_since":0,"largest_until":0,"smaller_until":0}',
    b'{"v":3,"stated":[{"tokens":2048,"counted":9,"sign":"s","conversation":"c","refusals":9,"since":1,"until":9e10}],'
    b'"largest":0,"largest_since":0,"largest_until":0,"smaller_until":9e10}',
    b'{"v":3,"stated":true,"largest":true,"largest_since":0,"largest_until":0,"smaller_until":0}',
    b'{"v":3,"upstream":"standin","model":"m","caller":"","tokens":1,"kind":"stated","sign":"s","counted":1,"since":0,"until":9e10}',
]  # fmt: skip
"""Of them only the stated window of 2,048 looks like ours, and it lacks a part."""


async def test_values_of_another_hand_are_ignored(gateway, shared_store_url: str) -> None:
    """Each under the very names that the gateway reads, and sealed as ours are."""
    async with StandIn(window=8192) as standin:
        teacher = await gateway(standin, config(store={"url": shared_store_url}))
        for name in "ab":
            await teacher.chat({"model": "m", "messages": [system(f"I am {name}."), *chat(60, 250)]}, HONEST_KEY)
        await teacher.settled()
        store = open_store(shared_store_url)
        names = {kind: await store.names(kind, 100) for kind in KINDS}
        assert all(names[kind] for kind in ("window", "guess"))
        standin._window = WINDOW
        for value in VALUES:
            for kind, keys in names.items():
                for key in keys:
                    await store.put(kind, key, value, ttl_s=600)
            await as_a_fresh_process_does(await gateway(standin, config(store={"url": shared_store_url})), standin)
        await store.close()


async def test_a_file_filled_with_noise_harms_nobody(gateway, tmp_path: Path) -> None:
    """Every value of the store's tables replaced, by a program that can open the file."""
    url = f"sqlite:///{tmp_path}/facts.db"
    async with StandIn(window=8192) as standin:
        teacher = await gateway(standin, config(store={"url": url}))
        for name in "ab":
            await teacher.chat({"model": "m", "messages": [system(f"I am {name}."), *chat(60, 250)]}, HONEST_KEY)
        await teacher.settled()
        standin._window = WINDOW
        with sqlite3.connect(tmp_path / "facts.db") as file:
            tables = [name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            for table in tables:
                columns = [row[1] for row in file.execute(f"PRAGMA table_info({table})") if row[2] == "BLOB"]
                for column in columns:
                    file.execute(f"UPDATE {table} SET {column} = randomblob(40)")
        file.close()
        await as_a_fresh_process_does(await gateway(standin, config(store={"url": url})), standin)


@pytest.mark.parametrize(
    "said",
    [
        b'{"v":%d,"at":9e10,"memories":0,"models":{},"callers":{}}',
        b'{"v":%d,"at":0,"memories":9e10,"models":{},"callers":{}}',
        b'{"v":%d,"at":0,"memories":0,"models":{"standin\\nm":9e10},"callers":{"*":9e10}}',
    ],
)
async def test_an_order_to_forget_what_lies_ahead_is_not_believed(gateway, tmp_path: Path, said: bytes) -> None:
    """By it, nothing would be learned until that day."""
    url = f"sqlite:///{tmp_path}/facts.db"
    store = open_store(url)
    await store.put("forgotten", forgetting.KEY, said % forgetting.VERSION, ttl_s=600)
    await store.close()
    async with StandIn(window=8192) as standin:
        replica = await gateway(standin, config(store={"url": url}))
        for name in "ab":
            await replica.chat({"model": "m", "messages": [system(f"I am {name}."), *chat(60, 250)]}, HONEST_KEY)
        await replica.settled()
        assert (await replica.chat(HONEST, HONEST_KEY)).headers["x-turnfold-window"] == "8192"
        assert await learned(replica)
        # What is learned in one process stands in its memory; another one must believe the store, and needs no refusal.
        second = await gateway(standin, config(store={"url": url}))
        assert (await second.chat(HONEST, HONEST_KEY)).headers["x-turnfold-attempts"] == "1"


async def test_what_one_replica_forgets_all_forget(gateway, shared_store_url: str) -> None:
    async with StandIn(window=8192) as standin:
        replicas = [await gateway(standin, config(store={"url": shared_store_url})) for _ in range(3)]
        for name in "ab":
            asked = {"model": "m", "messages": [system(f"I am {name}."), *chat(60, 250)]}
            await replicas[0].chat(asked, HONEST_KEY)
        await replicas[0].settled()
        for replica in replicas:
            assert (await replica.chat(HONEST, HONEST_KEY)).headers["x-turnfold-window"] == "8192"
        order = orjson.dumps({"learned": True})
        url = f"{replicas[1].admin_url}/api/forget"
        async with replicas[1].session.post(url, data=order, headers=JSON) as response:
            assert response.status == 200
        standin._window = WINDOW
        async with asyncio.timeout(10):
            for replica in replicas:
                while await learned(replica):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)  # another process has no event to wait for
        for replica in replicas:
            await as_a_fresh_process_does(replica, standin)
