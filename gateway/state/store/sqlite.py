"""A store in one SQLite file, the default: several workers share it, and it survives a crash.

Two threads own one connection each. In WAL mode a reader never waits for a writer, so a slow disk delays only writes.
This class raises SQLite's exceptions; `gateway.state.store.guard` handles them.
"""

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar
from uuid import uuid4

import msgspec
import structlog

from gateway.state.store.wal_index import WalIndex

log = structlog.get_logger(__name__)

DEFAULT_MAX_BYTES: Final = 256 * 1024 * 1024
"""Bytes of the file. Chosen: a small share of any disk."""
PAGE_BYTES: Final = 4096
"""SQLite's default page: https://www.sqlite.org/pragma.html#pragma_page_size"""
BUSY_TIMEOUT_S: Final = 0.2
"""The longest a writer waits for another process's writer: a hundred times the duration of one write."""
ASK_AGAIN_S: Final = 0.01
"""Time after which the mode of a new file is set again. Chosen: several times the duration of one write."""
LONGEST_CLAIM_S: Final = 86400.0
"""Seconds. A claim that ends later is from before the clock was set back: no job takes a day."""
UPKEEP_EVERY: Final = 256
"""Writes between two deletions of expired values."""
FULL_SHARE: Final = 0.9
"""Share of the largest size at which old values are deleted. Chosen: writes between two checks still fit."""
EVICT_SHARE: Final = 0.1
"""Share of the values that one deletion removes."""
KEYS_PER_QUERY: Final = 500
"""Parameters of one statement; SQLite before 3.32 allows at most 999."""

APPLICATION_ID: Final = 0x7475726E
""""turn" in ASCII. A file with another id is foreign and stays untouched."""
SCHEMA_VERSION: Final = 1
"""Version of the tables; those of another version are dropped and made anew."""
SCHEMA: Final = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS facts (
  kind TEXT NOT NULL, key TEXT NOT NULL, scope TEXT NOT NULL, value BLOB NOT NULL, expires REAL NOT NULL,
  PRIMARY KEY (kind, key)
);
CREATE INDEX IF NOT EXISTS facts_by_scope ON facts (scope);
CREATE INDEX IF NOT EXISTS facts_by_expiry ON facts (expires);
CREATE TABLE IF NOT EXISTS jobs (key TEXT PRIMARY KEY, owner TEXT NOT NULL, expires REAL NOT NULL) WITHOUT ROWID;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""


class Schema(msgspec.Struct, frozen=True):
    """The tables of one file of ours."""

    script: str
    """Creates them; sets the application's id and the version."""
    tables: tuple[str, ...]
    version: int


FACTS: Final = Schema(SCHEMA, ("facts", "jobs"), SCHEMA_VERSION)
"""The tables of the store."""

ADD: Final = """
INSERT INTO facts VALUES ('count', :key, '', CAST(:amount AS TEXT), :until) ON CONFLICT (kind, key) DO UPDATE SET
  value = CAST(:amount + CASE WHEN facts.expires > :now AND facts.expires <= :latest THEN CAST(facts.value AS INTEGER) ELSE 0 END AS TEXT),
  expires = CASE WHEN facts.expires > :now AND facts.expires <= :latest THEN facts.expires ELSE excluded.expires END
RETURNING value
"""
"""A count is text, so that it is never read as a value. One that ends much later than a new one would is from before the clock was set back."""

Result = TypeVar("Result")
Use = Callable[[sqlite3.Connection], Result]


class SqliteStore:
    """Values in the file at ``path``, hardly larger than ``max_bytes``; the oldest are deleted first."""

    def __init__(
        self, path: Path, *, max_bytes: int = DEFAULT_MAX_BYTES, clock: Callable[[], float] = time.time
    ) -> None:
        index = WalIndex(path)
        self._reader = Seat(path, max_bytes, "turnfold-store-read", index)
        self._writer = Seat(path, max_bytes, "turnfold-store-write", index)
        self._clock = clock
        self._owner = uuid4().hex
        self._max_pages = max(16, max_bytes // PAGE_BYTES)
        self._writes = 0

    async def get(self, kind: str, key: str) -> bytes | None:
        return (await self.get_many(kind, [key])).get(key)

    async def get_many(self, kind: str, keys: Sequence[str]) -> dict[str, bytes]:
        now = self._clock()

        def read(connection: sqlite3.Connection) -> dict[str, bytes]:
            found: dict[str, bytes] = {}
            for start in range(0, len(keys), KEYS_PER_QUERY):
                some = keys[start : start + KEYS_PER_QUERY]
                marks = ",".join("?" * len(some))
                rows = connection.execute(
                    f"SELECT key, value FROM facts WHERE kind = ? AND key IN ({marks}) AND expires > ? AND typeof(value) = 'blob'",
                    (kind, *some, now),
                )
                found.update(rows)
            return found

        return await self._reader.look_up(read, {})

    async def names(self, kind: str, most: int) -> list[str]:
        now = self._clock()

        def read(connection: sqlite3.Connection) -> list[str]:
            rows = connection.execute("SELECT key FROM facts WHERE kind = ? AND expires > ? LIMIT ?", (kind, now, most))
            return [key for (key,) in rows]

        return await self._reader.look_up(read, [])

    async def put(self, kind: str, key: str, value: bytes, *, ttl_s: float, scope: str = "") -> None:
        row = (kind, key, scope, value, self._clock() + ttl_s)

        def write(connection: sqlite3.Connection) -> None:
            try:
                connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?, ?, ?, ?)", row)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_FULL:
                    raise
                _evict(connection)
                connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?, ?, ?, ?)", row)
            self._writes += 1
            if self._writes % UPKEEP_EVERY == 0:
                self._keep_up(connection)

        await self._writer.use(write)

    async def claim(self, key: str, *, ttl_s: float) -> bool:
        now = self._clock()

        def take(connection: sqlite3.Connection) -> bool:
            taken = connection.execute(
                "INSERT INTO jobs VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE"
                " SET owner = excluded.owner, expires = excluded.expires WHERE jobs.expires <= ? OR jobs.expires > ?",
                (key, self._owner, now + ttl_s, now, now + LONGEST_CLAIM_S),
            )
            return taken.rowcount == 1

        return await self._writer.use(take)

    async def release(self, key: str) -> None:
        # Only our own claim: after it expired another process may have taken the job.
        await self._writer.use(
            lambda connection: connection.execute("DELETE FROM jobs WHERE key = ? AND owner = ?", (key, self._owner))
        )

    async def add(self, key: str, amount: int, *, ttl_s: float) -> int:
        now = self._clock()

        def count(connection: sqlite3.Connection) -> int:
            [(total,)] = connection.execute(
                ADD, {"key": key, "amount": amount, "until": now + ttl_s, "now": now, "latest": now + 2 * ttl_s}
            )
            return int(total)

        return await self._writer.use(count)

    async def forget(self, scope: str | None) -> int:
        def erase(connection: sqlite3.Connection) -> int:
            if scope is None:
                connection.execute("DELETE FROM jobs")
                connection.execute("DELETE FROM facts WHERE kind = 'count'")
                gone = connection.execute("DELETE FROM facts").rowcount
            else:
                # "." + 1 is "/": finds everything that starts with the scope and a dot, by the index.
                gone = connection.execute(
                    "DELETE FROM facts WHERE scope = ? OR (scope >= ? AND scope < ?)", (scope, f"{scope}.", f"{scope}/")
                ).rowcount
            # Deleted rows are overwritten (secure_delete), but the log holds them until it is emptied.
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return gone

        return await self._writer.use(erase)

    async def close(self) -> None:
        await self._reader.close()
        await self._writer.close()

    def _keep_up(self, connection: sqlite3.Connection) -> None:
        now = self._clock()
        connection.execute("DELETE FROM facts WHERE expires <= ?", (now,))
        connection.execute("DELETE FROM jobs WHERE expires <= ?", (now,))
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        (free,) = connection.execute("PRAGMA freelist_count").fetchone()
        if pages - free > FULL_SHARE * self._max_pages:
            _evict(connection)


class Seat:
    """One thread with its own connection, opened at the first use and again when the file changed."""

    def __init__(self, path: Path, max_bytes: int, name: str, index: WalIndex, schema: Schema = FACTS) -> None:
        self._path = path
        self._schema = schema
        self._max_pages = max(16, max_bytes // PAGE_BYTES)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._connection: sqlite3.Connection | None = None
        self._file = (0, 0)
        self._index = index

    async def use(self, work: Use[Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._work, work)

    async def look_up(self, work: Use[Result], otherwise: Result) -> Result:
        """Do work that needs no file: without one return ``otherwise``, so that reading and deleting never create one."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._look_up, work, otherwise)

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._disconnect)
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _work(self, work: Use[Result]) -> Result:
        connection = self._connect()
        try:
            return work(connection)
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                damaged = self._file
                self._disconnect()
                if _identity(self._path) == damaged:  # else another connection has begun a new one meanwhile
                    _set_aside(self._path)
            raise
        finally:
            self._index.note()

    def _look_up(self, work: Use[Result], otherwise: Result) -> Result:
        return self._work(work) if self._path.exists() else otherwise

    def _connect(self) -> sqlite3.Connection:
        self._index.mend()
        if self._connection is not None:
            if _identity(self._path) == self._file:
                if self._path.stat().st_size:
                    return self._connection
                _remove(
                    self._path
                )  # another program emptied it; while any process has it open, it cannot be begun again
            self._disconnect()  # the file was deleted or replaced, which may happen at any time
        try:
            self._connection = _open(self._path, self._max_pages, self._schema)
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                _set_aside(self._path)
            raise
        self._file = _identity(self._path)
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._index.mend()
            connection.close()
            self._index.forget()


def _open(path: Path, max_pages: int, schema: Schema) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    _create(path)
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
    try:
        # In this order: tables and id are written at once, and another connection may do so between the two lines.
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        if tables and application != APPLICATION_ID:
            raise FileExistsError("this database belongs to another program")
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        _write_ahead(connection)
        connection.execute("PRAGMA synchronous = NORMAL")  # a power failure loses the last writes, never the file
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute(f"PRAGMA journal_size_limit = {8 * 1024 * 1024}")
        connection.execute(f"PRAGMA max_page_count = {max_pages}")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version != schema.version:
            dropped = "".join(f"DROP TABLE IF EXISTS {table};" for table in schema.tables) if version else ""
            connection.executescript(dropped + schema.script)
    except BaseException:
        connection.close()
        raise
    return connection


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Set the journal's mode. SQLite does not wait for another connection that does the same to a new file, so this asks again."""
    patience_s = BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or patience_s <= 0.0:
                raise
            time.sleep(ASK_AGAIN_S)
            patience_s -= ASK_AGAIN_S
        else:
            return


def _create(path: Path) -> None:
    """Create the file for this user alone, because summaries contain users' words; SQLite gives its log the same mode.

    Never open an existing file: when a process closes a file anywhere, POSIX drops all its locks on it, including those
    of its SQLite connections. Another process would then consider itself the last one and delete the log.
    """
    if path.exists():
        return
    # Under another name first: a connection may open the real one at any moment.
    draft = path.with_name(f"{path.name}.{uuid4().hex}.new")
    os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        os.link(draft, path)
    except FileExistsError:
        pass  # another connection was faster
    except OSError:  # a file system without hard links
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    finally:
        draft.unlink()


def foreign(path: Path) -> str:
    """Return why a file is not one of ours, which then stays untouched; empty for ours, an empty one and none."""
    try:
        # "immutable" reads without locks, and makes no file beside it.
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    except sqlite3.Error:
        return ""
    try:
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (application,) = connection.execute("PRAGMA application_id").fetchone()
    except sqlite3.DatabaseError as error:
        return "is not a database of SQLite" if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB else ""
    finally:
        connection.close()
    return "is a database of another program" if tables and application != APPLICATION_ID else ""


def _evict(connection: sqlite3.Connection) -> None:
    """Delete the oldest tenth. Row ids grow with each write, so the smallest are the oldest."""
    connection.execute(
        "DELETE FROM facts WHERE rowid IN (SELECT rowid FROM facts ORDER BY rowid LIMIT"
        f" 1 + (SELECT CAST(count(*) * {EVICT_SHARE} AS INTEGER) FROM facts))"
    )


def _identity(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return (0, 0)
    return (status.st_dev, status.st_ino)


def _set_aside(path: Path) -> None:
    """Rename a damaged file of ours, so that the next use creates a new one. Foreign files stay untouched."""
    with path.open("rb") as file:
        head = file.read(72)
    ours = head[:16] == b"SQLite format 3\0" and head[68:72] == APPLICATION_ID.to_bytes(4, "big")
    if not ours:
        log.error("store_file_is_not_ours", path=str(path))
        return
    path.replace(path.with_name(path.name + ".damaged"))
    _remove(path)
    log.error("store_file_damaged", path=str(path), kept_as=path.name + ".damaged")


def _remove(path: Path) -> None:
    """Remove a file of ours and what belongs to it. Connections to it find it gone at their next use."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
