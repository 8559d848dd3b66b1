"""What can happen to a file, and what it costs: a value, never a request."""

import asyncio
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.state.store import open_store
from gateway.state.store.base import Store
from gateway.state.store.sqlite import Seat, SqliteStore
from gateway.state.store.wal_index import WalIndex
from tests.running import ROOT
from tests.state.store.conftest import KEY, PATIENCE_S

HOUR_S = 3600.0


def at(path: Path, max_bytes: int | None = None, key: str = "") -> Store:
    return open_store(
        f"sqlite:///{path}",
        max_bytes=max_bytes,
        encryption_key=key,
        timeout_s=PATIENCE_S,
    )


def contents(directory: Path) -> dict[str, bytes]:
    """Every file in a directory and what it holds."""
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def modes(directory: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in directory.iterdir()}


def remove_all(directory: Path) -> None:
    for path in directory.iterdir():
        path.unlink()


async def test_a_new_file_may_be_opened_by_several_at_once(tmp_path: Path) -> None:
    """Each store has two connections of its own, and workers start together."""
    for number in range(20):
        stores = [SqliteStore(tmp_path / f"{number}.db") for _ in range(3)]
        try:
            calls = [each for store in stores for each in (store.get("summary", "a"), store.add("n", 1, ttl_s=HOUR_S))]
            answers = await asyncio.gather(*calls)
        finally:
            for store in stores:
                await store.close()
        assert answers[::2] == [None] * 3
        assert sorted(filter(None, answers[1::2])) == [1, 2, 3]


async def test_a_minute_that_a_clock_goes_through_twice_is_counted_anew(tmp_path: Path) -> None:
    hours = [10.0]
    store = SqliteStore(tmp_path / "t.db", clock=lambda: hours[0] * HOUR_S)
    for _ in range(3):
        await store.add("requests.a.1", 1, ttl_s=120)
    hours[0] -= 1
    assert [await store.add("requests.a.1", 1, ttl_s=120) for _ in range(2)] == [1, 2]
    await store.close()


async def test_a_job_that_a_clock_ahead_claimed_is_free_when_it_is_set_back(tmp_path: Path) -> None:
    hours = [1000.0]
    store = SqliteStore(tmp_path / "t.db", clock=lambda: hours[0] * HOUR_S)
    assert await store.claim("cut", ttl_s=60)
    hours[0] -= 0.5
    assert not await store.claim("cut", ttl_s=60)
    hours[0] -= 500
    assert await store.claim("cut", ttl_s=60)
    await store.close()


async def test_values_outlive_the_process(tmp_path: Path) -> None:
    first = at(tmp_path / "new" / "folder" / "t.db")
    await first.put("summary", "a", b"words", ttl_s=HOUR_S)
    await first.close()
    second = at(tmp_path / "new" / "folder" / "t.db")
    assert await second.get("summary", "a") == b"words"
    await second.close()


async def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    store = at(tmp_path / "t.db")
    await store.put("summary", "a", b"words", ttl_s=HOUR_S)
    assert modes(tmp_path) == {"t.db": 0o600, "t.db-wal": 0o600, "t.db-shm": 0o600}
    await store.close()


async def test_two_stores_on_one_file_share_values_and_jobs(tmp_path: Path) -> None:
    one, other = at(tmp_path / "t.db"), at(tmp_path / "t.db")
    await one.put("window", "gpt", b"8192", ttl_s=HOUR_S)
    assert await other.get("window", "gpt") == b"8192"
    claims = await asyncio.gather(*(store.claim(f"cut {n}", ttl_s=HOUR_S) for n in range(20) for store in (one, other)))
    assert [sum(claims[n : n + 2]) for n in range(0, 40, 2)] == [1] * 20
    await other.release("cut 0" if claims[0] else "cut 1")
    assert await one.claim("cut 0", ttl_s=HOUR_S) is False, "nobody releases another's job"
    await one.close()
    await other.close()


def write_until_killed(path: Path, values: int) -> None:
    """Let another process write, and kill it in the middle of it after so many values."""
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    for _ in range(values):
        writer.stdout.readline()
    writer.kill()
    writer.communicate(timeout=10)


async def test_a_killed_writer_leaves_a_good_file(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    write_until_killed(path, 20)
    store = at(path)
    found = await store.get_many("usage", [str(number) for number in range(20)])
    assert len(found) == 20
    await store.close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


WRITER = """
import asyncio, itertools, sys
from gateway.state.store import open_store
async def write():
    store = open_store(f"sqlite:///{sys.argv[1]}")
    for number in itertools.count():
        await store.put("usage", str(number), b"x" * 5000, ttl_s=3600)
        print(number, flush=True)
asyncio.run(write())
"""


async def test_a_locked_file_still_answers_and_drops_what_it_cannot_take(tmp_path: Path) -> None:
    store = at(tmp_path / "t.db")
    await store.put("summary", "a", b"before", ttl_s=HOUR_S)
    holder = sqlite3.connect(tmp_path / "t.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    await store.put("summary", "a", b"after", ttl_s=HOUR_S)
    assert await store.get("summary", "a") == b"before"
    assert await store.claim("cut", ttl_s=HOUR_S) is False
    holder.execute("ROLLBACK")
    holder.close()
    await store.put("summary", "b", b"later", ttl_s=HOUR_S)
    assert await store.get("summary", "b") == b"later"
    await store.close()


async def test_a_place_where_no_file_can_be_is_a_store_that_knows_nothing() -> None:
    failures: list[tuple[str, str]] = []
    store = open_store(
        "sqlite:////proc/turnfold/t.db", failed=lambda operation, reason: failures.append((operation, reason))
    )
    await store.put("summary", "a", b"words", ttl_s=HOUR_S)
    assert await store.get("summary", "a") is None
    assert await store.get_many("summary", ["a"]) == {}
    assert await store.claim("cut", ttl_s=HOUR_S) is False
    await store.release("cut")
    with pytest.raises(OSError):
        await store.forget(None)
    await store.close()
    assert [operation for operation, _ in failures] == ["put", "claim", "release"], "reading finds nothing there"


async def test_a_file_that_went_away_is_started_anew(tmp_path: Path) -> None:
    store = at(tmp_path / "t.db")
    await store.put("summary", "a", b"words", ttl_s=HOUR_S)
    remove_all(tmp_path)
    await store.put("summary", "b", b"more", ttl_s=HOUR_S)
    assert await store.get_many("summary", ["a", "b"]) == {"b": b"more"}
    await store.close()


async def test_a_file_that_another_program_emptied_is_started_anew(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    stores = [at(path), at(path)]
    for store in stores:
        await store.put("summary", "a", b"words", ttl_s=HOUR_S)
        assert await store.get("summary", "a") == b"words"
    for emptied in (path, path.with_name("t.db-wal")):
        os.truncate(emptied, 0)
    for store in stores:
        await store.put("summary", "b", b"words", ttl_s=HOUR_S)
    for store in (*stores, at(path)):
        assert [await store.get("summary", key) for key in "ab"] == [None, b"words"]
        await store.close()


WORKER = """
import asyncio, sys
from pathlib import Path
from gateway.state.store.sqlite import SqliteStore

async def main():
    store = SqliteStore(Path(sys.argv[1]))
    for line in sys.stdin:
        match line.split():
            case ["put", key]:
                await store.put("summary", key, b"words", ttl_s=3600)
                print("done", flush=True)
            case ["count"]:
                found = await store.get_many("summary", [str(number) for number in range(100)])
                print(len(found), flush=True)
    await store.close()

asyncio.run(main())
"""


class Worker:
    """A process that uses the store as it is told to."""

    def __init__(self, path: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    def told(self, order: str) -> str:
        """Give an order; return the answer, empty if the process has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{order}\n")
        self._process.stdin.flush()
        return next((line.strip() for line in self._process.stdout if "store_index_mended" not in line), "")

    def end(self) -> int:
        self._process.communicate(timeout=60)
        return self._process.returncode


@pytest.mark.parametrize("size", [0, 100, 4096, 20_000])
def test_a_cut_index_kills_no_process(tmp_path: Path, size: int) -> None:
    """SQLite has it mapped into memory: reading behind its end is SIGBUS."""
    path = tmp_path / "t.db"
    workers = [Worker(path), Worker(path)]
    for number in range(20):
        assert workers[number % 2].told(f"put {number}") == "done"
    for round in range(4):
        for worker in workers:
            os.truncate(path.with_name("t.db-shm"), size)
            assert worker.told("count") == str(20 + 2 * round)
        for worker, key in zip(workers, (20 + 2 * round, 21 + 2 * round), strict=True):
            os.truncate(path.with_name("t.db-shm"), size)
            assert worker.told(f"put {key}") == "done"
    os.truncate(path.with_name("t.db-shm"), size)
    assert [worker.end() for worker in workers] == [0, 0]
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("SELECT count(*) FROM facts").fetchone() == (28,)
    connection.close()


@pytest.mark.parametrize("content", [b"models:\n  gpt-4o: {context_window: 128000}\n" * 50, b"\x00" * 8192])
async def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "turnfold.yaml"
    path.write_bytes(content)
    store = at(path)
    await store.put("summary", "a", b"words", ttl_s=HOUR_S)
    assert await store.get("summary", "a") is None
    await store.close()
    assert path.read_bytes() == content


async def test_another_programs_database_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "accounts.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE facts (kind TEXT)")
    connection.close()
    content = path.read_bytes()
    store = at(path)
    await store.put("summary", "a", b"words", ttl_s=HOUR_S)
    assert await store.get("summary", "a") is None
    await store.close()
    assert path.read_bytes() == content


async def test_a_new_file_is_not_set_aside_for_the_fault_of_the_old_one(tmp_path: Path) -> None:
    """Several threads and workers find the same damage, one after the other."""
    path = tmp_path / "t.db"
    seat = Seat(path, 2**20, "test", WalIndex(path))
    await seat.use(lambda connection: None)

    def replaced_meanwhile(connection: sqlite3.Connection) -> None:
        path.rename(tmp_path / "old")
        new = sqlite3.connect(path)
        new.execute("PRAGMA application_id = 0x7475726E")
        new.execute("CREATE TABLE new (a)")
        new.close()
        error = sqlite3.DatabaseError("malformed")
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error

    with pytest.raises(sqlite3.DatabaseError):
        await seat.use(replaced_meanwhile)
    await seat.close()
    assert path.exists()
    assert not path.with_name("t.db.damaged").exists()


async def test_a_damaged_file_is_set_aside_and_a_new_one_started(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    store = at(path)
    for number in range(200):
        await store.put("summary", str(number), b"x" * 3000, ttl_s=HOUR_S)
    await store.close()
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    path.write_bytes(content)
    store = at(path)
    assert await store.get("summary", "1") is None
    await store.put("summary", "1", b"new", ttl_s=HOUR_S)
    await store.put("summary", "2", b"new", ttl_s=HOUR_S)
    assert await store.get("summary", "2") == b"new"
    assert (tmp_path / "t.db.damaged").exists()
    await store.close()


async def test_the_file_stays_small_and_the_oldest_go_first(tmp_path: Path) -> None:
    limit = 1024 * 1024
    store = at(tmp_path / "t.db", max_bytes=limit)
    for number in range(1500):
        await store.put("summary", str(number), bytes(3000), ttl_s=HOUR_S)
    assert (tmp_path / "t.db").stat().st_size <= limit
    assert await store.get("summary", "0") is None
    newest = [str(number) for number in range(1350, 1500)]
    assert len(await store.get_many("summary", newest)) == 150
    await store.close()


async def test_what_expired_makes_room(tmp_path: Path) -> None:
    store = at(tmp_path / "t.db")
    for number in range(600):
        await store.put("usage", str(number), b"x", ttl_s=0.001)
    await store.close()
    with sqlite3.connect(tmp_path / "t.db") as connection:
        (rows,) = connection.execute("SELECT count(*) FROM facts").fetchone()
    connection.close()
    assert rows < 300


async def test_a_changed_value_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    store = at(path)
    for key in ("flipped", "foreign", "moved", "whole"):
        await store.put("summary", key, b"words of " + key.encode(), ttl_s=HOUR_S)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE facts SET value = CAST(value || 'x' AS BLOB) WHERE key = 'flipped'")
        connection.execute("UPDATE facts SET value = 'somebody else''s text' WHERE key = 'foreign'")
        connection.execute("UPDATE facts SET value = (SELECT value FROM facts WHERE key = 'whole') WHERE key = 'moved'")
    connection.close()
    assert await store.get_many("summary", ["flipped", "foreign", "moved", "whole"]) == {"whole": b"words of whole"}
    await store.close()


@pytest.mark.parametrize("scope", ["alice", None])
async def test_what_was_forgotten_is_nowhere_on_the_disk(tmp_path: Path, scope: str | None) -> None:
    store = at(tmp_path / "t.db")
    for number in range(50):
        await store.put("summary", str(number), b"the secret plan " * 100, ttl_s=HOUR_S, scope="alice.openai")
    assert any(b"the secret plan" in content for content in contents(tmp_path).values())
    await store.forget(scope)
    assert not any(b"the secret plan" in content for content in contents(tmp_path).values())
    await store.close()


async def test_encrypted_values_cannot_be_read_from_the_disk(tmp_path: Path) -> None:
    store = at(tmp_path / "t.db", key=KEY)
    await store.put("summary", "a", b"the secret plan", ttl_s=HOUR_S)
    assert await store.get("summary", "a") == b"the secret plan"
    assert not any(b"secret" in content for content in contents(tmp_path).values())
    await store.close()


async def test_a_process_that_leaves_takes_nothing_away_from_one_that_stays(tmp_path: Path) -> None:
    """Its writes are seen. It must not take itself for the last one: then it deletes the log under the other's connections."""
    path = tmp_path / "facts.db"
    staying = SqliteStore(path)
    await staying.put("ratio", "k", b"before", ttl_s=60)
    assert await staying.get("ratio", "k") == b"before"
    leaving = (
        "import asyncio, pathlib, sys\n"
        "from gateway.state.store.sqlite import SqliteStore\n"
        "async def main():\n"
        "    store = SqliteStore(pathlib.Path(sys.argv[1]))\n"
        "    await store.put('ratio', 'k', sys.argv[2].encode(), ttl_s=60)\n"
        "    await store.close()\n"
        "asyncio.run(main())\n"
    )
    for value in ("after", "later"):
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", leaving, str(path), value, cwd=ROOT)
        assert await process.wait() == 0
        assert await staying.get("ratio", "k") == value.encode()
    await staying.close()
