"""The index of SQLite's write-ahead log, the file ``-shm``: it gets its size back when another program has cut it short.

SQLite maps the file into memory, and a process that reads behind the end of a mapped file is killed by SIGBUS. In a file of zeros SQLite
recognises an index that is not valid, and makes it anew from the log, as after a crash.
"""

import os
from pathlib import Path

import structlog
from msgspec import Struct

log = structlog.get_logger(__name__)


class Mapped(Struct, frozen=True):
    """The file as it was after its last use."""

    device: int
    inode: int
    size: int


class WalIndex:
    """The index of a database. All connections of a process share it, as SQLite's share one mapping; each calls it before and after its
    uses."""

    def __init__(self, database: Path) -> None:
        self._path = database.with_name(f"{database.name}-shm")
        self._last: Mapped | None = None

    def note(self) -> None:
        """Note the size that is mapped now. While a database is open, its index never becomes smaller."""
        last, now = self._last, self._now()
        if now is not None and (last is None or not _is_cut(now, last)):
            self._last = now

    def mend(self) -> None:
        """Give the file its size back if it has been cut.

        It is emptied first, because an index whose beginning is whole would count as valid. Both by its path: closing a file that was opened
        here would drop the locks that SQLite has on it.
        """
        last, now = self._last, self._now()
        if last is not None and now is not None and _is_cut(now, last):
            os.truncate(self._path, 0)
            os.truncate(self._path, last.size)
            log.warning("store_index_mended", path=str(self._path))

    def forget(self) -> None:
        """Forget the file, because a connection was closed: a new file may be shorter, and get the number of the old one."""
        self._last = None

    def _now(self) -> Mapped | None:
        try:
            status = self._path.stat()
        except OSError:
            return None  # it was deleted, which does not harm a process that has it mapped
        return Mapped(status.st_dev, status.st_ino, status.st_size)


def _is_cut(now: Mapped, last: Mapped) -> bool:
    return now.size < last.size and (now.device, now.inode) == (last.device, last.inode)
