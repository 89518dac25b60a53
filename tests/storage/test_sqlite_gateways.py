"""What several gateways on one file leave in the folder, what they cost one that is alone, and how they take turns at writing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kizuki.storage import StoreBusyError, open_store
from kizuki.storage.sqlite.presence import Presence
from kizuki.storage.sqlite.writer_lock import WriterLock
from kizuki.storage.writes import PutSession, TakeNotices
from tests.storage.writing import DRAFT, MAIN, NOW, commit, event, watch


def files(folder: Path) -> set[str]:
    """What there is beside the database itself."""
    return {path.name for path in folder.iterdir()} - {"a.db", "a.db-wal", "a.db-shm"}


async def test_nothing_is_left_in_the_folder(tmp_path: Path) -> None:
    """Rule 8.2: the files that gateways lock are there while they live, and gone with the last one."""
    async with open_store(tmp_path / "a.db") as store:
        await store.register(now_ms=NOW, busy_timeout_s=1)
        assert "a.db-gateway-1" in files(tmp_path)
        async with open_store(tmp_path / "a.db") as other:
            await other.register(now_ms=NOW, busy_timeout_s=1)
        assert "a.db-gateway-2" not in files(tmp_path)
        await commit(store, event())
    assert files(tmp_path) == set()


async def test_the_same_database_by_another_path(tmp_path: Path) -> None:
    """Rule 8.2: gateways that opened the file by different paths see that each other lives."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    async with open_store(tmp_path / "folder" / "a.db") as store, open_store(tmp_path / "link" / "a.db") as other:
        ids = [await opened.register(now_ms=NOW, busy_timeout_s=1) for opened in (store, other)]
        assert (await store.neighbours()).living == (ids[1],)
        assert (await other.neighbours()).living == (ids[0],)


async def test_a_turn_without_notices_writes_nothing(tmp_path: Path) -> None:
    """Rule 8.3: where there is nothing to claim and the host stays, taking costs no write."""
    async with open_store(tmp_path / "a.db") as store, open_store(tmp_path / "a.db") as other:
        await store.register(now_ms=NOW, busy_timeout_s=1)
        await commit(store, PutSession(MAIN, DRAFT, NOW, hosts=True))
        await other.changed()
        await commit(store, TakeNotices(MAIN.session_key, 20, (), NOW), PutSession(MAIN, DRAFT, NOW, hosts=True))
        assert not await other.changed()
        await commit(store, event())
        assert await other.changed()


async def test_a_reader_sees_what_a_dead_gateway_had_claimed(tmp_path: Path) -> None:
    """Rules 8.3, 8.4: a reading command is shown what a dead gateway left in its turns, and not what a living one has in its own."""
    async with open_store(tmp_path / "a.db") as store:
        await store.register(now_ms=NOW, busy_timeout_s=1)
        await commit(store, watch(), event(), TakeNotices(MAIN.session_key, 20, (), NOW))
        async with open_store(tmp_path / "a.db", read_only=True) as reader:
            assert not (await reader.pending(MAIN.session_key, limit=None, excluding=())).cursors
    async with open_store(tmp_path / "a.db", read_only=True) as reader:
        assert len((await reader.pending(MAIN.session_key, limit=None, excluding=())).cursors) == 1


def test_a_lock_is_seen_from_within_the_process(tmp_path: Path) -> None:
    """Rule 8.2: a gateway is alive for others in its own process as well, until it gives up or its file is taken away."""
    one, another = Presence(tmp_path / "a.db"), Presence(tmp_path / "a.db")
    one.appear(1)
    assert another.is_alive(1)
    assert not another.is_alive(2)
    one.appear(3)
    assert (another.is_alive(1), another.is_alive(3)) == (False, True)
    one.give_up()
    assert not another.is_alive(3)


# -- one writer at a time, with an SQLite that needs it ----------------------------------------------------------------------


@pytest.fixture
def locks(tmp_path: Path) -> Iterator[tuple[WriterLock, WriterLock]]:
    """Two stores' locks on one database."""
    one, another = (WriterLock(tmp_path / "a.db", needed=True) for _ in range(2))
    with closing(one), closing(another):
        yield one, another


def test_one_writer_at_a_time(locks: tuple[WriterLock, WriterLock]) -> None:
    """Who waits for longer than allowed is told that the database is busy; afterwards it is free."""
    one, another = locks
    with one.held(1), pytest.raises(StoreBusyError), another.held(0.01):
        pytest.fail("both hold it")
    with another.held(0):
        pass


def test_writers_wait_for_each_other(locks: tuple[WriterLock, WriterLock]) -> None:
    """Many short turns of several writers never overlap, and all of them get theirs."""
    inside: list[int] = []
    overlaps: list[int] = []

    def write(lock: WriterLock) -> None:
        for _ in range(200):
            with lock.held(30):
                inside.append(1)
                overlaps.append(len(inside) - 1)
                inside.pop()

    writers = [threading.Thread(target=write, args=(lock,)) for lock in locks]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert overlaps == [0] * 400


def test_a_file_that_was_taken_away(tmp_path: Path, locks: tuple[WriterLock, WriterLock]) -> None:
    """A lock on a file that somebody else removed meanwhile is no lock: the writer takes the one that is there now."""
    one, another = locks
    with one.held(1):
        pass
    with another.held(1):
        pass
    another.close()
    assert files(tmp_path) == set()
    third = WriterLock(tmp_path / "a.db", needed=True)
    with closing(third), third.held(1), pytest.raises(StoreBusyError), one.held(0.01):
        pytest.fail("both hold it")


def test_where_it_is_not_needed(tmp_path: Path) -> None:
    """With an SQLite that has no fault there is no further lock, and no file."""
    lock = WriterLock(tmp_path / "a.db", needed=False)
    with lock.held(0):
        assert files(tmp_path) == set()
    lock.close()
