"""The reads for people: what there is, within bounds, and what is around one session, whatever the backend."""

from __future__ import annotations

import pytest

from kizuki.storage import Store
from kizuki.storage.records import Address, LastActor, Overview
from kizuki.storage.writes import DeleteSession, PruneEvents
from tests.storage.writing import CHILD, DRAFT, MAIN, NOW, OTHER, SECOND, acknowledge, commit, event, record, spawn, watch

MANY = [Address(f"agent:main:subagent:{number:02}", "main") for number in range(20)]


async def overview(store: Store, *, sessions: int = 100, cursors: int = 100, events: int = 100) -> Overview:
    return await store.overview(sessions_max=sessions, cursors_max=cursors, events_max=events)


def actors(read: Overview) -> dict[Address, LastActor | None]:
    return {session.address: actor for session, actor in read.sessions}


async def test_nothing_there(store: Store) -> None:
    """An empty database has an empty overview, and there is nothing around a session that is not there."""
    read = await overview(store)
    assert (read.sessions, read.cursors, read.events, read.totals.sessions) == ((), (), (), 0)
    assert await store.surroundings(MAIN, limit=5) is None


async def test_all_there_is(store: Store) -> None:
    """Within the bounds the overview has what the single reads have, in their order."""
    await commit(store, spawn(), event(), watch(OTHER, SECOND), event(SECOND, by=MAIN), event(MAIN))
    read = await overview(store)
    page = await store.sessions(agent_id=None, kind=None, parent=None, limit=100, after=None, with_total=True)
    assert tuple(session for session, _ in read.sessions) == page.sessions
    assert (read.cursors, read.events) == (await store.cursors(None), await store.events(address=None, limit=100))
    assert read.totals == await store.statistics()


async def test_who_was_last(store: Store) -> None:
    """The actor of a session's last event, whatever it was; none before the first one."""
    await commit(store, spawn(), event(SECOND), event(SECOND, by=MAIN), watch(OTHER, MAIN))
    by_main = ("agent", MAIN.session_key)
    assert actors(await overview(store)) == {
        MAIN: None,
        OTHER: None,
        CHILD: LastActor(*by_main, 1),
        SECOND: LastActor(*by_main, 3),
    }
    await record(store, event(SECOND))
    assert actors(await overview(store))[SECOND] == LastActor("human", "ada", 4)


async def test_who_was_last_is_kept(store: Store) -> None:
    """Of an event that was pruned the head still knows its sequence, and its agent; a person is told from the system no more."""
    await record(store, event(CHILD, by=MAIN), event(SECOND))
    await commit(store, PruneEvents(NOW + 1, 10, 10))
    known = actors(await overview(store))
    assert (known[CHILD], known[SECOND]) == (LastActor("agent", MAIN.session_key, 1), LastActor(None, None, 2))


@pytest.mark.parametrize("limit", [1, 2, 5, 19, 20])
async def test_more_sessions_than_fit(store: Store, limit: int) -> None:
    """Beyond the bound the sessions of the newest events come first, then others by their keys; the totals count all."""
    await commit(store, *(watch(OTHER, target) for target in MANY))
    await record(store, event(MANY[17]), event(MANY[3]), event(MANY[12]))
    read = await overview(store, sessions=limit)
    found = list(actors(read))
    newest = {MANY[12], MANY[3], MANY[17]} if limit > 2 else {MANY[12], MANY[3]} if limit > 1 else {MANY[12]}
    assert found == sorted(found)
    assert (len(found), newest <= set(found), read.totals.sessions) == (limit, True, 21)


async def test_more_cursors_than_fit(store: Store) -> None:
    """Beyond the bound the cursors with an opened notice come first; the totals count all."""
    await commit(store, *(watch(watcher, target) for watcher in (MAIN, OTHER) for target in MANY))
    await record(store, event(MANY[17]), event(MANY[3], by=MAIN))
    for limit in (3, 10, 39):
        read = await overview(store, cursors=limit)
        opened = [(cursor.watcher, cursor.target) for cursor in read.cursors if cursor.positions.notified > cursor.positions.last_seen]
        assert opened == [(MAIN.session_key, MANY[17]), (OTHER.session_key, MANY[3]), (OTHER.session_key, MANY[17])]
        assert (len(read.cursors), read.totals.cursors, read.totals.pending) == (limit, 40, 3)
    assert len((await overview(store, cursors=2)).cursors) == 2


async def test_more_events_than_fit(store: Store) -> None:
    """Beyond the bound the events are the newest, ascending."""
    kept = await record(store, *(event() for _ in range(30)))
    assert [found.sequence for found in (await overview(store, events=7)).events] == kept[-7:]


async def test_around_a_session(store: Store) -> None:
    """A session stands among those that watch it and those it watches, each with all three positions."""
    await commit(store, spawn(), watch(OTHER, CHILD), watch(CHILD, SECOND), event(CHILD, by=OTHER), event(CHILD), event(SECOND))
    read = await store.surroundings(CHILD, limit=5)
    assert read is not None
    assert (read.session.address, read.last_actor) == (CHILD, LastActor("human", "ada", 3))
    assert [(cursor.watcher, *cursor.positions) for cursor in read.watchers] == [(MAIN.session_key, 1, 2, 3), (OTHER.session_key, 1, 3, 3)]
    assert [(cursor.target, *cursor.positions) for cursor in read.watching] == [(SECOND, 0, 4, 4)]
    assert (read.more_watchers, read.more_watching) == (False, False)


async def test_many_around_a_session(store: Store) -> None:
    """Beyond the limit those with an opened notice come first, on both sides, and it is said that there are more."""
    await commit(store, *(watch(MAIN, target) for target in MANY), *(watch(watcher, MAIN) for watcher in MANY))
    await commit(store, event(MAIN), event(MANY[15]), acknowledge(MANY[4], 0, 1, MAIN))
    await commit(store, *(acknowledge(watcher, 0, 1, MAIN) for watcher in MANY if watcher not in (MANY[9], MANY[18])))
    read = await store.surroundings(MAIN, limit=3)
    assert read is not None
    assert (len(read.watchers), len(read.watching), read.more_watchers, read.more_watching) == (3, 3, True, True)
    assert {MANY[9].session_key, MANY[18].session_key} <= {cursor.watcher for cursor in read.watchers}
    assert MANY[15] in {cursor.target for cursor in read.watching}


async def test_a_session_that_was_deleted(store: Store) -> None:
    """A session that was deleted is in no overview, and nothing is around it, while its head is kept."""
    await commit(store, spawn(), event(SECOND))
    await commit(store, DeleteSession(SECOND, NOW))
    assert SECOND not in actors(await overview(store))
    assert await store.surroundings(SECOND, limit=5) is None


async def test_agents_that_share_a_key(store: Store) -> None:
    """Sessions of one key without prefix are told apart by their agents."""
    mine, yours = Address("global", "a"), Address("global", "b")
    await commit(store, event(mine, session=DRAFT), event(yours, by=MAIN, session=DRAFT), watch(MAIN, mine))
    assert actors(await overview(store))[yours] == LastActor("agent", MAIN.session_key, 2)
    read = await store.surroundings(yours, limit=5)
    assert read is not None
    assert read.watchers == ()
