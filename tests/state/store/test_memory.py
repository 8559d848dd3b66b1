"""The memory store is bounded."""

from gateway.state.store.memory import MemoryStore

HOUR_S = 3600.0


async def test_the_least_recently_used_go_first_when_memory_is_full() -> None:
    store = MemoryStore(max_bytes=10_000)
    for number in range(7):
        await store.put("summary", str(number), bytes(1000), ttl_s=HOUR_S)
    assert await store.get("summary", "0") is not None
    for number in range(7, 10):
        await store.put("summary", str(number), bytes(1000), ttl_s=HOUR_S)
    kept = await store.get_many("summary", [str(number) for number in range(10)])
    assert list(kept) == ["0", "4", "5", "6", "7", "8", "9"]


async def test_a_value_larger_than_everything_is_not_kept() -> None:
    store = MemoryStore(max_bytes=10_000)
    await store.put("summary", "a", bytes(10_001), ttl_s=HOUR_S)
    assert await store.get("summary", "a") is None
    await store.put("summary", "b", b"fits", ttl_s=HOUR_S)
    assert await store.get("summary", "b") == b"fits"


async def test_time_frees_values_and_jobs() -> None:
    now = [0.0]
    store = MemoryStore(clock=lambda: now[0])
    await store.put("summary", "a", b"words", ttl_s=10)
    assert await store.claim("cut", ttl_s=10)
    now[0] = 9.9
    assert await store.get("summary", "a") == b"words"
    assert not await store.claim("cut", ttl_s=10)
    now[0] = 10.0
    assert await store.get("summary", "a") is None
    assert await store.claim("cut", ttl_s=10)
