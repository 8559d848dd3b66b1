"""Garbage is searched for in quiet moments, and never for long in the middle of a large body."""

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Iterator

import pytest

from gateway.state.garbage import (
    AUTOMATIC_AFTER,
    ENOUGH_NEW_OBJECTS,
    ENOUGH_WORK,
    FEW_REQUESTS,
    FULL_AFTER_S,
    FULL_LATEST_S,
    GIVE_BACK_S,
    LATEST_S,
    YOUNG,
    Sweeper,
    trimmer,
)
from gateway.state.threads import INLINE, WorkThreads
from tests.hostile.wire import until


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    """Leave the collector of the test process as it was."""
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    assert gc.get_threshold() == before


@pytest.fixture
async def threads() -> AsyncIterator[WorkThreads]:
    made = WorkThreads()
    yield made
    await made.close()


class Node:
    """An object that can be part of a circle."""


def circles(count: int) -> None:
    """Make garbage that only a search finds."""
    for _ in range(count):
        node = Node()
        node.self = node  # type: ignore[attr-defined]


def alive() -> int:
    return sum(isinstance(found, Node) for found in gc.get_objects())


async def test_circles_are_found_once_there_are_enough_of_them(threads: WorkThreads) -> None:
    sweeper = Sweeper(threads)
    sweeper.start()
    now = asyncio.get_running_loop().time()
    circles(10)
    assert not sweeper.check(now), "not worth it yet"
    circles(ENOUGH_NEW_OBJECTS)
    assert alive() > ENOUGH_NEW_OBJECTS, "Python has not searched by itself"
    assert sweeper.check(now)
    assert alive() == 0
    sweeper.close()


@pytest.mark.parametrize(
    ("requests", "jobs", "new", "due_s"),
    [
        (ENOUGH_WORK - 2, 0, ENOUGH_NEW_OBJECTS, LATEST_S),
        (ENOUGH_WORK - 1, 0, ENOUGH_NEW_OBJECTS, 0),
        (0, ENOUGH_WORK - 1, ENOUGH_NEW_OBJECTS, 0),
        (ENOUGH_WORK // 2, ENOUGH_WORK // 2 - 1, ENOUGH_NEW_OBJECTS, 0),
        (ENOUGH_WORK, ENOUGH_WORK, AUTOMATIC_AFTER + ENOUGH_NEW_OBJECTS, LATEST_S),
    ],
    ids=["little work", "many requests", "many jobs", "both", "a large body"],
)
async def test_while_work_is_under_way_a_search_waits_less_where_much_small_work_was_done(
    threads: WorkThreads, requests: int, jobs: int, new: int, due_s: float
) -> None:
    begun = 0
    sweeper = Sweeper(threads, begun=lambda: begun)
    sweeper.start()
    begun = requests
    for _ in range(jobs):
        await threads.run(int, size_bytes=INLINE)  # any work
    gate = threading.Event()
    busy = asyncio.create_task(threads.run(gate.wait, size_bytes=INLINE))  # noqa: TID251  # awaited below
    await asyncio.sleep(0)
    now = asyncio.get_running_loop().time()
    circles(new)
    if due_s:
        assert not sweeper.check(now + due_s - 1)
    assert sweeper.check(now + due_s + 1)
    assert alive() == 0
    circles(ENOUGH_NEW_OBJECTS)
    assert not sweeper.check(now + due_s + 1), "no work since"
    gate.set()
    await busy
    sweeper.close()


async def test_while_many_requests_are_under_way_old_objects_are_left_alone_for_long(threads: WorkThreads) -> None:
    under_way = FEW_REQUESTS + 1
    sweeper = Sweeper(threads, lambda: under_way)
    sweeper.start()
    now = asyncio.get_running_loop().time()
    held = [Node() for _ in range(ENOUGH_NEW_OBJECTS)]
    for node in held:
        node.self = node  # type: ignore[attr-defined]
    for _ in range(2):
        gc.collect(YOUNG)  # they are old now
    del node
    held.clear()
    circles(ENOUGH_NEW_OBJECTS)
    assert sweeper.check(now + FULL_AFTER_S)
    assert alive() == ENOUGH_NEW_OBJECTS, "the new circles went"
    under_way = FEW_REQUESTS
    circles(ENOUGH_NEW_OBJECTS)
    assert sweeper.check(now + 2 * FULL_AFTER_S)
    assert alive() == 0

    under_way = FEW_REQUESTS + 1
    assert sweeper.check(now + 2 * FULL_AFTER_S + FULL_LATEST_S)
    sweeper.close()


async def test_free_memory_is_given_back_once_after_work_in_threads(threads: WorkThreads) -> None:
    given: list[int] = []
    sweeper = Sweeper(threads, give_back=lambda: given.append(1))
    sweeper.start()
    now = asyncio.get_running_loop().time()

    def later() -> int:
        nonlocal now
        now += GIVE_BACK_S
        sweeper.check(now)
        return len(given)

    assert later() == 1, "what the start has left"
    assert later() == 1, "nothing was done"
    gate = threading.Event()
    busy = asyncio.create_task(threads.run(gate.wait, size_bytes=INLINE))  # noqa: TID251  # awaited below
    await asyncio.sleep(0)
    assert later() == 1, "work is under way"
    gate.set()
    await busy
    await threads.run(lambda: None, size_bytes=INLINE)
    assert later() == 1, "there was work since the last look"
    sweeper.check(now + GIVE_BACK_S / 2)
    assert len(given) == 1, "too soon"
    assert later() == 2
    assert later() == 2
    sweeper.close()


def test_giving_back_works_with_the_library_of_this_machine() -> None:
    assert trimmer()() in (0, 1, None)


async def test_python_searches_by_itself_should_the_timer_be_late(threads: WorkThreads) -> None:
    sweeper = Sweeper(threads)
    sweeper.start()
    circles(AUTOMATIC_AFTER + ENOUGH_NEW_OBJECTS)
    assert alive() <= AUTOMATIC_AFTER
    sweeper.close()


async def test_python_searches_by_itself_among_the_newest_objects_alone(threads: WorkThreads) -> None:
    """Objects of a large body under way are millions, and are in no circle."""
    found: list[tuple[str, int]] = []

    def note(phase: str, facts: dict[str, int]) -> None:
        found.append((phase, facts["generation"]))

    sweeper = Sweeper(threads)
    sweeper.start()
    gc.callbacks.append(note)
    try:
        held = [[Node()] for _ in range(13 * AUTOMATIC_AFTER // 2)]
    finally:
        gc.callbacks.remove(note)
    assert {generation for _, generation in found} == {0}
    assert len(held) > 12 * AUTOMATIC_AFTER // 2
    del held
    circles(10)
    assert sweeper.check(asyncio.get_running_loop().time()), "what Python's own searches left is due"
    sweeper.close()


async def test_a_search_waits_until_large_values_are_freed(threads: WorkThreads) -> None:
    """It visited the objects of a body that were being freed: 0.24 s, on the event loop."""
    sweeper = Sweeper(threads)
    sweeper.start()
    now = asyncio.get_running_loop().time()
    held = [[Node()]]
    threads.free_later(held)
    circles(ENOUGH_NEW_OBJECTS)
    assert not sweeper.check(now)
    del held
    await until(lambda: not threads.is_freeing)
    assert sweeper.check(now)
    sweeper.close()
