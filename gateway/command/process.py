"""The common part of `turnfold serve` and `turnfold extproc` as processes: how they fail, and how they reload their file."""

import asyncio
import os
import resource
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from gateway.config import Settings, SettingsError, dangers
from gateway.config.reload import Adopt, Watcher
from gateway.serve.gateway import Gateway

SWITCH_S: Final = 0.0001
"""Seconds after which a folding thread yields to the event loop, which asks for the interpreter's lock once for each event. Under
`python -m benchmarks.load` 1 ms made the slowest hundredth of its steps 53 ms late, 0.3 ms 15, 0.1 ms 10; bodies took 5 % longer."""


WANTED_DESCRIPTORS: Final = 65_536
"""File descriptors of one process: two for each stream. Chosen: more streams than one core serves."""


def prepare() -> None:
    """Prepare a process that serves."""
    _open_standard_streams()
    sys.setswitchinterval(SWITCH_S)
    _allow_descriptors()


def _open_standard_streams() -> None:
    """Open the standard streams that the starting program has closed. Otherwise a socket or the store would get the number of stderr,
    and what a library writes there."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, this one
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)


def _allow_descriptors() -> None:
    """Raise the limit of open files as far as the system lets this process. Shells and service managers start with 1,024, for programs
    that use `select`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(WANTED_DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):  # macOS allows fewer than its hard limit says
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def fail(problems: Iterable[str]) -> int:
    """Tell each problem in one line on stderr; return the exit status."""
    for problem in problems:
        sys.stderr.write(f"turnfold: {problem}\n")
    return 1


def safe(settings: Settings) -> Settings:
    """Return settings that are safe to serve. Raises SettingsError for settings that expose keys or the admin port, or make the gateway
    call itself."""
    if problems := [f"{place}: {problem}." for place, problem in dangers(settings)]:
        raise SettingsError(problems)
    return settings


def watch(file: Path, loaded: Settings, gateway: Gateway, adopt: Adopt) -> None:
    """Read the file again when it differs from the ``loaded`` settings, and at SIGHUP. ``adopt`` takes settings over, or raises SettingsError."""
    watcher = Watcher(file, os.environ, loaded, adopt, on_refused=gateway.note_refused_settings)
    gateway.tasks.start(watcher.run(), "watch")
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, lambda: gateway.tasks.start(watcher.reload(), "reload"))
