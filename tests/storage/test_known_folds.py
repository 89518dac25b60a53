"""What the store remembers of heads between transactions never differs from the database."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from kizuki.storage import Store, StoreError, open_store
from kizuki.storage.folds import Fold
from kizuki.storage.records import Address, SessionDraft, Shown, StateEvent
from kizuki.storage.sqlite.known import KNOWN_MAX, Known, KnownFolds
from kizuki.storage.writes import Acknowledge, Append, DeleteSession, ExpireHeads, PutSession, Unwatch, Watch, Write

TARGET = Address("agent:main:subagent:child", "main")
WATCHER = Address("agent:main:main", "main")
WATCH = Watch(WATCHER, SessionDraft("main"), TARGET, SessionDraft("subagent"), 1)


@pytest_asyncio.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """A store on a file, its target watched and known from an event."""
    async with open_store(tmp_path / "state.db") as opened:
        await commit(opened, WATCH)
        await commit(opened, human_turn())
        yield opened


async def commit(store: Store, write: Write) -> object:
    """One write in a transaction of its own; its result."""
    return (await store.commit([write], busy_timeout_s=5.0)).results[0]


def human_turn(summary: str = "human message via telegram") -> Append:
    """A person's turn on the target, recorded only if somebody watches."""
    return Append(
        TARGET, SessionDraft("subagent"), "human_direct_message", True, "human", None, None, 1, 1, summary, only_if_watched=True
    )  # fmt: skip


async def sequences(store: Store) -> list[int]:
    """The target's events along its chain."""
    read = await store.status(TARGET, changes_since=0, limit=200)
    assert read is not None
    return [event.sequence for event in read.events]


async def session_id(store: Store) -> str:
    """The target's session id, as it is read."""
    read = await store.status(TARGET, changes_since=None, limit=1)
    assert read is not None
    return read.session.session_id


async def test_events_follow_one_another(store: Store) -> None:
    """Events in several transactions form one chain."""
    for _ in range(3):
        await commit(store, human_turn())
    assert len(await sequences(store)) == 4


async def test_commits_by_another_process_are_seen(store: Store, tmp_path: Path) -> None:
    """Rule 8.1: what another gateway recorded on a session known here is part of the session's chain."""
    async with open_store(tmp_path / "state.db") as other:
        await commit(other, human_turn())
        await commit(store, human_turn())
        await commit(other, human_turn())
    found = await sequences(store)
    assert len(found) == 4
    assert found == sorted(set(found))


async def test_a_removed_cursor_is_noticed(store: Store) -> None:
    """Rule 1.8: once the last cursor is gone a human turn is no longer recorded, however well the session was known."""
    await commit(store, Unwatch(WATCHER.session_key, TARGET))
    assert await commit(store, human_turn()) is None


async def test_a_deleted_session_begins_anew(store: Store) -> None:
    """Rule 1.11: an event after the deletion creates another session, and the events before stay gone."""
    await commit(store, DeleteSession(TARGET, 2))
    await commit(store, WATCH)
    event = await commit(store, human_turn())
    assert isinstance(event, StateEvent)
    assert await sequences(store) == [event.sequence]
    assert event.session_id == await session_id(store)


async def test_a_forgotten_head_is_written_again(store: Store) -> None:
    """A head that has expired is created again by the next event."""
    await commit(store, Unwatch(WATCHER.session_key, TARGET))
    await commit(store, DeleteSession(TARGET, 2))
    await commit(store, ExpireHeads(3, 10))
    await commit(store, WATCH)
    event = await commit(store, human_turn())
    assert isinstance(event, StateEvent)
    assert await sequences(store) == [event.sequence]
    assert event.session_id == await session_id(store)


async def test_a_changed_row_is_noticed(store: Store) -> None:
    """An event carries the session id that the row was given since the last one."""
    await commit(store, PutSession(TARGET, SessionDraft("subagent", session_id="another"), 2))
    event = await commit(store, human_turn())
    assert isinstance(event, StateEvent)
    assert event.session_id == "another"


async def test_an_acknowledgement_between_events(store: Store) -> None:
    """Rule 4.3: the event after an acknowledgement opens the notice again, although nothing was read anew."""
    pending = await store.pending(WATCHER.session_key, limit=None, excluding=())
    shown = tuple(Shown(cursor.target, cursor.positions.last_seen, cursor.positions.notified) for cursor in pending.cursors)
    await commit(store, Acknowledge(WATCHER.session_key, shown, 2))
    done = await store.commit([human_turn()], busy_timeout_s=5.0)
    assert [pair.target for pair in done.opened] == [TARGET]


async def test_a_watcher_that_comes_later(store: Store) -> None:
    """Rule 4.3: a session all of whose notices are open opens one for a cursor that is put on it later, by a watch or by a spawn."""
    other, parent = Address("agent:main:other", "main"), Address("agent:main:parent", "main")
    await commit(store, human_turn())
    await commit(store, Watch(other, SessionDraft("other"), TARGET, SessionDraft("subagent"), 1))
    opened = (await store.commit([human_turn()], busy_timeout_s=5.0)).opened
    assert [pair.watcher for pair in opened] == [other.session_key]
    spawned = human_turn()._replace(kind="child_spawned", notifies=False, actor_type="agent", actor_id=parent.session_key, seeds=parent)
    await commit(store, spawned)
    opened = (await store.commit([human_turn()], busy_timeout_s=5.0)).opened
    assert [pair.watcher for pair in opened] == [parent.session_key]


async def test_a_watcher_that_acted_itself(store: Store) -> None:
    """Rule 4.6: the watcher's own event opens nothing, and the next one by another actor does, although nothing was read anew."""
    await test_an_acknowledgement_between_events(store)
    pending = await store.pending(WATCHER.session_key, limit=None, excluding=())
    shown = tuple(Shown(cursor.target, cursor.positions.last_seen, cursor.positions.notified) for cursor in pending.cursors)
    await commit(store, Acknowledge(WATCHER.session_key, shown, 2))
    own = human_turn()._replace(actor_type="agent", actor_id=WATCHER.session_key)
    assert (await store.commit([own], busy_timeout_s=5.0)).opened == ()
    assert len((await store.commit([human_turn()], busy_timeout_s=5.0)).opened) == 1


async def test_a_refused_transaction_leaves_no_memory(store: Store) -> None:
    """What a transaction that failed had changed in memory is forgotten with it."""
    with pytest.raises(StoreError):
        await store.commit([human_turn(), human_turn("a lone surrogate: \ud800")], busy_timeout_s=5.0)
    await commit(store, human_turn())
    assert len(await sequences(store)) == 2


def test_what_is_known_is_bounded() -> None:
    """More folds than the bound are not kept."""
    with sqlite3.connect(":memory:") as connection:
        known = KnownFolds()
        known.take(connection)
        folds = Known({Address(str(number), "main"): Fold(Address(str(number), "main")) for number in range(KNOWN_MAX + 1)})
        known.give_back(Known(list(folds.items())[:-1]))
        assert len(known.take(connection)) == KNOWN_MAX
        known.give_back(folds)
        assert known.take(connection) == {}
    connection.close()
