"""`commit` as a whole: atomic, durable, visible, ordered, and whole under cancellation, whatever the backend."""

from __future__ import annotations

import asyncio

import pytest

from kizuki.storage import Store, StoreBusyError, StoreError
from kizuki.storage.records import SessionDraft
from kizuki.storage.writes import PutSession
from tests.storage.conftest import Backend
from tests.storage.writing import CHILD, NOW, SECOND, commit, event, record, sequences, watch


async def test_an_empty_commit(store: Store) -> None:
    """No writes: no results, and nothing owed."""
    committed = await commit(store)
    assert (committed.results, committed.opened, committed.owed, committed.recorded) == ((), (), False, 0)


async def test_one_result_per_write(store: Store) -> None:
    """Results come in the order of the writes, whatever is between runs of appends."""
    first, row, second, third, watched = (
        await commit(store, event(), PutSession(CHILD, SessionDraft("main", label="x"), NOW), event(), event(SECOND), watch())
    ).results
    assert [getattr(result, "sequence", None) for result in (first, row, second, third, watched)] == [1, None, 2, 3, None]


async def test_what_is_committed_is_read_by_all(store: Store, backend: Backend) -> None:
    """Rule 8.1: when commit returns, every reader sees all of it, in this store and in others that are open."""
    async with backend.open(read_only=True) as reader:
        for number in range(1, 6):
            await record(store, event())
            assert len(await sequences(store)) == len(await sequences(store)) == number
            assert len(await sequences(reader)) == len(await sequences(reader)) == number


async def test_what_is_committed_is_there_after_reopening(store: Store, backend: Backend) -> None:
    """Rule 1.10: what commit returned is durable."""
    await commit(store, watch(), event())
    before = await store.cursors(None), await store.events(address=None, limit=9)
    await store.close()
    async with backend.open() as again:
        assert (await again.cursors(None), await again.events(address=None, limit=9)) == before
        assert await record(again, event()) == [2]


async def test_two_stores_on_one_database(store: Store, backend: Backend) -> None:
    """Rule 8.1: sequences stay unique and increase, and neither store relies on what it knew before the other wrote."""
    async with backend.open() as other:
        await commit(store, watch(), event())
        await commit(other, event(dedupe_key="k"))
        assert await record(store, event(), event(dedupe_key="k")) == [3, 2]
        assert await sequences(other) == await sequences(store) == [1, 2, 3]


async def test_a_cancelled_commit_ends_whole(store: Store) -> None:
    """Cancelling the caller at any await leaves all of a transaction or nothing, and a store that goes on."""
    for awaits in range(6):
        before = await sequences(store)
        task = asyncio.create_task(commit(store, *[event()] * 5))
        for _ in range(awaits):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(await sequences(store)) - len(before) in (0, 5)
    assert await record(store, event()) != []


async def test_a_cancelled_caller_is_held_until_the_transaction_has_ended(store: Store) -> None:
    """When the cancellation comes out of a commit that had begun, its writes are visible already."""
    task = asyncio.create_task(commit(store, *[event()] * 5))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(await sequences(store)) == 5


async def test_a_closed_store(store: Store) -> None:
    """Closing twice is allowed; afterwards everything is a `StoreError`."""
    await store.close()
    await store.close()
    with pytest.raises(StoreError):
        await record(store, event())
    with pytest.raises(StoreError):
        await store.cursors(None)


async def test_a_store_opened_read_only_refuses_to_commit(store: Store, backend: Backend) -> None:
    """Rule 8.4: reading works, committing is a `StoreError`."""
    await record(store, event())
    async with backend.open(read_only=True) as reader:
        assert await sequences(reader) == [1]
        with pytest.raises(StoreError, match="read-only"):
            await record(reader, event())


async def test_concurrent_reads_see_whole_transactions(store: Store) -> None:
    """A status read is of one moment: its events never run ahead of its version."""

    async def read_often() -> None:
        for _ in range(30):
            read = await store.status(CHILD, changes_since=0, limit=200)
            assert read is not None
            assert read.session.version == len(read.events)

    await record(store, event())
    await asyncio.gather(read_often(), read_often(), *(record(store, event()) for _ in range(50)))


async def test_busy_is_told_apart(store: Store) -> None:
    """`StoreBusyError` is a `StoreError`: who does not care need not know."""
    assert issubclass(StoreBusyError, StoreError)
    assert await commit(store)
