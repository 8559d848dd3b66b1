"""Several serving processes on one port: a supervisor starts them, restarts crashed ones, and stops them together.

The supervisor listens on the client port and deals the connections (`gateway.command.dealing`). A worker that dies
takes only its own streams with it. One whose event loop hangs gets no connections, and is replaced when it has hung for long. Shared knowledge goes through the store. Worker ``n`` has the admin port
``admin.port + n``. Each admin port shows all workers: the workers ask each other over Unix sockets.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec
import structlog

from gateway.command.dealing import SILENT_AFTER_S, Dealer
from gateway.config import Copy

log = structlog.get_logger(__name__)

FOLDER: Final = "TURNFOLD_WORKERS_FOLDER"
"""Environment variable of a worker: the folder of the sockets over which workers ask each other."""
NUMBER: Final = "TURNFOLD_WORKER"
"""Environment variable of a worker: its number, counted from 0."""
CHANNEL: Final = "TURNFOLD_WORKER_CHANNEL"
"""Environment variable of a worker: the file descriptor over which it gets its connections."""
SUPERVISOR: Final = "TURNFOLD_SUPERVISOR"
"""Environment variable of a worker: the process id of its supervisor."""
KEPT: Final = ".kept"
"""The end of the names of empty files in the workers' folder: each names a part of the configuration that must stay."""

COPY: Final = "last-good"
"""The name of a file in the workers' folder: the configuration that a worker took up last."""

FIRST_PAUSE_S: Final = 0.5
"""Pause before the first restart; doubled with each further crash."""
LONGEST_PAUSE_S: Final = 30.0
"""Longest pause before a restart. Chosen: an operator who repairs the cause waits no longer."""
STEADY_S: Final = 30.0
"""A worker that ran this long has recovered: its next crash counts as the first one."""
EARLY_CRASH_S: Final = 5.0
"""Seconds after the start. A crash within them is an early crash; see `MOST_EARLY_CRASHES`."""
MOST_EARLY_CRASHES: Final = 3
"""Early crashes in a row, with no other worker running, after which restarts are given up."""
REPLACED_AFTER_S: Final = 60.0
"""Seconds of silence after which a worker is killed, so that its clients notice and another takes its place. Chosen: a machine that swaps
may take longer than a few seconds, and a person with a debugger needs some time."""
POLL_S: Final = 0.1
"""Interval at which the supervisor checks its workers. Chosen: not noticed by a person who waits."""
STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def number() -> int:
    """Return this worker's number; 0 when there is only one process."""
    return int(os.environ.get(NUMBER, "0"))


def folder() -> Path | None:
    """Return where the workers' sockets are; None when there is only one process."""
    return Path(os.environ[FOLDER]) if FOLDER in os.environ else None


def channel() -> socket.socket | None:
    """Return the socket over which this worker gets its connections; None when there is only one process. Called once."""
    if CHANNEL not in os.environ:
        return None
    found = socket.socket(fileno=int(os.environ[CHANNEL]))
    found.set_inheritable(False)
    return found


def keep(parts: Iterable[str]) -> None:
    """Note parts of the configuration that no worker of this supervisor may lose. One that starts later reads the file, which may have
    been cut short meanwhile. Does nothing when there is only one process. Raises OSError."""
    if (notes := folder()) is not None:
        for part in parts:
            (notes / f"{part}{KEPT}").touch()


def kept() -> list[str]:
    """Return the parts of the configuration that a worker has noted; none when there is only one process."""
    notes = folder()
    return sorted(note.stem for note in notes.glob(f"*{KEPT}")) if notes is not None else []


def keep_copy(copy: Copy) -> None:
    """Keep a configuration for workers that start while the file is broken. Does nothing when there is only one process. Raises OSError."""
    if (notes := folder()) is not None:
        written = notes / f"{COPY}.{number()}"
        written.write_bytes(msgspec.msgpack.encode(copy))
        written.replace(notes / COPY)


def kept_copy() -> Copy | None:
    """Return the configuration that a worker took up last; None if there is none, or only one process."""
    if (notes := folder()) is None:
        return None
    try:
        return msgspec.msgpack.decode((notes / COPY).read_bytes(), type=Copy)
    except (OSError, msgspec.MsgspecError):
        return None


def clear_folder() -> None:
    """Remove the workers' folder at the end of a worker whose supervisor was killed: nothing else would, and the configuration is in it."""
    if (notes := folder()) is not None and os.environ.get(SUPERVISOR) != str(os.getppid()):
        shutil.rmtree(notes, ignore_errors=True)  # the other workers do the same


def is_worker() -> bool:
    """Return whether a supervisor started this process."""
    return NUMBER in os.environ


class Worker(msgspec.Struct):
    """One worker's process and its restarts."""

    number: int
    folder: str
    """Where the workers' sockets are."""
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    crashes: int = 0
    """Crashes in a row."""
    due: float = 0.0
    """The time of the next start."""
    silent: bool = False
    """Whether it gets no connections, because it shows no sign of life."""


def socket_folder() -> tempfile.TemporaryDirectory[str]:
    """Make the folder of the sockets over which workers ask each other; only this user may enter it. Raises OSError when there can be
    none: no temporary folder can be written, or its path is too long for a socket."""
    made = tempfile.TemporaryDirectory(prefix="turnfold-")
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            path = Path(made.name) / "longest-name.sock"
            probe.bind(str(path))
            path.unlink()
    except OSError:
        made.cleanup()
        raise
    return made


def run(
    count: int,
    command: Sequence[str],
    *,
    folder: tempfile.TemporaryDirectory[str],
    listeners: Sequence[socket.socket] = (),
    grace_s: float = 35.0,
) -> int:
    """Keep ``count`` workers running until stopped, and deal them the connections of ``listeners``; return the exit status for all.

    ``command`` starts a worker, ``folder`` is that of the workers' sockets. SIGTERM and SIGINT are passed on as SIGTERM;
    workers still running after ``grace_s`` are killed. SIGHUP is passed on. Call it in the main thread.
    """
    workers = [Worker(number, folder.name) for number in range(count)]
    dealer = Dealer(listeners)
    received: set[int] = set()  # handlers only set a flag: a lock in one could wait for the code it interrupted
    before = {
        each: signal.signal(each, lambda number, _: received.add(number)) for each in (*STOP_SIGNALS, signal.SIGHUP)
    }
    try:
        while received.isdisjoint(STOP_SIGNALS):
            if signal.SIGHUP in received:
                received.discard(signal.SIGHUP)
                _signal(workers, signal.SIGHUP)
            if _check_workers(workers, command, dealer, time.monotonic()):
                return 1
            dealer.serve(POLL_S)
            for worker in workers:
                _check_life(worker, dealer.silence_s(worker.number))
        return 0
    finally:
        dealer.close()
        _stop(workers, grace_s)
        folder.cleanup()
        for each, handler in before.items():
            signal.signal(each, handler)


def _check_workers(workers: Sequence[Worker], command: Sequence[str], dealer: Dealer, now: float) -> bool:
    """Start workers that are due, and record workers that died; return whether no worker can start at all."""
    for worker in workers:
        status = _exit_status(worker)
        if status is None and worker.process is None and now >= worker.due:
            status = _start(worker, command, dealer, now)
        if status is None:
            continue
        dealer.end(worker.number)
        _note_death(worker, status, now)
        crashed_early = worker.crashes >= MOST_EARLY_CRASHES and now - worker.started < EARLY_CRASH_S
        if crashed_early and all(other.process is None for other in workers):
            log.error("workers_cannot_start", status=status)
            return True
    return False


def _check_life(worker: Worker, silence_s: float) -> None:
    """Log when a worker falls silent and when it is back. Kill one that has been silent for long: nothing that it serves goes on, and its
    handlers of gentler signals hang with it. Then it is restarted like one that crashed."""
    silent = silence_s >= SILENT_AFTER_S
    if worker.process is None or (not silent and not worker.silent):
        return
    pid = worker.process.pid
    if silent != worker.silent:
        worker.silent = silent
        if silent:
            log.warning("worker_silent", worker=worker.number, pid=pid, silence_s=round(silence_s, 1))
        else:
            log.info("worker_back", worker=worker.number, pid=pid)
    if silence_s >= REPLACED_AFTER_S:
        log.error("worker_hangs", worker=worker.number, pid=pid, silence_s=round(silence_s, 1))
        worker.process.kill()
        worker.process.wait()


def _exit_status(worker: Worker) -> int | None:
    """Return the exit status of a worker's process; None while it runs, or when there is none."""
    return None if worker.process is None else worker.process.poll()


def _start(worker: Worker, command: Sequence[str], dealer: Dealer, now: float) -> int | None:
    """Start a worker. Return an error number when the system cannot start a process now: it is tried again later."""
    worker.started = now
    # The worker inherits this: SIGHUP must not end it while it still loads its code.
    previous_handler = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    worker_end = dealer.begin(worker.number)
    variables = {
        NUMBER: str(worker.number),
        FOLDER: worker.folder,
        CHANNEL: str(worker_end.fileno()),
        SUPERVISOR: str(os.getpid()),
    }
    try:
        worker.process = subprocess.Popen(command, env={**os.environ, **variables}, pass_fds=(worker_end.fileno(),))
    except OSError as error:
        return error.errno or -1
    finally:
        worker_end.close()
        signal.signal(signal.SIGHUP, previous_handler)
    log.info("worker_started", worker=worker.number, pid=worker.process.pid)
    return None


def _note_death(worker: Worker, status: int, now: float) -> None:
    """Set the time of a dead worker's next start, later with each crash in a row."""
    lived_s = now - worker.started
    worker.process, worker.silent = None, False
    worker.crashes = 1 if lived_s > STEADY_S else worker.crashes + 1
    pause_s = min(FIRST_PAUSE_S * 2 ** (worker.crashes - 1), LONGEST_PAUSE_S)
    worker.due = now + pause_s
    log.error("worker_died", worker=worker.number, status=status, lived_s=round(lived_s, 1), pause_s=pause_s)


def _stop(workers: Sequence[Worker], grace_s: float) -> None:
    """Let all workers finish their requests; kill those that do not finish in time."""
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
        if worker.process is not None:
            worker.process.send_signal(number)  # does nothing after its end
