"""Garbage collection: collect reference cycles at moments when this delays no request.

By default CPython collects whenever enough new objects exist, also in the middle of a large body with hundreds of thousands of objects. Each
collection visits all of them and stops every thread. Objects of a body are never in a cycle; those of closed connections are. So
automatic collections are made rare here, and a timer collects while no large body is at work. Usually it visits only the objects that
are new since the last collection. It visits all objects only when few requests are under way, because that takes 0.1 s while a thousand streams run.

After work in threads the C library is told to give free pages back to the system. Otherwise it keeps pages between two pieces that are
in use, some 3 MB after folds.
"""

import asyncio
import gc
import os
from collections.abc import Callable
from functools import cache, partial
from typing import Final

from gateway.state.threads import WorkThreads

CHECK_S: Final = 0.1
"""Seconds between two checks whether a collection is due. A thousand requests at once are the work of ten checks."""
GIVE_BACK_S: Final = 1.0
"""Seconds without new work in threads after which free memory is given back."""
ENOUGH_NEW_OBJECTS: Final = 20_000
"""New objects after which a collection is due: about a thousand closed connections."""
ENOUGH_WORK: Final = 200
"""Requests plus jobs of the threads since the last collection, after which one is due while no large body is at work. Python's count of new
objects is not enough: it subtracts freed objects. When a thousand streams end while others begin, the count stays near zero, yet
150,000 objects are to be visited, which took 0.12 s; for a fifth of them 0.02 s (measured)."""
LATEST_S: Final = 60.0
"""Seconds after which a collection is due in any case."""
YOUNG: Final = 1
"""Argument of `gc.collect` for the objects that are new since the last collection: Python's generations 0 and 1."""
FEW_REQUESTS: Final = 50
"""Requests under way, at most, for a full collection: visiting their objects takes 5 ms (measured)."""
FULL_AFTER_S: Final = 120.0
"""Seconds without more than `FEW_REQUESTS` after which a full collection is due. By then idle connections of clients are closed
(`server.keep_alive`)."""
FULL_LATEST_S: Final = 900.0
"""Seconds after which a full collection is due in any case. It can be this late: a closed connection leaves 8 objects in cycles."""
AUTOMATIC_AFTER: Final = 30_000
"""New objects after which Python itself collects among them: 2 ms, up to 25 ms for the lists of a large body on a busy machine (measured)."""
NEVER: Final = 2**31 - 1
"""Threshold at which Python itself never collects older objects: a large body under way has millions of them, which took 0.25 s."""


@cache
def trimmer() -> Callable[[], object]:
    """Return a function that makes the C library give free pages back. Only glibc has one (0.2 ms for 60 MB, measured); for other
    libraries the returned function does nothing."""
    import ctypes  # noqa: PLC0415  # a hundredth of the start, which does not need it

    library = ctypes.CDLL(None) if os.name == "posix" else None
    trim: Callable[[int], int] | None = getattr(library, "malloc_trim", None)
    return partial(trim, 0) if trim is not None else lambda: None


class Sweeper:
    """Collects garbage in quiet moments."""

    def __init__(
        self,
        threads: WorkThreads,
        under_way: Callable[[], int] = lambda: 0,
        begun: Callable[[], int] = lambda: 0,
        give_back: Callable[[], object] | None = None,
    ) -> None:
        """``under_way`` returns how many requests are under way, ``begun`` how many began since the start. ``give_back`` gives free
        memory to the system; the default is that of `trimmer`."""
        self._threads = threads
        self._under_way = under_way
        self._begun = begun
        self._give_back = give_back
        self._timer: asyncio.TimerHandle | None = None
        self._usual_thresholds = gc.get_threshold()
        self._last = 0.0
        self._last_full = 0.0
        self._last_busy = 0.0
        self._jobs_seen = 0
        """The threads' number of jobs at the last check whether memory can be given back."""
        self._checked_memory = 0.0
        """When that check was."""
        self._jobs_given_back = -1
        """The threads' number of jobs when memory was last given back; -1 before what the start has left is given back."""
        self._work_at_last = 0
        """`_work` at the last collection."""

    def start(self) -> None:
        """Exclude all present objects from collections, since they stay for good, and start the timer."""
        gc.collect()
        gc.freeze()
        gc.set_threshold(AUTOMATIC_AFTER, NEVER, NEVER)
        self._last = self._last_full = asyncio.get_running_loop().time()
        self._schedule()

    def check(self, now: float) -> bool:
        """Give memory back if no work came for a while; collect if that is due, and return whether it was."""
        if now - self._checked_memory >= GIVE_BACK_S:
            self._checked_memory = now
            self._give_back_if_quiet()
        if self._under_way() > FEW_REQUESTS:
            self._last_busy = now
        much = self._work() - self._work_at_last >= ENOUGH_WORK and _no_large_body()
        late = now - self._last >= LATEST_S
        if not (much or late) and (
            self._threads.waiting or self._threads.is_freeing or _new_objects() < ENOUGH_NEW_OBJECTS
        ):
            return False
        if now - max(self._last_full, self._last_busy) >= FULL_AFTER_S or now - self._last_full >= FULL_LATEST_S:
            gc.collect()
            self._last_full = now
        else:
            gc.collect(YOUNG)
        self._last = now
        self._work_at_last = self._work()
        return True

    def _work(self) -> int:
        """Return the requests begun and the jobs of the threads since the start."""
        return self._begun() + self._threads.jobs

    def _give_back_if_quiet(self) -> None:
        quiet, self._jobs_seen = self._jobs_seen == self._threads.jobs and not self._threads.waiting, self._threads.jobs
        if quiet and self._jobs_given_back != self._jobs_seen:
            self._jobs_given_back = self._jobs_seen
            (self._give_back or trimmer())()

    def close(self) -> None:
        """Stop the timer, and let Python collect as it usually does."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            gc.set_threshold(*self._usual_thresholds)

    def _schedule(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(CHECK_S, self._tick)

    def _tick(self) -> None:
        self.check(asyncio.get_running_loop().time())
        self._schedule()


def _no_large_body() -> bool:
    """Return whether Python itself has not collected since the last collection by the timer: a large body would have caused one."""
    return gc.get_count()[1] == 0


def _new_objects() -> int:
    """Return the number of new objects since the last collection by the timer; Python's own collections leave theirs uncounted."""
    newest, collections, _ = gc.get_count()
    return newest + collections * AUTOMATIC_AFTER
