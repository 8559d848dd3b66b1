"""Background work: every task has an owner and a name, and its failure is logged."""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, Final

import structlog

log = structlog.get_logger(__name__)

FINISH_S: Final = 2.0
"""How long `Tasks.close` waits for work that must finish. Chosen: a write takes milliseconds, and a container is killed after 10 s."""


class Tasks:
    """The background tasks of one process, referenced until they are done."""

    def __init__(self, limit: int = 1000) -> None:
        self._running: set[asyncio.Task[Any]] = set()
        self._must_finish: set[asyncio.Task[Any]] = set()
        self._limit = limit
        self._closed = False

    def __len__(self) -> int:
        return len(self._running)

    def start(
        self, work: Coroutine[Any, Any, Any], name: str, *, must_finish: bool = False
    ) -> asyncio.Task[Any] | None:
        """Start ``work`` in the background; return None when it was declined because too much is running or the process
        is stopping. What must finish (a write) is waited for when the process stops.

        No code reads the result: an exception is logged by type, never by text (it may quote a user's words).
        """
        if self._closed or len(self._running) >= self._limit:
            work.close()
            log.warning("task_declined", task=name, running=len(self._running))
            return None
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._running.add(task)  # the event loop itself keeps only a weak reference
        if must_finish:
            self._must_finish.add(task)
        task.add_done_callback(self._done)
        return task

    async def settled(self) -> None:
        """Wait until no task is running, including tasks started meanwhile."""
        while self._running:
            await asyncio.gather(*self._running, return_exceptions=True)

    async def close(self) -> None:
        """Wait some seconds for what must finish, cancel the other tasks, wait until they have stopped, and start nothing more."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FINISH_S):
                while self._must_finish:  # such a task may start another
                    await asyncio.wait(self._must_finish)
                    await asyncio.sleep(0)
        self._closed = True
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        self._must_finish.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("task_failed", task=task.get_name(), error=type(error).__name__, where=where(error))


def where(error: BaseException) -> str:
    """Return file and line of the innermost frame: the part of a traceback that never quotes a value."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
