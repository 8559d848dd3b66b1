"""Two threads for work that would block the event loop too long, one for large jobs and one for all others.

There are no more, because Python runs one thread at a time: another one would not finish sooner and would delay the event loop
further. Two are needed, because a running job cannot be interrupted: a conversation of 100 KB must not wait for one of 5 MB.
A job is dropped if its caller leaves before it starts. The queue is bounded. When it is full, background work is
refused and no further large request is admitted. An admitted request has one job at a time and is never refused here.
"""

import asyncio
import contextvars
import heapq
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

from gateway.state.freeing import FreeingThread

Result = TypeVar("Result")

INLINE: Final = 2**14
"""Bytes. A smaller body is counted and folded in 15 ms (0.8 ms a KB, measured), which the event loop can bear."""
LONGEST_QUEUE: Final = 100
"""Waiting jobs. At 0.1 to 1 s each, the last one waits about as long as a client does."""
LARGE: Final = 2**19
"""Bytes. Folding a larger body takes about half a second or more."""
HANDICAP_BYTES_A_SECOND: Final = 100_000
"""Rate that turns a body's size into a delay: smaller jobs may overtake it for so long. See `LONGEST_HANDICAP_S`."""
LONGEST_HANDICAP_S: Final = 60.0
"""A job lets others overtake it that come so many seconds later and are so much smaller; none waits for ever."""
BACKGROUND_WAIT_S: Final = 10.0
"""Delay of background work relative to work that a client waits for."""


class QueueFull(Exception):
    """Too many jobs are waiting, or the threads have ended. Try background work again later."""


def _nothing() -> None:
    """The work of a job whose caller has left, so that nothing of its request is kept."""


class Job(msgspec.Struct, eq=False):
    """One job, ordered by ``due``: when it came, and a handicap for its size, so that small jobs overtake large ones."""

    due: float
    number: int
    work: Callable[[], Any]
    done: "asyncio.Future[Any]"
    context: contextvars.Context
    left: bool = False
    """Whether the caller stopped waiting."""

    def __lt__(self, other: "Job") -> bool:
        return (self.due, self.number) < (other.due, other.number)

    def leave(self) -> None:
        """Do not start this job any more."""
        self.left, self.work = True, _nothing


class Lane:
    """One thread and the jobs that wait for it."""

    def __init__(self, name: str, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._jobs: list[Job] = []
        self._changed = threading.Condition()
        self._closed = False
        # Starting a thread waits until it runs: in the middle of a large job that may take long.
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def add(self, job: Job) -> None:
        """Run a job when its turn comes."""
        with self._changed:
            heapq.heappush(self._jobs, job)
            self._changed.notify()

    def _serve(self) -> None:
        """The thread: take the job that is due first, run it, hand over the result; repeat until the lane is closed."""
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

    def close(self) -> None:
        """Drop waiting jobs, and end the thread after its current job."""
        with self._changed:
            self._closed = True
            dropped, self._jobs = self._jobs, []
            self._changed.notify()
        for job in dropped:
            job.done.cancel()

    async def ended(self) -> None:
        """Return when the thread has ended."""
        await asyncio.to_thread(self._thread.join)


class WorkThreads:
    """The threads for large jobs and for others. Created inside the running event loop that it serves."""

    def __init__(self, longest_queue: int = LONGEST_QUEUE) -> None:
        self._loop = asyncio.get_running_loop()
        self._longest_queue = longest_queue
        self._quick, self._large = Lane("work-quick", self._loop), Lane("work-large", self._loop)
        self._freeing = FreeingThread()
        self._jobs = 0
        self._closed = False
        self._waiting = 0

    @property
    def waiting(self) -> int:
        """Return how many callers wait for their work, including the running jobs."""
        return self._waiting

    @property
    def jobs(self) -> int:
        """Return how many jobs have been handed to a thread so far."""
        return self._jobs

    @property
    def full(self) -> bool:
        """Return whether no further work that needs a thread should begin."""
        return self._waiting >= self._longest_queue

    async def run(self, work: Callable[[], Result], *, size_bytes: int) -> Result:
        """Return the result of ``work``. Small work runs at once; other work waits for its turn in a thread.

        Raises the exception of ``work``. If the caller is cancelled first, the work never runs.
        """
        if size_bytes < INLINE:
            return work()
        return await self._queued(work, size_bytes, self._quick if size_bytes < LARGE else self._large)

    async def run_later(self, work: Callable[[], Result], *, size_bytes: int) -> Result:
        """Like `run`, for work without a waiting client: always in a thread, after recent client work.

        Raises QueueFull when too many jobs are waiting.
        """
        if self.full:
            raise QueueFull
        return await self._queued(work, size_bytes, self._large, BACKGROUND_WAIT_S)

    @property
    def is_freeing(self) -> bool:
        """Return whether large values wait to be freed, or are being freed."""
        return self._freeing.busy

    def free_later(self, *values: Any) -> None:
        """Free large values in a thread, once their last user has left."""
        self._freeing.add(list(values))

    async def _queued(self, work: Callable[[], Result], size_bytes: int, lane: Lane, later_s: float = 0.0) -> Result:
        if self._closed:
            raise QueueFull
        done: asyncio.Future[Result] = self._loop.create_future()
        handicap_s = min(size_bytes / HANDICAP_BYTES_A_SECOND, LONGEST_HANDICAP_S) + later_s
        self._jobs += 1
        job = Job(self._loop.time() + handicap_s, self._jobs, work, done, contextvars.copy_context())
        self._waiting += 1
        try:
            lane.add(job)
            return await done
        finally:
            job.leave()
            self._waiting -= 1

    async def close(self) -> None:
        """Drop waiting jobs; return when the threads have finished their current jobs."""
        self._closed = True
        self._freeing.close()
        for lane in (self._quick, self._large):
            lane.close()
        for lane in (self._quick, self._large):
            await lane.ended()


def _settle(done: "asyncio.Future[Any]", result: Any, error: BaseException | None) -> None:
    if done.done():
        return  # the caller has left
    if error is not None:
        done.set_exception(error)
    else:
        done.set_result(result)
