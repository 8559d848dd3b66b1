"""An id leads to the upstream that made it, for the caller who got it, in all processes that share a store."""

import pytest

from gateway.state import known_ids
from gateway.state.known_ids import KnownIds
from gateway.state.store.memory import MemoryStore
from gateway.state.tasks import Tasks
from tests.fakes import Clock

SCOPES = {"a": "one.a", "b": "one.b"}


async def test_another_process_finds_it_in_the_store() -> None:
    store, tasks = MemoryStore(), Tasks()
    here, there = KnownIds(store, tasks), KnownIds(store, tasks)
    here.add(["resp_1"], "one.b")
    await tasks.settled()
    assert await there.find(["resp_1"], SCOPES) == "b"


async def test_the_first_known_id_decides() -> None:
    ids = KnownIds(MemoryStore(), Tasks())
    ids.add(["resp_1"], "one.b")
    ids.add(["file_1"], "one.a")
    assert await ids.find(["resp_0", "resp_1", "file_1"], SCOPES) == "b"
    assert await ids.find(["file_1", "resp_1"], SCOPES) == "a"


async def test_nothing_is_found_for_another_caller() -> None:
    store, tasks = MemoryStore(), Tasks()
    ids = KnownIds(store, tasks)
    ids.add(["resp_1"], "one.b")
    await tasks.settled()
    assert await ids.find(["resp_1"], {"a": "two.a", "b": "two.b"}) == ""
    assert await ids.find(["resp_2"], SCOPES) == ""
    assert await ids.find([], SCOPES) == ""


async def test_the_store_has_no_id_and_no_upstream_in_it() -> None:
    store, tasks = MemoryStore(), Tasks()
    KnownIds(store, tasks).add(["resp_secret"], "one.b")
    await tasks.settled()
    assert "resp_secret" not in str(store._entries)


async def test_what_the_store_has_of_others_is_ignored() -> None:
    store = MemoryStore()
    ids = KnownIds(store, Tasks())
    for value in (b"", b"{}", b'{"v":2}', b"\xff"):
        await store.put("id", known_ids._name("one.b", "resp_1"), value, ttl_s=60)
        assert await ids.find(["resp_1"], SCOPES) == ""


async def test_an_id_in_use_is_written_once_a_day() -> None:
    store, tasks, clock = MemoryStore(clock=(now := Clock())), Tasks(), Clock()
    ids = KnownIds(store, tasks, clock)
    assert len(ids.add(["conv_1"], "one.b")) == 1
    assert ids.add(["conv_1"], "one.b") == []
    for _ in range(60):
        clock.now += known_ids.WRITTEN_AGAIN_S
        now.now += known_ids.WRITTEN_AGAIN_S
        assert await ids.find(["conv_1"], SCOPES) == "b"
        await tasks.settled()
    assert await KnownIds(store, tasks).find(["conv_1"], SCOPES) == "b"


async def test_one_process_keeps_a_bounded_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_ids, "MOST", 100)
    tasks = Tasks(10_000)
    ids = KnownIds(MemoryStore(), tasks)
    for number in range(1000):
        ids.add([f"resp_{number}"], "one.b")
    assert len(ids._newest) == 100
    await tasks.settled()
    assert await ids.find(["resp_0"], SCOPES) == "b"  # the store has it


async def test_too_much_to_write_is_remembered_here() -> None:
    ids = KnownIds(MemoryStore(), Tasks(0))
    assert ids.add(["resp_1"], "one.b") == []
    assert await ids.find(["resp_1"], SCOPES) == "b"
