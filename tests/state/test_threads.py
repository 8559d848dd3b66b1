"""Work in threads: large work off the event loop, in a bounded queue, dropped when its caller leaves."""

import asyncio
import threading
from contextlib import asynccontextmanager

import pytest

from gateway.state import threads as module
from gateway.state.threads import INLINE, QueueFull, WorkThreads

LARGE = module.LARGE


@asynccontextmanager
async def threads(**limits):
    """Threads of which one is held up until ``gate`` opens."""
    made = WorkThreads(**limits)
    gate = threading.Event()
    held = asyncio.ensure_future(made.run(gate.wait, size_bytes=LARGE))  # noqa: TID251  # a test awaits it itself
    await asyncio.sleep(0)
    try:
        yield made, gate
    finally:
        gate.set()
        await held
        await made.close()


def started(coroutine):
    return asyncio.ensure_future(coroutine)  # noqa: TID251  # a test awaits it itself


async def test_small_work_is_done_at_once_in_the_event_loop():
    async with threads() as (made, _):
        assert await made.run(threading.get_ident, size_bytes=INLINE - 1) == threading.get_ident()


async def test_other_work_does_not_wait_for_large_work_that_is_running():
    async with threads() as (made, _):
        assert await made.run(threading.get_ident, size_bytes=INLINE) != threading.get_ident()
        assert made.waiting == 1


async def test_large_work_is_done_in_one_other_thread():
    async with threads() as (made, gate):
        gate.set()
        used = {await made.run(threading.get_ident, size_bytes=LARGE) for _ in range(5)}
    assert len(used) == 1
    assert threading.get_ident() not in used


async def test_what_the_work_raises_is_raised_to_its_caller_and_harms_no_other():
    async with threads() as (made, gate):
        gate.set()
        with pytest.raises(ZeroDivisionError):
            await made.run(lambda: 1 // 0, size_bytes=LARGE)
        assert await made.run(lambda: "fine", size_bytes=LARGE) == "fine"


async def test_smaller_work_overtakes_larger_and_background_work_comes_last():
    done = []
    async with threads() as (made, gate):
        jobs = [
            started(made.run_later(lambda: done.append("background"), size_bytes=LARGE * 2)),
            started(made.run(lambda: done.append("larger"), size_bytes=2 * LARGE)),
            started(made.run(lambda: done.append("large"), size_bytes=LARGE)),
        ]
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(*jobs)
    assert done == ["large", "larger", "background"]


async def test_work_whose_caller_has_left_is_never_started():
    done = []
    async with threads() as (made, gate):
        left = started(made.run(lambda: done.append("left"), size_bytes=LARGE))
        stays = started(made.run(lambda: done.append("stays"), size_bytes=LARGE))
        await asyncio.sleep(0)
        left.cancel()
        with pytest.raises(asyncio.CancelledError):
            await left
        gate.set()
        await stays
    assert done == ["stays"]


async def test_a_full_queue_refuses_background_work_and_has_room_again_when_callers_leave():
    async with threads(longest_queue=2) as (made, gate):
        waiting = started(made.run(int, size_bytes=LARGE))
        await asyncio.sleep(0)
        assert made.full
        with pytest.raises(QueueFull):
            await made.run_later(int, size_bytes=LARGE)
        waiting.cancel()
        await asyncio.wait([waiting])
        assert not made.full
        again = started(made.run_later(int, size_bytes=LARGE))
        gate.set()
        assert await again == 0


async def test_closing_lets_go_of_those_who_wait():
    made = WorkThreads()
    gate = threading.Event()
    first = started(made.run(gate.wait, size_bytes=LARGE))
    second = started(made.run(int, size_bytes=LARGE))
    await asyncio.sleep(0.01)  # the thread has taken the first by then, or takes it never: both end below
    closing = started(made.close())
    await asyncio.sleep(0)
    gate.set()
    await closing
    await asyncio.wait([first, second])
    assert second.cancelled()
    with pytest.raises(QueueFull):
        await made.run(int, size_bytes=LARGE)
