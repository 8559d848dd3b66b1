"""Garbage: when Python looks for objects in circles, so that the search never holds up the event loop for long.

Python searches after so many new objects, in the middle of a large body's hundreds of thousands: each search visits them all and stops every
thread. None of them is ever in a circle; closed connections are. So automatic searches are rare here, and a timer
searches while no large body is at work. It searches among the objects that are new since its last search; among all of them, which takes 0.1 s while
a thousand streams run, only when few requests are under way. After work in threads the C library gives free pages back to the system: left to itself
it keeps those between two pieces that are in use, some 3 MB after folds.
"""

import asyncio
import ctypes
import gc
import os
from collections.abc import Callable
from functools import partial
from typing import Final

from gateway.state.pool import Pool

LOOK_S: Final = 0.1
"""Interval at which the timer looks whether a search is due: a thousand requests that come at once are ten looks' work."""
GIVE_BACK_S: Final = 1.0
"""Time without new work in threads after which free memory is given back."""
WORTH: Final = 20_000
"""New objects from which a search is due: about a thousand closed connections."""
WORK: Final = 200
"""Requests begun and jobs of the pool since the last search, together, from which one is due while no large body is at work: Python has made no search
by itself. What is new is counted less what was freed: a thousand streams that end while others begin leave nothing to count and 150,000 objects to
visit, which took 0.12 s; a fifth of them 0.02 s (measured)."""
LATEST_S: Final = 60.0
"""Time after which it is due whatever else is at work."""
NEW: Final = 1
"""Python's name for the objects that are new since the last search: its generations 0 and 1."""
QUIET: Final = 50
"""Requests under way, at most, for a search among all objects: their part of it takes 5 ms (measured)."""
WHOLE_S: Final = 120.0
"""Time without more requests after which a search among all objects is due: idle connections of clients are closed by then
(`server.keep_alive`), and are no part of it."""
WHOLE_LATEST_S: Final = 900.0
"""Time after which it is due whatever is under way: the circles of closed connections are few (8 objects for each)."""
AUTOMATIC: Final = 30_000
"""New objects after which Python searches among them by itself: 2 ms, and up to 25 for the lists of a large body on a busy machine (measured)."""
NEVER: Final = 2**31 - 1
"""By itself Python searches among the newest objects alone: the older ones of a large body under way are millions, and took 0.25 s."""


def trimmer() -> Callable[[], object]:
    """Return what makes the C library give free pages back: glibc has a function for it (0.2 ms for 60 MB, measured),
    other libraries are left alone."""
    library = ctypes.CDLL(None) if os.name == "posix" else None
    trim: Callable[[int], int] | None = getattr(library, "malloc_trim", None)
    return partial(trim, 0) if trim is not None else lambda: None


class Sweeper:
    """Searches for circles in quiet moments."""

    def __init__(
        self,
        pool: Pool,
        under_way: Callable[[], int] = lambda: 0,
        begun: Callable[[], int] = lambda: 0,
        give_back: Callable[[], object] | None = None,
    ) -> None:
        """``under_way`` returns how many requests are under way, ``begun`` how many there ever were; ``give_back`` gives free memory to the
        system, as `trimmer` does."""
        self._pool = pool
        self._under_way = under_way
        self._begun = begun
        self._give_back = give_back or trimmer()
        self._timer: asyncio.TimerHandle | None = None
        self._usual = gc.get_threshold()
        self._last = 0.0
        self._last_whole = 0.0
        self._busy = 0.0
        self._jobs = 0
        """The pool's jobs when it was last looked whether memory can be given back."""
        self._looked = 0.0
        """When that was."""
        self._given = 0
        """The pool's jobs whose memory has been given back."""
        self._searched = 0
        """Work done at the last search."""

    def start(self) -> None:
        """Set all present objects aside, since they stay for good, and begin."""
        gc.collect()
        gc.freeze()
        self._give_back()
        gc.set_threshold(AUTOMATIC, NEVER, NEVER)
        self._last = self._last_whole = asyncio.get_running_loop().time()
        self._later()

    def look(self, now: float) -> bool:
        """Give memory back once no work came for a while, and search if that is due; return whether it was."""
        if now - self._looked >= GIVE_BACK_S:
            self._looked = now
            self._give_back_if_quiet()
        if self._under_way() > QUIET:
            self._busy = now
        much = self._work() - self._searched >= WORK and _no_large_body()
        late = now - self._last >= LATEST_S
        if not (much or late) and (self._pool.waiting or self._pool.lets_go or _new_objects() < WORTH):
            return False
        if now - max(self._last_whole, self._busy) >= WHOLE_S or now - self._last_whole >= WHOLE_LATEST_S:
            gc.collect()
            self._last_whole = now
        else:
            gc.collect(NEW)
        self._last = now
        self._searched = self._work()
        return True

    def _work(self) -> int:
        return self._begun() + self._pool.jobs

    def _give_back_if_quiet(self) -> None:
        quiet, self._jobs = self._jobs == self._pool.jobs and not self._pool.waiting, self._pool.jobs
        if quiet and self._given != self._jobs:
            self._given = self._jobs
            self._give_back()

    def close(self) -> None:
        """Let Python search as it usually does."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            gc.set_threshold(*self._usual)

    def _later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._tick)

    def _tick(self) -> None:
        self.look(asyncio.get_running_loop().time())
        self._later()


def _no_large_body() -> bool:
    """Return whether Python has not searched by itself since the last search by the timer."""
    return gc.get_count()[1] == 0


def _new_objects() -> int:
    """Return how many objects came since the last search among them by the timer, with those that Python's own searches left."""
    newest, searches, _ = gc.get_count()
    return newest + searches * AUTOMATIC
