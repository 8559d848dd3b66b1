"""Background work has an owner: it is not lost, its failure is seen, and it ends with the process."""

import asyncio

import structlog

from gateway.state.tasks import Tasks


async def test_work_is_done_and_then_let_go() -> None:
    tasks = Tasks()
    done = asyncio.Event()

    async def work() -> None:
        done.set()

    task = tasks.start(work(), "work")
    assert task is not None
    await task
    assert done.is_set()
    await asyncio.sleep(0)
    assert len(tasks) == 0


async def test_a_failure_is_logged_by_kind_and_place_without_its_text() -> None:
    async def fail() -> None:
        raise RuntimeError("the user said: my secret")

    tasks = Tasks()
    with structlog.testing.capture_logs() as logs:
        task = tasks.start(fail(), "failing")
        assert task is not None
        await asyncio.wait([task])
        await asyncio.sleep(0)
    (event,) = logs
    assert (event["event"], event["task"], event["error"]) == ("task_failed", "failing", "RuntimeError")
    assert "test_tasks.py:" in event["where"]
    assert "secret" not in str(event)


async def test_closing_cancels_what_runs_waits_for_it_and_starts_nothing_more() -> None:
    tasks = Tasks()
    cleaned: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append("up")

    tasks.start(work(), "work")
    await asyncio.sleep(0)
    with structlog.testing.capture_logs() as logs:
        await tasks.close()
        assert cleaned == ["up"]
        assert tasks.start(work(), "late") is None
    assert [event["event"] for event in logs] == ["task_declined"]


async def test_closing_waits_for_what_must_finish_and_for_what_that_starts(monkeypatch) -> None:
    tasks, done = Tasks(), list[str]()

    async def write(name: str) -> None:
        await asyncio.sleep(0.02)
        done.append(name)
        if name == "first":
            tasks.start(write("second"), "write", must_finish=True)

    tasks.start(write("first"), "write", must_finish=True)
    tasks.start(asyncio.Event().wait(), "watch")
    await tasks.close()
    assert done == ["first", "second"]

    monkeypatch.setattr("gateway.state.tasks.FINISH_S", 0.02)
    stuck = Tasks()
    stuck.start(asyncio.Event().wait(), "stuck", must_finish=True)
    await stuck.close()
    assert len(stuck) == 0


async def test_no_more_work_is_taken_on_than_the_limit() -> None:
    tasks = Tasks(limit=2)
    starts = [tasks.start(asyncio.Event().wait(), "work") for _ in range(3)]
    assert [start is not None for start in starts] == [True, True, False]
    await tasks.close()
