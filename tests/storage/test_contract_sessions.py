"""Session rows: put, reset, delete, and the reads of them, whatever the backend."""

from __future__ import annotations

import itertools

import pytest

from kizuki.storage import Store
from kizuki.storage.records import Address, Positions, SessionDraft, SessionRecord
from kizuki.storage.writes import DeleteSession, ExpireHeads, PutSession, ResetSession
from tests.storage.writing import CHILD, DRAFT, MAIN, NOW, OTHER, SECOND, commit, event, positions, record, sequences, watch


async def row(store: Store, address: Address = CHILD) -> SessionRecord:
    """A session that is there."""
    read = await store.status(address, changes_since=None, limit=1)
    assert read is not None
    return read.session


async def test_putting_a_session_creates_it(store: Store) -> None:
    """The result is the row as every later read gives it."""
    committed = await commit(store, PutSession(CHILD, SessionDraft("subagent", "s1", MAIN.session_key, "label"), NOW))
    assert committed.results == (SessionRecord(CHILD, "s1", "subagent", MAIN.session_key, "label", NOW, NOW, 0),)
    assert committed.results == (await row(store),)


async def test_the_same_put_twice_changes_nothing(store: Store) -> None:
    """A repeated put leaves the whole row as it was, the time of its update included."""
    draft = SessionDraft("subagent", None, MAIN.session_key, "label")
    first = (await commit(store, PutSession(CHILD, draft, NOW))).results
    assert (await commit(store, PutSession(CHILD, draft, NOW + 5), PutSession(CHILD, DRAFT, NOW + 6))).results == first * 2


async def test_a_put_changes_what_it_gives(store: Store) -> None:
    """What is given and differs is changed, what is None stays, and the kind never changes."""
    await commit(store, PutSession(CHILD, SessionDraft("subagent", "s1", MAIN.session_key, "label"), NOW))
    await commit(store, PutSession(CHILD, SessionDraft("main", label="another"), NOW + 5))
    assert await row(store) == SessionRecord(CHILD, "s1", "subagent", MAIN.session_key, "another", NOW, NOW + 5, 0)


async def test_a_parent_seeds_no_cursor(store: Store) -> None:
    """Rule 3.5: a lineage alone is no cursor."""
    await commit(store, PutSession(CHILD, SessionDraft("subagent", parent=MAIN.session_key), NOW), event())
    assert await store.cursors(None) == ()


async def test_a_reset_gives_a_new_id_and_empties_the_queue(store: Store) -> None:
    """Rule 3.5: a reset keeps the events and the cursors that others hold on the session; its own cursors go."""
    await commit(store, watch(CHILD, SECOND), watch(MAIN, CHILD), event(CHILD), event(SECOND))
    before = await row(store)
    result = (await commit(store, ResetSession(CHILD, NOW + 5))).results[0]
    assert isinstance(result, SessionRecord)
    assert result == await row(store)
    assert result.session_id != before.session_id
    assert (result.version, result.updated_at_ms) == (1, NOW + 5)
    assert await store.cursors(CHILD.session_key) == ()
    assert await positions(store) == Positions(0, 1, 1)
    assert await sequences(store) == [1]


async def test_resetting_nothing_is_none(store: Store) -> None:
    """The result for a session without a row is None."""
    assert (await commit(store, ResetSession(CHILD, NOW))).results == (None,)


async def test_deleting_removes_everything_but_the_head(store: Store) -> None:
    """Rule 1.11: row, events, queue and all cursors go; no other session's do."""
    await commit(store, watch(CHILD, SECOND), watch(MAIN, CHILD), watch(MAIN, SECOND), *[event(CHILD)] * 70, event(SECOND))
    assert (await commit(store, DeleteSession(CHILD, NOW), DeleteSession(CHILD, NOW))).results == (True, False)
    assert await store.status(CHILD, changes_since=0, limit=1) is None
    assert [(cursor.watcher, cursor.target) for cursor in await store.cursors(None)] == [(MAIN.session_key, SECOND)]
    assert [found.sequence for found in await store.events(address=None, limit=100)] == [71]


async def test_a_session_created_again_continues(store: Store) -> None:
    """Rule 1.11: under the same key the version goes on, and an older one reports a gap."""
    await record(store, event(), event())
    await commit(store, DeleteSession(CHILD, NOW), PutSession(CHILD, DRAFT, NOW))
    read = await store.status(CHILD, changes_since=1, limit=5)
    assert read is not None
    assert (read.session.version, read.pruned_max_sequence, read.earliest_sequence, read.events) == (2, 2, None, ())
    assert await record(store, event()) == [3]
    assert await sequences(store) == [3]


async def test_a_long_session_created_again_begins_anew(store: Store) -> None:
    """Rule 5.2: the earliest sequence kept is the first after the deletion, however much there was before."""
    await commit(store, *[event()] * 200, DeleteSession(CHILD, NOW), event(), event())
    read = await store.status(CHILD, changes_since=0, limit=200)
    assert read is not None
    assert (read.earliest_sequence, [found.sequence for found in read.events]) == (201, [201, 202])


async def test_a_deleted_session_owes_nothing(store: Store) -> None:
    """Rule 3.5: with the cursors on a session what was owed to them is gone."""
    watchers = [Address(f"agent:main:watcher{number}", "main") for number in range(300)]
    await commit(store, *(watch(watcher) for watcher in watchers), event())
    assert (await commit(store)).owed
    assert not (await commit(store, DeleteSession(CHILD, NOW))).owed


async def test_deleting_is_for_one_agent(store: Store) -> None:
    """Rule 3.5: the same key under another agent keeps row, events and cursors."""
    ops = Address(CHILD.session_key, "ops")
    await commit(store, watch(MAIN, CHILD), watch(MAIN, ops), event(CHILD), event(ops), DeleteSession(CHILD, NOW))
    assert [cursor.target for cursor in await store.cursors(None)] == [ops]
    assert (await sequences(store, ops), await store.session_exists(CHILD.session_key)) == ([2], True)


async def test_the_heads_of_deleted_sessions_expire(store: Store) -> None:
    """Rule 1.11: a head is kept for the retention time after the deletion, and forgotten then, but not if the session is back."""
    await record(store, event(CHILD), event(SECOND), event(OTHER))
    await commit(store, *(DeleteSession(address, NOW) for address in (CHILD, SECOND, OTHER)), PutSession(OTHER, DRAFT, NOW))
    assert getattr((await commit(store, ExpireHeads(NOW, 10))).results[0], "removed", None) == 0
    assert getattr((await commit(store, ExpireHeads(NOW + 1, 1))).results[0], "after", None) is not None
    last = (await commit(store, ExpireHeads(NOW + 1, 10))).results[0]
    assert (getattr(last, "removed", None), getattr(last, "after", 0)) == (1, None)
    await commit(store, PutSession(CHILD, DRAFT, NOW))
    assert ((await row(store)).version, (await row(store, OTHER)).version) == (0, 3)


async def test_a_deleted_session_that_watches_keeps_its_head(store: Store) -> None:
    """A cursor, and what it refers to, outlives the expiry of heads: the parent may have been deleted before the spawn came."""
    await commit(store, PutSession(MAIN, DRAFT, NOW), DeleteSession(MAIN, NOW), event(seeds=MAIN), ExpireHeads(NOW + 1, 10))
    assert await positions(store) == Positions(1, 1, 1)


SESSIONS = {
    Address("agent:main:main", "main"): ("main", None),
    Address("agent:main:subagent:a", "main"): ("subagent", "agent:main:main"),
    Address("agent:main:subagent:b", "main"): ("subagent", "agent:main:main"),
    Address("agent:ops:main", "ops"): ("main", None),
    Address("agent:ops:subagent:a", "ops"): ("subagent", "agent:ops:main"),
    Address("global", "main"): ("other", None),
    Address("global", "ops"): ("other", "agent:ops:main"),
}


@pytest.mark.parametrize(
    ("agent_id", "kind", "parent"),
    list(itertools.product((None, "main", "ops"), (None, "subagent", "other"), (None, "agent:main:main", "agent:ops:main"))),
)
async def test_pages_of_sessions(store: Store, agent_id: str | None, kind: str | None, parent: str | None) -> None:
    """Pages of any filter, put together, are all that it asks for, ordered by key and agent, each session once."""
    await commit(store, *(PutSession(address, SessionDraft(kind, None, parent), NOW) for address, (kind, parent) in SESSIONS.items()))
    wanted = [
        address
        for address, (its_kind, its_parent) in sorted(SESSIONS.items())
        if agent_id in (None, address.agent_id) and kind in (None, its_kind) and parent in (None, its_parent)
    ]
    got: list[Address] = []
    more = True
    while more:
        after = got[-1] if got else None
        page = await store.sessions(agent_id=agent_id, kind=kind, parent=parent, limit=2, after=after, with_total=True)
        got += [session.address for session in page.sessions]
        more = page.has_more
        assert page.total == len(wanted)
    assert got == wanted


async def test_a_page_without_total(store: Store) -> None:
    """The total is counted only where it is asked for; a page's rows are the sessions' rows."""
    await commit(store, event())
    page = await store.sessions(agent_id=None, kind=None, parent=None, limit=5, after=None, with_total=False)
    assert (page.sessions, page.has_more, page.total) == ((await row(store),), False, None)


async def test_whether_a_session_exists(store: Store) -> None:
    """Any agent's session counts; a mere head does not."""
    await commit(store, PutSession(Address("global", "ops"), DRAFT, NOW), event(), DeleteSession(CHILD, NOW))
    assert await store.session_exists("global")
    assert not await store.session_exists(CHILD.session_key)
    assert not await store.session_exists("agent:main:nobody")
