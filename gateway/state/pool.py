"""The pool: one thread for work that would block the event loop too long; the smallest job runs first.

There is only one thread, because Python runs one at a time: a second one would not finish sooner and would delay the
event loop further. A job is dropped if its caller leaves before it starts. The queue is bounded. When it is full,
background work is refused and no further large request is admitted. An admitted request has one job at a time and is
never refused here.
"""

import asyncio
import contextvars
import heapq
import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

Result = TypeVar("Result")

INLINE: Final = 2**16
"""Bytes. Work on a smaller body takes a few milliseconds and runs in the event loop."""
LONGEST_QUEUE: Final = 100
"""Waiting jobs. At 0.1 to 1 s each, the last one waits about as long as a client does."""
BYTES_A_SECOND: Final = 5_000_000
"""Approximate rate at which bodies are parsed, counted and folded (measured: 3 to 12 MB a second)."""
BACKGROUND_WAIT_S: Final = 10.0
"""Delay of background work relative to work that a client waits for."""


class PoolFull(Exception):
    """Too many jobs are waiting, or the pool is closed. Try background work again later."""


@dataclass(order=True, slots=True)
class Job:
    """One job, ordered by ``due``: the time at which it would finish alone, so small jobs overtake large ones."""

    due: float
    number: int
    work: Callable[[], Any] = field(compare=False)
    done: "asyncio.Future[Any]" = field(compare=False)
    context: contextvars.Context = field(compare=False)
    left: bool = field(default=False, compare=False)
    """Return whether the caller stopped waiting."""


class Pool:
    """One thread and its queue. Created inside the running event loop that it serves."""

    def __init__(self, longest_queue: int = LONGEST_QUEUE) -> None:
        self._loop = asyncio.get_running_loop()
        self._longest_queue = longest_queue
        self._jobs: list[Job] = []
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._waiting = 0

    @property
    def waiting(self) -> int:
        """Return how many callers wait for their work, including the running job."""
        return self._waiting

    @property
    def full(self) -> bool:
        """Return whether no further work that needs the pool should begin."""
        return self._waiting >= self._longest_queue

    async def run(self, work: Callable[[], Result], *, size_bytes: int) -> Result:
        """Return the result of ``work``. Small work runs at once; large work waits for its turn in the thread.

        Raises the exception of ``work``. If the caller is cancelled first, the work never runs.
        """
        if size_bytes < INLINE:
            return work()
        return await self._queued(work, self._loop.time() + size_bytes / BYTES_A_SECOND)

    async def run_later(self, work: Callable[[], Result], *, size_bytes: int) -> Result:
        """Like `run`, for work without a waiting client: always in the thread, after recent client work.

        Raises PoolFull when too many jobs are waiting.
        """
        if self.full:
            raise PoolFull
        return await self._queued(work, self._loop.time() + size_bytes / BYTES_A_SECOND + BACKGROUND_WAIT_S)

    async def _queued(self, work: Callable[[], Result], due: float) -> Result:
        if self._closed:
            raise PoolFull
        done: asyncio.Future[Result] = self._loop.create_future()
        job = Job(due, next(self._numbers), work, done, contextvars.copy_context())
        self._waiting += 1
        try:
            self._add(job)
            return await done
        finally:
            job.left = True
            self._waiting -= 1

    def _add(self, job: Job) -> None:
        with self._changed:
            heapq.heappush(self._jobs, job)
            self._changed.notify()
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="pool", daemon=True)
            self._thread.start()

    def _serve(self) -> None:
        """The thread: take the job that is due first, run it, hand over the result; repeat until the pool is closed."""
        while (job := self._next()) is not None:
            if job.left:
                continue
            result, error = None, None
            try:
                result = job.context.run(job.work)
            except BaseException as caught:  # noqa: BLE001  # it belongs to the caller, who raises it again
                error = caught
            if not self._hand_over(job.done, result, error):
                return
            del job, result, error  # keep nothing of a request while waiting for the next one

    def _next(self) -> Job | None:
        with self._changed:
            while not self._jobs and not self._closed:
                self._changed.wait()
            return None if self._closed else heapq.heappop(self._jobs)

    def _hand_over(self, done: "asyncio.Future[Any]", result: Any, error: BaseException | None) -> bool:
        try:
            self._loop.call_soon_threadsafe(_settle, done, result, error)
        except RuntimeError:
            return False  # the loop has ended meanwhile
        return True

    async def close(self) -> None:
        """Drop waiting jobs; return when the thread has finished its current job."""
        with self._changed:
            self._closed = True
            dropped, self._jobs = self._jobs, []
            self._changed.notify()
        for job in dropped:
            job.done.cancel()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)


def _settle(done: "asyncio.Future[Any]", result: Any, error: BaseException | None) -> None:
    if done.done():
        return  # the caller has left
    if error is not None:
        done.set_exception(error)
    else:
        done.set_result(result)
