"""Open the log of records that belongs to a store."""

from pathlib import Path

from gateway.state.records.base import Bounds, RecordLog
from gateway.state.store import REDIS_SCHEMES


def open_log(url: str, bounds: Bounds) -> RecordLog | None:
    """Return the log beside a store; None for a store in memory. Nothing is opened before the first use."""
    scheme, _, rest = url.partition("://")
    if scheme == "sqlite":
        from gateway.state.records.sqlite import SqliteLog  # noqa: PLC0415 - imported when it is used

        return SqliteLog(records_file(Path(rest.partition("/")[2])), bounds)
    if scheme in REDIS_SCHEMES:
        from gateway.state.records.redis import RedisLog  # noqa: PLC0415 - optional: imported when it is used

        return RedisLog(url.replace("valkey", "redis", 1), bounds)
    return None


def missing_file(url: str) -> Path | None:
    """Return the file in which the records beside a SQLite store will be, if it does not exist yet."""
    scheme, _, rest = url.partition(":///")
    file = records_file(Path(rest))
    return file if scheme == "sqlite" and not file.exists() else None


def records_file(store: Path) -> Path:
    """Return the file of the records beside the file of a SQLite store."""
    return store.with_name(f"{store.stem}-records{store.suffix}")
