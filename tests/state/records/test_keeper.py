"""Records are kept, found, bounded and forgotten alike in SQLite and Redis, and a failing store costs no request."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway.observe.exchange import Exchange
from gateway.state.records.base import Bounds, Query, StoredRecord
from gateway.state.records.keeper import Records, parse_record
from gateway.state.records.opening import open_log
from gateway.state.store import sealing_of
from gateway.state.tasks import Tasks

KEY = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
"""32 bytes in base64; any will do."""


WEEK = Bounds()


@pytest.fixture(params=["sqlite", "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/t.db" if request.param == "sqlite" else request.getfixturevalue("redis_server").url


@asynccontextmanager
async def keeping(url: str, bounds: Bounds = WEEK, encryption_key: str = ""):
    """A keeper with an empty log."""
    tasks = Tasks()
    records = Records(open_log(url, bounds), tasks, sealing=sealing_of(encryption_key))
    await records.forget(None)
    try:
        yield records
    finally:
        await tasks.close()
        await records.close()


def exchange(number: int, *, at: float | None = None, **known: object) -> Exchange:
    moment = time.time() - 100 + number if at is None else at
    return Exchange.passed(f"tf-{number}", "not_chat", 200, at=moment, **known)


async def stored(records: Records, *exchanges: Exchange) -> None:
    """Write records, and leave them in the store alone."""
    for one in exchanges:
        records.observe(one)
    await records.flush()
    records.forget_in_memory(None)


async def names(records: Records, **filters: object) -> list[str]:
    return [one["request_id"] for one in await records.find(Query(**filters))]


async def test_records_are_found_newest_first_by_each_filter(url):
    async with keeping(url) as records:
        await stored(
            records,
            exchange(1, key="a", model="m", session="s", conversation="c"),
            exchange(2, key="a", model="n", session="s", conversation="c"),
            exchange(3, key="b", model="m", session="t", conversation="d"),
        )
        moment = (await records.get("tf-2"))["at"]
        assert await names(records) == ["tf-3", "tf-2", "tf-1"]
        assert await names(records, key="a") == ["tf-2", "tf-1"]
        assert await names(records, model="m") == ["tf-3", "tf-1"]
        assert await names(records, session="s", model="m") == ["tf-1"]
        assert await names(records, conversation="c") == ["tf-2", "tf-1"]
        assert await names(records, since=moment) == ["tf-3", "tf-2"]
        assert await names(records, until=moment) == ["tf-1"]
        assert await names(records, limit=1) == ["tf-3"]
        assert await names(records, key="a", until=moment, limit=1) == ["tf-1"]
        assert await records.get("tf-9") is None


async def test_many_pages_are_read_in_order(url):
    async with keeping(url) as records:
        await stored(
            records,
            *(
                exchange(number, at=time.time() - 5000 + number, model="m" if number % 3 else "n")
                for number in range(1200)
            ),
        )
        found = await names(records, model="n", limit=1000)
        assert found == [f"tf-{number}" for number in range(1199, -1, -1) if number % 3 == 0]


async def test_old_and_surplus_records_go(url):
    async with keeping(url, Bounds(keep_s=1000, most=3)) as records:
        await stored(records, exchange(0, at=time.time() - 2000), *(exchange(number) for number in range(1, 6)))
        for number in range(6, 40):
            await stored(records, exchange(number, at=time.time()))
        found = await names(records, limit=100)
        assert "tf-0" not in found
        assert "tf-39" in found
        assert len(found) <= 3 + 32, "upkeep runs once in 32 batches"


async def test_bytes_are_bounded(tmp_path):
    async with keeping(f"sqlite:///{tmp_path}/t.db", Bounds(max_bytes=2**20)) as records:
        for batch in range(120):
            await stored(records, *(exchange(batch * 100 + number, path="/v1/" + "x" * 200) for number in range(30)))
        assert await names(records, limit=1) != []
        assert (tmp_path / "t-records.db").stat().st_size <= 2**20


async def test_a_caller_is_forgotten_with_its_texts(url):
    async with keeping(url) as records:
        await stored(records, exchange(1, caller="one"), exchange(2, caller="two"))
        await records.put_text("tf-1", ["said"])
        await records.put_text("tf-2", ["kept"])
        records.forget_in_memory(None)
        assert await records.text("tf-1") == ["said"]
        assert await records.forget("one") == 1
        assert await names(records) == ["tf-2"]
        assert await records.text("tf-1") is None
        assert await records.text("tf-2") == ["kept"]


async def test_with_a_key_the_values_are_encrypted(tmp_path):
    url = f"sqlite:///{tmp_path}/t.db"
    async with keeping(url, encryption_key=KEY) as records:
        await stored(records, exchange(1, path="/v1/conspicuous"))
        await records.put_text("tf-1", ["conspicuous"])
        assert (await records.get("tf-1"))["path"] == "/v1/conspicuous"
    written = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"conspicuous" not in written


async def test_several_processes_write_the_same_store(url):
    async with keeping(url) as one, keeping(url) as two:
        for start in range(0, 200, 20):
            for number in range(start, start + 10):
                one.observe(exchange(number))
                two.observe(exchange(number + 10))
            await asyncio.gather(one.flush(), two.flush())
        await one.flush()
        await two.flush()
        one.forget_in_memory(None)
        assert len(await names(one, limit=1000)) == 200


class Broken:
    """A log that fails until it is repaired."""

    def __init__(self) -> None:
        self.bounds, self.rows, self.works = Bounds(), list[StoredRecord](), False

    async def append(self, rows: Sequence[StoredRecord]) -> None:
        if not self.works:
            raise OSError("the disk is gone")
        self.rows += rows

    async def find(self, _: Query) -> list[tuple[str, bytes]]:
        raise OSError("the disk is gone")

    async def close(self) -> None: ...


async def test_what_cannot_be_written_waits_and_is_still_found_in_memory():
    failures, tasks, log = [], Tasks(), Broken()
    records = Records(log, tasks, failed=lambda part, error: failures.append(part))
    records.observe(exchange(1))
    await records.flush()
    assert await names(records) == ["tf-1"]
    assert records.waiting == 1
    log.works = True
    await records.flush()
    await tasks.close()
    await records.close()
    assert [row.id for row in log.rows] == ["tf-1"]
    assert failures == ["records write", "records read"]


async def test_records_that_wait_for_a_store_that_is_left_alone_are_written_at_the_end():
    """Such as those of half a minute in which the disk was full."""
    tasks, log = Tasks(), Broken()
    records = Records(log, tasks)
    records.observe(exchange(1))
    for _ in range(5):
        await records.flush()
    assert records.resting
    log.works = True
    await tasks.close()
    await records.close()
    assert [row.id for row in log.rows] == ["tf-1"]


async def test_a_record_that_no_row_can_hold_is_counted_and_the_others_are_written():
    failures, tasks, log = [], Tasks(), Broken()
    log.works = True
    records = Records(log, tasks, failed=lambda part, error: failures.append(part))
    for one in (exchange(1), exchange(2, entry=object()), exchange(3)):
        records.observe(one)
    await records.flush()
    await tasks.close()
    await records.close()
    assert [row.id for row in log.rows] == ["tf-1", "tf-3"]
    assert failures == ["records write"]


class Slow(Broken):
    """A log whose writes take a while."""

    async def append(self, rows: Sequence[StoredRecord]) -> None:
        await asyncio.sleep(0.05)
        self.rows += rows

    async def forget(self, caller: str | None) -> int:
        forgotten, self.rows = len(self.rows), []
        return forgotten


async def test_closing_loses_no_record_whose_write_has_begun(monkeypatch):
    monkeypatch.setattr("gateway.state.records.keeper.EVERY_S", 0.0)
    tasks, log = Tasks(), Slow()
    records = Records(log, tasks)
    records.observe(exchange(1))
    await asyncio.sleep(0.02)  # the timer has fired and the row is on its way
    assert records.waiting == 0
    await tasks.close()
    await records.close()
    assert [row.id for row in log.rows] == ["tf-1"]


async def slow_write() -> tuple[Slow, Records, asyncio.Task[None]]:
    """Records of which one is being written."""
    log = Slow()
    tasks = Tasks()
    records = Records(log, tasks)
    records.observe(exchange(1))
    writing = tasks.start(records.flush(), "records")
    assert writing is not None
    await asyncio.sleep(0.02)
    return log, records, writing


async def test_a_write_that_is_cancelled_is_done_again():
    log, records, writing = await slow_write()
    writing.cancel()
    await asyncio.wait([writing])
    assert records.waiting == 1
    await records.close()
    assert [row.id for row in log.rows] == ["tf-1"]


async def test_what_is_being_written_is_forgotten_too():
    log, records, writing = await slow_write()
    assert await records.forget(None) == 1
    await writing
    assert (log.rows, records.waiting) == ([], 0)


async def test_of_too_many_records_the_newest_wait_and_the_others_are_counted(monkeypatch):
    monkeypatch.setattr("gateway.state.records.keeper.MOST_WAITING", 3)
    dropped = list[int]()
    tasks = Tasks()
    records = Records(Broken(), tasks, dropped=dropped.append)
    for number in range(3):
        records.observe(exchange(number))
    writing = tasks.start(records.flush(), "records")
    assert writing is not None
    await asyncio.sleep(0)
    records.observe(exchange(3))
    await writing
    assert (records.waiting, dropped) == (3, [1])


@pytest.mark.parametrize(
    "value", [b"", b"[]", b"\xff", b"{}", b'{"at":true,"request_id":"a"}', b'{"at":1.0,"request_id":[]}']
)
def test_a_stored_value_that_cannot_be_ours_is_no_record(value: bytes) -> None:
    assert parse_record(value) is None


def test_a_stored_record_of_another_version_is_shown_with_what_it_has() -> None:
    record = parse_record(b'{"at":1.0,"request_id":"a"}')
    assert record is not None
    assert Query(model="m").of([record]) == []
    assert Query().of([record]) == [record]
