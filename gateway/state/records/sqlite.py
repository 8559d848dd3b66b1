"""Records in a SQLite file of their own beside the store's, so that many records never push out a summary."""

import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from gateway.state.records.base import Bounds, Query, StoredRecord
from gateway.state.store.sqlite import APPLICATION_ID, FULL_SHARE, PAGE_BYTES, Schema, Seat
from gateway.state.store.wal_index import WalIndex

UPKEEP_EVERY: Final = 32
"""Batches between two deletions of what is beyond the bounds. Chosen: some seconds under load."""
EVICT_SHARE: Final = 0.1
"""Share of the records that is deleted when the file is nearly full."""

RECORDS: Final = Schema(
    f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS exchanges (
  id TEXT PRIMARY KEY, at REAL NOT NULL, key TEXT NOT NULL, model TEXT NOT NULL, session TEXT NOT NULL,
  conversation TEXT NOT NULL, caller TEXT NOT NULL, value BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS exchanges_by_time ON exchanges (at);
CREATE INDEX IF NOT EXISTS exchanges_by_conversation ON exchanges (conversation, at);
CREATE INDEX IF NOT EXISTS exchanges_by_session ON exchanges (session, at);
CREATE INDEX IF NOT EXISTS exchanges_by_caller ON exchanges (caller);
CREATE TABLE IF NOT EXISTS texts (id TEXT PRIMARY KEY, at REAL NOT NULL, value BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS texts_by_time ON texts (at);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = 1;
COMMIT;
""",
    ("exchanges", "texts"),
    1,
)
"""The tables of the file."""


class SqliteLog:
    """Records in one file. Two threads: a reader never waits for the writer."""

    def __init__(self, path: Path, bounds: Bounds, *, clock: Callable[[], float] = time.time) -> None:
        self.bounds = bounds
        index = WalIndex(path)
        self._reader = Seat(path, bounds.max_bytes, "turnfold-records-read", index, RECORDS)
        self._writer = Seat(path, bounds.max_bytes, "turnfold-records-write", index, RECORDS)
        self._clock = clock
        self._batches = 0

    async def append(self, rows: Sequence[StoredRecord]) -> None:
        def write(connection: sqlite3.Connection) -> None:
            if self._batches % UPKEEP_EVERY == 0:
                self._keep_up(connection)
            self._batches += 1
            try:
                _insert(connection, rows)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_FULL:
                    raise
                _evict(connection)
                _insert(connection, rows)

        await self._writer.use(write)

    async def find(self, query: Query) -> list[tuple[str, bytes]]:
        terms = ["at >= ?", "at < ?"]
        values: list[Any] = [query.since, query.until]
        for column, wanted in (
            ("key", query.key), ("model", query.model), ("session", query.session), ("conversation", query.conversation),
        ):  # fmt: skip
            if wanted:
                terms.append(f"{column} = ?")
                values.append(wanted)
        sql = f"SELECT id, value FROM exchanges WHERE {' AND '.join(terms)} ORDER BY at DESC LIMIT ?"

        def read(connection: sqlite3.Connection) -> list[tuple[str, bytes]]:
            return connection.execute(sql, (*values, query.limit)).fetchall()

        return await self._reader.look_up(read, [])

    async def get(self, request_id: str) -> bytes | None:
        return await self._value("exchanges", request_id)

    async def put_text(self, request_id: str, value: bytes) -> None:
        row = (request_id, self._clock(), value)
        await self._writer.use(
            lambda connection: connection.execute("INSERT OR REPLACE INTO texts VALUES (?, ?, ?)", row)
        )

    async def text(self, request_id: str) -> bytes | None:
        return await self._value("texts", request_id)

    async def _value(self, table: str, request_id: str) -> bytes | None:
        def read(connection: sqlite3.Connection) -> bytes | None:
            row = connection.execute(f"SELECT value FROM {table} WHERE id = ?", (request_id,)).fetchone()
            return bytes(row[0]) if row else None

        return await self._reader.look_up(read, None)

    async def forget(self, caller: str | None) -> int:
        def erase(connection: sqlite3.Connection) -> int:
            if caller is None:
                connection.execute("DELETE FROM texts")
                gone = connection.execute("DELETE FROM exchanges").rowcount
            else:
                connection.execute(
                    "DELETE FROM texts WHERE id IN (SELECT id FROM exchanges WHERE caller = ?)", (caller,)
                )
                gone = connection.execute("DELETE FROM exchanges WHERE caller = ?", (caller,)).rowcount
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # the log would hold deleted rows
            return gone

        return await self._writer.look_up(erase, 0)

    async def close(self) -> None:
        await self._reader.close()
        await self._writer.close()

    def _keep_up(self, connection: sqlite3.Connection) -> None:
        """Delete what is too old, too much or too large."""
        oldest = self._clock() - self.bounds.keep_s
        row = connection.execute(
            "SELECT at FROM exchanges ORDER BY at DESC LIMIT 1 OFFSET ?", (self.bounds.most,)
        ).fetchone()
        _delete_before(connection, max(oldest, row[0]) if row else oldest)
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        (free,) = connection.execute("PRAGMA freelist_count").fetchone()
        if (pages - free) * PAGE_BYTES > FULL_SHARE * self.bounds.max_bytes:
            _evict(connection)


def _insert(connection: sqlite3.Connection, rows: Sequence[StoredRecord]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.executemany("INSERT OR REPLACE INTO exchanges VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
    except BaseException:
        if connection.in_transaction:  # a full disk ends it by itself
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _evict(connection: sqlite3.Connection) -> None:
    """Delete the oldest tenth, and all texts of that time."""
    (count,) = connection.execute("SELECT count(*) FROM exchanges").fetchone()
    row = connection.execute(
        "SELECT at FROM exchanges ORDER BY at LIMIT 1 OFFSET ?", (int(count * EVICT_SHARE),)
    ).fetchone()
    if row:
        _delete_before(connection, row[0])


def _delete_before(connection: sqlite3.Connection, moment: float) -> None:
    connection.execute("DELETE FROM exchanges WHERE at <= ?", (moment,))
    connection.execute("DELETE FROM texts WHERE at <= ?", (moment,))
