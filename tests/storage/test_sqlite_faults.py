"""A failure in any statement of a mixed batch: nothing is half-applied, and the store goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from kizuki.storage import CommitUnknownError, Store, StoreError, open_store
from kizuki.storage.records import SessionDraft
from kizuki.storage.writes import (
    DeleteSession,
    ExpireCursors,
    ExpireHeads,
    OpenOwed,
    PruneEvents,
    PutSession,
    Replay,
    ResetSession,
    Unwatch,
    Write,
)
from tests.storage.writing import CHILD, MAIN, NOW, OTHER, SECOND, acknowledge, commit, event, spawn, watch
from tests.system.faulty_sqlite import Faults, Kind, faults

__all__ = ["faults"]

BEFORE: tuple[Write, ...] = (watch(), watch(OTHER), watch(MAIN, SECOND), event(), event(SECOND), event(OTHER))
MIXED: tuple[Write, ...] = (
    event(dedupe_key="k", payload={"n": 1}),
    spawn(OTHER, SECOND),
    *[event(SECOND)] * 70,
    acknowledge(MAIN, 0, 1),
    event(),
    watch(SECOND, CHILD),
    PutSession(CHILD, SessionDraft("main", label="x"), NOW),
    ResetSession(CHILD, NOW),
    Unwatch(OTHER.session_key, CHILD),
    DeleteSession(OTHER, NOW),
    Replay(10),
    OpenOwed(NOW, 10),
    ExpireCursors(NOW, 10),
    PruneEvents(0, 50, 100),
    ExpireHeads(NOW + 1, 10),
)


async def everything(store: Store) -> tuple[object, ...]:
    """All that can be read."""
    page = await store.sessions(agent_id=None, kind=None, parent=None, limit=99, after=None, with_total=True)
    return (await store.cursors(None), await store.events(address=None, limit=999), page)


async def _fail(path: Path, faults: Faults, first: int, kind: Kind) -> tuple[str, bool]:
    """Fail statement `first` of the mixed batch: which it was, and whether the batch was applied."""
    ids = iter(range(10_000))
    async with open_store(path, new_session_id=lambda: f"s{next(ids)}") as store:
        await commit(store, *BEFORE)
        before = await everything(store)
        faults.arm(first, kind=kind)
        with pytest.raises(StoreError) as raised:
            await commit(store, *MIXED)
        statement = faults.statements[first - 1]
        faults.disarm()
        after = await everything(store)
        await _goes_on(store, applied=after != before)
    unknown = isinstance(raised.value, CommitUnknownError)
    assert unknown or after == before, statement
    return statement, after != before


async def _goes_on(store: Store, *, applied: bool) -> None:
    """What is committed next is the truth, also for what the store remembers of the heads."""
    versions = {}
    for address in (CHILD, SECOND):
        read = await store.status(address, changes_since=None, limit=1)
        assert read is not None
        versions[address] = read.session.version
    recorded = await commit(store, event(CHILD), event(SECOND), event(CHILD, dedupe_key="k", payload={"n": 1}))
    sequences = [getattr(result, "sequence", 0) for result in recorded.results]
    assert recorded.recorded == (2 if applied and sequences[2] < sequences[0] else 3)
    assert min(sequences[:2]) > max(versions.values())
    read = await store.status(CHILD, changes_since=versions[CHILD], limit=9)
    assert read is not None
    assert read.events[0].sequence == sequences[0]


async def _statements(path: Path, faults: Faults) -> int:
    async with open_store(path) as store:
        await commit(store, *BEFORE)
        faults.arm()
        await commit(store, *MIXED)
        return len(faults.statements)


@pytest.mark.parametrize("kind", ["disk", "locked", "rolled back"])
async def test_any_statement_may_fail(tmp_path: Path, faults: Faults, kind: Kind) -> None:
    """For every statement of a mixed batch: it fails, nothing of the batch is applied, and the next commit is right."""
    count = await _statements(tmp_path / "count.db", faults)
    assert count > 40
    for first in range(1, count + 1):
        path = tmp_path / f"{first}.db"
        statement, applied = await _fail(path, faults, first, kind)
        assert not applied, statement


async def test_a_commit_that_says_that_it_failed(tmp_path: Path, faults: Faults) -> None:
    """A COMMIT that took effect and raised is a `CommitUnknownError`, all of it is applied, and the next commit is right."""
    count = await _statements(tmp_path / "count.db", faults)
    assert await _fail(tmp_path / "a.db", faults, count, "committed") == ("COMMIT", True)


async def test_a_rollback_may_fail_too(tmp_path: Path, faults: Faults) -> None:
    """Where even the rollback fails, the transaction is left at the next commit, and nothing of it is applied."""
    async with open_store(tmp_path / "a.db") as store:
        await commit(store, *BEFORE)
        before = await everything(store)
        faults.arm(10, count=2)
        with pytest.raises(StoreError):
            await commit(store, *MIXED)
        assert "ROLLBACK" in faults.statements
        faults.disarm()
        assert await everything(store) == before
        assert (await commit(store, event())).recorded == 1
