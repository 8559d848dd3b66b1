"""A share of a processor for one process, enforced by Linux control groups: it gets no more, however idle the machine is."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

PERIOD_US: Final = 100_000
"""Microseconds after which a share is given anew: the default of the kernel."""
FIRST: Final = Path("/sys/fs/cgroup/cpu")
"""Where groups are made with version 1 of control groups."""
SECOND: Final = Path("/sys/fs/cgroup")
"""Where groups are made with version 2, as root of the machine."""


def unavailable() -> str:
    """Return why no share can be set, or ""."""
    return "" if os.access(_root(), os.W_OK) else f"control groups cannot be made: {_root()} is not writable (be root)."


@contextmanager
def limited(pid: int, share: float) -> Iterator[None]:
    """Let a process and its threads have so much of one processor. It must have ended when this ends."""
    group = _root() / f"turnfold-{pid}"
    group.mkdir()
    try:
        quota_us = int(share * PERIOD_US)
        if _root() == FIRST:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(quota_us))
        else:
            (group / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
        (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        group.rmdir()


def _root() -> Path:
    return SECOND if (SECOND / "cgroup.controllers").exists() else FIRST
