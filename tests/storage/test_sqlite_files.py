"""Opening a file: what is created, what is refused, and what reading alone may do."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from kizuki.storage import StoreBusyError, StoreError, open_store
from kizuki.storage.migrate import load_migrations
from tests.storage.writing import commit, event, record, sequences

NEWEST = load_migrations()[-1].version


@pytest.mark.parametrize("form", ["{path}", "sqlite:///{path}"])
async def test_the_forms_of_a_url(tmp_path: Path, form: str) -> None:
    """A path, or `sqlite:///` and a path, name the same file."""
    path = tmp_path / "a b%20#?.db"
    async with open_store(form.format(path=path)) as store:
        await record(store, event())
    assert path.exists()
    async with open_store(path) as store:
        assert await sequences(store) == [1]


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("mysql://localhost/x", "use a path, sqlite:///path or postgresql://"),
        ("sqlite://x", "use a path, sqlite:///path or postgresql://"),
        ("", "must be a file"),
        ("sqlite:///", "must be a file"),
        (":memory:", "must be a file"),
    ],
)
async def test_what_is_no_url(url: str, says: str) -> None:
    """Everything else is a `StoreError` that says what is allowed."""
    with pytest.raises(StoreError, match=says):
        async with open_store(url):
            pass


async def test_an_unknown_degree_of_durability(tmp_path: Path) -> None:
    """`synchronous` is full or normal."""
    with pytest.raises(StoreError, match="'full' or 'normal', not 'off'"):
        async with open_store(tmp_path / "a.db", synchronous="off"):  # type: ignore[arg-type]
            pass


@pytest.mark.parametrize(("synchronous", "level"), [("full", 2), ("normal", 1)])
async def test_the_write_connection(tmp_path: Path, synchronous: str, level: int) -> None:
    """It writes ahead, at the durability that was asked for; FULL is the default elsewhere."""
    async with open_store(tmp_path / "a.db", synchronous=synchronous) as store:  # type: ignore[arg-type]
        writer = store._writer  # type: ignore[attr-defined]
        modes = await writer.run(lambda c: [c.execute(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "journal_mode")])
    assert modes == [level, "wal"]


def _newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {NEWEST + 1}")


async def test_a_newer_database(tmp_path: Path) -> None:
    """A schema of a later release is refused, for writing and for reading, with both versions named."""
    path = tmp_path / "a.db"
    async with open_store(path):
        pass
    _newer(path)
    for read_only in (False, True):
        with pytest.raises(StoreError, match=r"has schema version \d+, this release knows versions up to \d+"):
            async with open_store(path, read_only=read_only):
                pass


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("folder", "a folder, not a database"),
        ("none/a.db", "does not exist"),
        ("text", "not a database"),
        ("foreign.db", "not one of kizuki's"),
    ],
)
async def test_what_cannot_be_opened(tmp_path: Path, name: str, says: str, read_only: bool) -> None:
    """A folder, a missing folder, a text, another program's database: a `StoreError` that names the file, and the file stays."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("no database, but long enough to have a header" * 100)
    with closing(sqlite3.connect(tmp_path / "foreign.db")) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    before = _digests(tmp_path)
    with pytest.raises(StoreError, match=f"cannot open .*{name}: .*{says}"):
        async with open_store(tmp_path / name, read_only=read_only):
            pass
    assert _digests(tmp_path) == before


async def test_reading_what_is_not_there(tmp_path: Path) -> None:
    """Rule 8.4: read-only creates no database."""
    with pytest.raises(StoreError, match="there is no such database"):
        async with open_store(tmp_path / "a.db", read_only=True):
            pass
    assert _digests(tmp_path) == {}


async def test_reading_an_empty_file(tmp_path: Path) -> None:
    """Rule 8.4: read-only does not migrate, and says what is needed."""
    (tmp_path / "a.db").touch()
    with pytest.raises(StoreError, match="open it once for writing"):
        async with open_store(tmp_path / "a.db", read_only=True):
            pass


def _digests(folder: Path) -> dict[str, str]:
    """Every file but the shared index, which is SQLite's scratch space."""
    files = [path for path in folder.iterdir() if path.is_file() and not path.name.endswith("-shm")]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


KILLED = """
import asyncio, os, signal, sys
from kizuki.storage import open_store
from tests.storage.writing import event, record

async def main():
    async with open_store(sys.argv[1]) as store:
        await record(store, event())
        await record(store, event())
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


async def _read_both(path: Path) -> None:
    async with open_store(path, read_only=True) as store:
        assert await sequences(store) == [1, 2]


def test_what_a_killed_process_left(tmp_path: Path) -> None:
    """Rule 8.4: after SIGKILL the last commits are read from the write-ahead log, and neither file changes by that."""
    path = tmp_path / "a.db"
    root = Path(__file__).parents[2]
    ended = subprocess.run([sys.executable, "-c", KILLED, str(path)], cwd=root, check=False)
    assert ended.returncode == -signal.SIGKILL
    before = _digests(tmp_path)
    assert set(before) - {"a.db-writer"} == {"a.db", "a.db-wal"}
    asyncio.run(_read_both(path))
    assert _digests(tmp_path) == before


async def test_reading_a_closed_database_does_not_change_it(tmp_path: Path) -> None:
    """Rule 8.4: with no gateway there the file stays the same, byte for byte."""
    path = tmp_path / "a.db"
    async with open_store(path) as store:
        await record(store, event())
    before = _digests(tmp_path)
    async with open_store(path, read_only=True) as store:
        assert await sequences(store) == [1]
    assert _digests(tmp_path)["a.db"] == before["a.db"]


async def test_a_lock_held_too_long(tmp_path: Path) -> None:
    """Rule 1.9: another process's lock is waited for as long as allowed, then it is `StoreBusyError`, and the store goes on."""
    path = tmp_path / "a.db"
    async with open_store(path) as store:
        with closing(sqlite3.connect(path, isolation_level=None)) as another:
            another.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreBusyError):
                await store.commit([event()], busy_timeout_s=0.01)
            another.execute("ROLLBACK")
        assert await record(store, event()) == [1]


async def test_the_database_adapter_prints_no_data(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """At DEBUG the adapter would print the parameters of statements; it is kept at INFO."""
    caplog.set_level(logging.DEBUG)
    async with open_store(tmp_path / "a.db") as store:
        await commit(store, event(summary="secret"))
    assert "secret" not in caplog.text
    assert not [found for found in caplog.records if found.name == "aiosqlite"]
