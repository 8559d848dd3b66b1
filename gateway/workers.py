"""Several serving processes on one port: a supervisor starts them, restarts who crashed, and ends them together.

Each worker binds the client port with SO_REUSEPORT and the kernel deals new connections out among them. A worker that dies takes
only the streams it was serving with it. What workers know in common goes through the store. Worker ``n`` has the
admin port ``admin.port + n``, so that every process is scraped by itself.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import structlog

log = structlog.get_logger(__name__)

NUMBER: Final = "TURNFOLD_WORKER"
"""Set in the environment of a worker: its number, counted from 0."""

FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 30.0
STEADY_S: Final = 30.0
"""Who ran so long has recovered: the next crash is the first again."""
STILLBORN_S: Final = 5.0
STILLBORN_EXIT: Final = 3
"""A worker that fails so early, so many times in a row and never before ran, has a fault that a restart will not mend."""
POLL_S: Final = 0.1
STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def number() -> int:
    """This worker's number; 0 where there is only one process."""
    return int(os.environ.get(NUMBER, "0"))


def is_worker() -> bool:
    """Whether this process was started by a supervisor, so that it shares its port."""
    return NUMBER in os.environ


@dataclass(slots=True)
class Worker:
    """One worker's process, and how its restarts went."""

    number: int
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    crashes: int = 0
    """In a row."""
    due: float = 0.0
    """When it may be started again."""


def run(
    count: int,
    argv: Sequence[str] | None = None,
    *,
    grace_s: float = 35.0,
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Keep ``count`` workers running until told to stop; answer the exit status for the whole.

    ``argv`` is what a worker runs, by default this very command line. SIGTERM and SIGINT are handed on as SIGTERM; who is
    still there after ``grace_s`` is killed. SIGHUP is handed on as it is. Call it in the main thread.
    """
    command = list(argv) if argv is not None else [sys.executable, "-m", "gateway", *sys.argv[1:]]
    stop = threading.Event()
    workers = [Worker(number) for number in range(count)]
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in STOP_SIGNALS}
    before[signal.SIGHUP] = signal.signal(signal.SIGHUP, lambda *_: _signal(workers, signal.SIGHUP))
    try:
        while not stop.is_set():
            if _tend(workers, command, clock()):
                return 1
            stop.wait(POLL_S)
        return 0
    finally:
        _end(workers, grace_s)
        for signal_number, handler in before.items():
            signal.signal(signal_number, handler)


def _tend(workers: Sequence[Worker], command: Sequence[str], now: float) -> bool:
    """Start who is due, note who died; answer whether there is no point in going on."""
    for worker in workers:
        if worker.process is not None and (status := worker.process.poll()) is not None:
            worker.process = None
            lived_s = now - worker.started
            worker.crashes = 1 if lived_s > STEADY_S else worker.crashes + 1
            pause = min(FIRST_PAUSE_S * 2 ** (worker.crashes - 1), LONGEST_PAUSE_S)
            worker.due = now + pause
            log.error("worker_died", worker=worker.number, status=status, lived_s=round(lived_s, 1), pause_s=pause)
            if worker.crashes >= STILLBORN_EXIT and lived_s < STILLBORN_S and not _any_running(workers):
                log.error("workers_cannot_start", status=status)
                return True
        if worker.process is None and now >= worker.due:
            worker.started = now
            worker.process = subprocess.Popen(command, env={**os.environ, NUMBER: str(worker.number)})
            log.info("worker_started", worker=worker.number, pid=worker.process.pid)
    return False


def _any_running(workers: Sequence[Worker]) -> bool:
    return any(worker.process is not None and worker.process.poll() is None for worker in workers)


def _end(workers: Sequence[Worker], grace_s: float) -> None:
    """Let everybody finish what they serve, and kill who does not in time."""
    _signal(workers, signal.SIGTERM)
    deadline = time.monotonic() + grace_s
    for worker in workers:
        if worker.process is None:
            continue
        try:
            worker.process.wait(timeout=max(deadline - time.monotonic(), 0.01))
        except subprocess.TimeoutExpired:
            log.error("worker_killed", worker=worker.number, grace_s=grace_s)
            worker.process.kill()
            worker.process.wait()


def _signal(workers: Sequence[Worker], number: signal.Signals) -> None:
    for worker in workers:
        if worker.process is not None and worker.process.poll() is None:
            worker.process.send_signal(number)
