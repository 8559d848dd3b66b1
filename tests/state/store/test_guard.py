"""The guard makes any failure an empty answer, a short one at that."""

import asyncio
from collections.abc import Sequence

from gateway.state.store.guard import MAX_VALUE_BYTES, MOST_WAITING, GuardedStore
from gateway.state.store.memory import MemoryStore
from tests.fakes import Clock

HOUR_S = 3600.0


class Ill(MemoryStore):
    """A store as bad as the next of its ``days``: "well", "hangs" or "raises"; then well."""

    def __init__(self, days: Sequence[str]) -> None:
        super().__init__()
        self.days = list(days)
        self.asked = 0

    async def get(self, kind: str, key: str) -> bytes | None:
        self.asked += 1
        day = self.days.pop(0) if self.days else "well"
        if day == "hangs":
            await asyncio.Event().wait()
        if day == "raises":
            raise RuntimeError("user said: my secret")
        return await super().get(kind, key)


async def test_a_hanging_store_is_given_up_after_its_time() -> None:
    guard = GuardedStore(Ill(["hangs"]))
    async with asyncio.timeout(5):
        assert await guard.get("summary", "a") is None


async def test_after_three_failures_in_a_row_it_is_left_alone_for_longer_and_longer() -> None:
    clock, ill = Clock(), Ill(["raises"] * 5)
    heard: list[tuple[str, str]] = []
    guard = GuardedStore(ill, clock=clock, failed=lambda operation, reason: heard.append((operation, reason)))
    await guard.put("summary", "a", b"words", ttl_s=HOUR_S)

    async def asked_at(now: float) -> int:
        clock.now = now
        await guard.get("summary", "a")
        return ill.asked

    # One trial after 1 s, the next after 2 s more, then 4 s; the last one works.
    assert [await asked_at(now) for now in (0, 0, 0, 0.5, 1, 1.5, 2.9, 3, 6.9, 7, 7)] == [
        1,
        2,
        3,
        3,
        4,
        4,
        4,
        5,
        5,
        6,
        7,
    ]
    assert await guard.get("summary", "a") == b"words"
    assert heard == [("get", "RuntimeError")] * 5, "failures are named by kind, never quoted"


async def test_while_reads_fail_writes_go_on() -> None:
    ill = Ill(["raises"] * 3)
    guard = GuardedStore(ill)
    for _ in range(4):
        await guard.get("summary", "a")
    assert ill.asked == 3
    assert await guard.claim("cut", ttl_s=HOUR_S)


async def test_a_client_that_leaves_is_not_a_failure() -> None:
    heard: list[tuple[str, str]] = []
    guard = GuardedStore(Ill(["hangs"]), timeout_s=60, failed=lambda *failure: heard.append(failure))
    reading = asyncio.get_running_loop().create_task(guard.get("summary", "a"))
    await asyncio.sleep(0)
    reading.cancel()
    assert await asyncio.gather(reading, return_exceptions=True) != [None]
    assert heard == []


async def test_more_calls_than_a_store_can_serve_in_time_go_on_without() -> None:
    heard: list[tuple[str, str]] = []
    ill = Ill(["hangs"] * MOST_WAITING)
    guard = GuardedStore(ill, failed=lambda operation, reason: heard.append((operation, reason)))
    answers = await asyncio.gather(*(guard.get("summary", "a") for _ in range(2 * MOST_WAITING)))
    assert answers == [None] * (2 * MOST_WAITING)
    assert ill.asked == MOST_WAITING
    assert heard.count(("get", "busy")) == MOST_WAITING


async def test_a_value_too_large_to_be_ours_is_not_kept() -> None:
    guard = GuardedStore(MemoryStore())
    await guard.put("summary", "a", bytes(MAX_VALUE_BYTES + 1), ttl_s=HOUR_S)
    assert await guard.get("summary", "a") is None
