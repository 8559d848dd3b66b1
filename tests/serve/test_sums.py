"""`/api/sums`: the sums of all records, also of those that no answer could list, with bounded work."""

from contextlib import asynccontextmanager

import pytest

from gateway.observe.exchange import Exchange
from gateway.serve import sums
from gateway.serve.sums import Summing, pages
from gateway.state.records.base import Query
from tests import running
from tests.observe.test_sums import BASE

START = 1.7e9


def record(number, **known):
    return Exchange.passed(
        f"tf-{number}", "fits", 200, at=START + number, model="m", upstream="u", mode="enforce", tokens_before=10, tokens_after=10,
        prompt_tokens=10, key=f"team-{number % 2}", **known,
    )  # fmt: skip


@pytest.fixture(params=["memory", "sqlite", "redis"])
def store(request, tmp_path):
    """The address of a store."""
    if request.param == "redis":
        return request.getfixturevalue("redis_url")
    return {"memory": "memory://", "sqlite": f"sqlite:///{tmp_path}/turnfold.db"}[request.param]


@asynccontextmanager
async def recorded(store, count):
    """A gateway that has recorded so many requests."""
    observe = {"keep": "36500d", "max_records": 100_000}
    config = running.configured("http://127.0.0.1:9/v1", {"store": {"url": store}, "observe": observe})
    async with running.in_process(config) as gateway:
        for number in range(count):
            gateway.inside.gateway.records.observe(record(number))
        await gateway.inside.gateway.records.flush()
        yield gateway


async def asked(gateway, query=""):
    async with gateway.session.get(f"{gateway.admin_url}/api/sums{query}") as response:
        return response.status, await response.json()


async def test_all_records_are_summed_page_by_page(store, monkeypatch):
    monkeypatch.setattr(sums, "PAGE", 300)
    kept = 1000 if store == "memory://" else 1700
    async with recorded(store, 1700) as gateway:
        _, found = await asked(gateway)
        assert (found["requests"], found["complete"]) == (kept, True)
        assert sum(found["over_time"]["all"]) == kept
        assert found["names"]["key"] == ["team-0", "team-1"]
        _, one = await asked(gateway, "?key=team-1")
        assert one["requests"] == kept // 2
        _, some = await asked(gateway, f"?since={START + 1600}&until={START + 1650}")
        assert some["requests"] == 50


async def test_a_sum_has_a_bound_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(sums, "PAGE", 100)
    monkeypatch.setattr(sums, "MOST_SUMMED", 300)
    async with recorded(f"sqlite:///{tmp_path}/turnfold.db", 1000) as gateway:
        _, found = await asked(gateway)
        assert (found["requests"], found["complete"]) == (300, False)
        assert found["oldest"] == START + 700, "the newest are summed"


async def test_an_unknown_filter_is_an_error():
    async with recorded("memory://", 1) as gateway:
        status, found = await asked(gateway, "?colour=red")
        assert (status, found["error"]["code"]) == (400, "invalid_query")


async def test_what_was_forgotten_is_in_no_sum():
    async with recorded("memory://", 5) as gateway:
        assert (await asked(gateway))[1]["requests"] == 5
        async with gateway.session.post(f"{gateway.admin_url}/api/forget", json={"everything": True}) as response:
            assert response.status == 200
        assert (await asked(gateway))[1]["requests"] == 0


async def test_what_took_long_to_count_stands_twenty_times_as_long():
    now = [0.0]
    summing = Summing(lambda: now[0])
    read = []

    async def found():
        read.append(now[0])
        now[0] += 3.0  # reading takes this long
        yield [BASE]

    async def ask():
        return await summing.sums("all", Query(), found(), sums.Sums())

    assert (await ask())["took_s"] == 3.0
    now[0] = 3.0 + 20 * 3.0 - 1
    await ask()
    assert read == [0.0]
    now[0] += 2.0
    await ask()
    assert len(read) == 2


async def test_pages_follow_each_other_without_a_gap(monkeypatch):
    monkeypatch.setattr(sums, "PAGE", 2)
    records = [{**BASE, "request_id": f"tf-{number}", "at": float(number)} for number in range(1, 6)]

    async def find(query):
        return query.of(records)

    found = [one["request_id"] async for page in pages(find, find, Query(key="none has it")) for one in page]
    assert found == ["tf-5", "tf-4", "tf-3", "tf-2", "tf-1"]
