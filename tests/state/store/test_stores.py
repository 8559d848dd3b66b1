"""What every store promises, whichever it is."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from gateway.state.store import Store, open_store

HOUR_S = 3600.0


async def until(true: Callable[[], Awaitable[bool]]) -> None:
    """Ask again until the answer is yes."""
    async with asyncio.timeout(5):
        while not await true():  # noqa: ASYNC110 - a server's clock sets no event
            await asyncio.sleep(0)


async def test_what_was_put_is_there(store: Store) -> None:
    await store.put("summary", "a", b"\x00\xff words", ttl_s=HOUR_S)
    assert await store.get("summary", "a") == b"\x00\xff words"


async def test_what_was_never_put_is_not_there(store: Store) -> None:
    assert await store.get("summary", "nobody") is None


async def test_the_last_value_wins(store: Store) -> None:
    await store.put("ratio", "a", b"1", ttl_s=HOUR_S)
    await store.put("ratio", "a", b"2", ttl_s=HOUR_S)
    assert await store.get("ratio", "a") == b"2"


async def test_values_of_two_kinds_under_one_name_are_separate(store: Store) -> None:
    await store.put("window", "gpt", b"w", ttl_s=HOUR_S)
    assert await store.get("ratio", "gpt") is None


async def test_many_are_read_in_one_go_and_the_missing_left_out(store: Store) -> None:
    keys = [f"k{number}" for number in range(1200)]
    for key in keys[::400]:
        await store.put("summary", key, key.encode(), ttl_s=HOUR_S)
    assert await store.get_many("summary", keys) == {"k0": b"k0", "k400": b"k400", "k800": b"k800"}
    assert await store.get_many("summary", []) == {}


async def test_values_expire(store: Store) -> None:
    await store.put("usage", "a", b"1", ttl_s=0.005)

    async def gone() -> bool:
        return await store.get("usage", "a") is None and await store.get_many("usage", ["a"]) == {}

    await until(gone)


async def test_a_job_goes_to_exactly_one_of_many_who_claim_it(store: Store) -> None:
    claims = await asyncio.gather(*(store.claim("cut", ttl_s=HOUR_S) for _ in range(12)))
    assert sorted(claims) == [False] * 11 + [True]


async def test_a_released_job_can_be_claimed_again(store: Store) -> None:
    assert await store.claim("cut", ttl_s=HOUR_S)
    await store.release("cut")
    assert await store.claim("cut", ttl_s=HOUR_S)


async def test_a_job_that_nobody_finished_can_be_claimed_after_its_time(store: Store) -> None:
    assert await store.claim("cut", ttl_s=0.005)
    await until(lambda: store.claim("cut", ttl_s=HOUR_S))


async def test_a_count_is_added_to_by_many_and_starts_at_nothing(store: Store) -> None:
    assert await store.add("requests.a", 0, ttl_s=HOUR_S) == 0
    sums = await asyncio.gather(*(store.add("requests.a", 2, ttl_s=HOUR_S) for _ in range(20)))
    assert sorted(sums) == list(range(2, 42, 2))
    assert await store.add("requests.b", 5, ttl_s=HOUR_S) == 5
    assert await store.get("count", "requests.a") is None or "redis" in type(store).__name__.lower()


async def test_a_count_ends_with_its_time_however_often_it_is_added_to(store: Store) -> None:
    await store.add("requests.a", 5, ttl_s=0.05)

    async def anew() -> bool:
        return await store.add("requests.a", 1, ttl_s=HOUR_S) == 1

    await until(anew)


async def test_forgetting_a_scope_leaves_the_others(store: Store) -> None:
    for scope in ("alice.openai", "alice.local", "alicia.openai", "bob.openai", ""):
        await store.put("summary", f"of {scope}", b"words", ttl_s=HOUR_S, scope=scope)
    assert await store.forget("alice.openai") == 1
    assert await store.get("summary", "of alice.openai") is None
    assert await store.get("summary", "of alice.local") == b"words"
    assert await store.forget("alice") == 1, "a key hash stands for all its scopes, and for nobody else's"
    assert await store.get("summary", "of alice.local") is None
    for scope in ("alicia.openai", "bob.openai", ""):
        assert await store.get("summary", f"of {scope}") == b"words"
    assert await store.forget("nobody") == 0


async def test_forgetting_everything_leaves_nothing(store: Store) -> None:
    await store.put("summary", "a", b"words", ttl_s=HOUR_S, scope="alice.openai")
    await store.put("window", "b", b"8192", ttl_s=HOUR_S)
    assert await store.claim("job", ttl_s=HOUR_S)
    assert await store.add("count", 7, ttl_s=HOUR_S) == 7
    assert await store.forget(None) == 2, "claims and counts go as well, but they are no values"
    assert await store.get("summary", "a") is None
    assert await store.get("window", "b") is None
    assert await store.claim("job", ttl_s=HOUR_S)
    assert await store.add("count", 1, ttl_s=HOUR_S) == 1


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("postgres://db/turnfold", "'postgres' is not one of memory://, sqlite:///path, redis://host:port/db"),
        ("turnfold.db", "is not one of"),
        ("sqlite://turnfold.db", "names no file"),
        ("sqlite:///", "names no file"),
        ("sqlite:///:memory:", "memory:// for none"),
    ],
)
def test_a_url_that_cannot_be_a_store_is_refused_in_words(url: str, says: str) -> None:
    with pytest.raises(ValueError, match=says.replace("(", r"\(")):
        open_store(url)


def test_a_refusal_does_not_repeat_the_password() -> None:
    with pytest.raises(ValueError) as refusal:
        open_store("postgres://user:hunter2@db/turnfold")
    assert "hunter2" not in str(refusal.value)
