"""The pool: work that would hold the event loop too long runs in one thread beside it, the smallest first.

One thread, because Python runs one thread at a time: a second one would not finish sooner, it would only stand between the event loop
and its turn once more. A job whose caller has left is dropped before it starts. The queue is bounded: background work is refused when it is full, and
the shell admits no further large request; a request once admitted has one job at a time and is never refused here.
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
"""Bytes. Work on a smaller body is done in a few milliseconds, right where it is asked for."""
LONGEST_QUEUE: Final = 100
"""Jobs that may wait. At 0.1 to 1 s each, the last of them waits as long as a client is patient."""
BYTES_A_SECOND: Final = 5_000_000
"""About how fast bodies are parsed, counted and folded (measured: 3 to 12 MB a second)."""
BACKGROUND_WAIT_S: Final = 10.0
"""So much later than work that a client waits for is background work due."""


class PoolFull(Exception):
    """Too much work is waiting, or the pool is closed. Background work should be tried again later."""


@dataclass(order=True, slots=True)
class Job:
    """One piece of work. The order is that of ``due``: when it would be done if it were alone, so that small work overtakes large."""

    due: float
    number: int
    work: Callable[[], Any] = field(compare=False)
    done: "asyncio.Future[Any]" = field(compare=False)
    context: contextvars.Context = field(compare=False)
    left: bool = field(default=False, compare=False)
    """The caller no longer waits."""


class Pool:
    """One thread and the queue before it. Made inside a running event loop, which it serves."""

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
        """How many callers wait for their work, that under way included."""
        return self._waiting

    @property
    def full(self) -> bool:
        """Whether nothing more should be begun that needs the pool."""
        return self._waiting >= self._longest_queue

    async def run(self, work: Callable[[], Result], *, size_bytes: int) -> Result:
        """Return what ``work`` returns. Small work is done at once; large work waits its turn in the thread.

        Raises what ``work`` raises. When the caller is cancelled before its turn, the work is never done.
        """
        if size_bytes < INLINE:
            return work()
        return await self._queued(work, self._loop.time() + size_bytes / BYTES_A_SECOND)

    async def run_later(self, work: Callable[[], Result], *, size_bytes: int) -> Result:
        """As `run`, for work that no client waits for: always in the thread, after the work that was asked for lately.

        Raises PoolFull where too much is waiting.
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
        """The thread: take the job that is due first, do it, hand the result over; until the pool is closed."""
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
            del job, result, error  # nothing of a request is held while the next one is awaited

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
        """Drop what waits; return when the thread has finished what it is at."""
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
