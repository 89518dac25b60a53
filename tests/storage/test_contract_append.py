"""`Append`: what recording an event does, whatever the backend."""

from __future__ import annotations

import pytest

from kizuki.storage import Store, WriteRefusedError
from kizuki.storage.records import Address, Opened, Positions, SessionDraft, StateEvent
from kizuki.storage.writes import DeleteSession, PruneEvents, PutSession, ResetSession, Unwatch
from tests.storage.writing import CHILD, MAIN, NOW, OTHER, SECOND, commit, event, positions, record, sequences, spawn, watch


async def test_an_event_is_given_back_as_it_is_read(store: Store) -> None:
    """The result of an append equals the event that every later read gives."""
    committed = await commit(store, event(payload={"turns": 2, "text": "é\u3042"}))
    assert committed.results == await store.events(address=CHILD, limit=10)
    assert committed.recorded == 1
    assert committed.results[0] == StateEvent(
        1, *CHILD, "session-0", "goal_changed", "human", "ada", None, NOW, "goal updated", {"turns": 2, "text": "é\u3042"}
    )  # fmt: skip


async def test_an_append_creates_the_row(store: Store) -> None:
    """A session that has no row gets one from the draft, with the session id that its event carries."""
    await commit(store, event(session=SessionDraft("subagent", "given", MAIN.session_key, "a label")))
    read = await store.status(CHILD, changes_since=0, limit=1)
    assert read is not None
    assert (read.session.session_id, read.session.kind, read.session.parent) == ("given", "subagent", MAIN.session_key)
    assert (read.session.label, read.session.created_at_ms, read.events[0].session_id) == ("a label", NOW, "given")


async def test_an_event_carries_the_session_id_of_its_moment(store: Store) -> None:
    """Events before and after a reset in one transaction carry the ids before and after it."""
    before, reset, after = (await commit(store, event(), ResetSession(CHILD, NOW), event())).results
    assert isinstance(before, StateEvent)
    assert isinstance(after, StateEvent)
    assert before.session_id != after.session_id
    assert after.session_id == getattr(reset, "session_id", None)


async def test_sequences_increase_over_all_sessions(store: Store) -> None:
    """Within a batch and over batches each sequence is above all before it, whatever the session."""
    got = await record(store, event(CHILD), event(SECOND), event(CHILD)) + await record(store, event(SECOND))
    assert got == sorted(set(got))


async def test_a_sequence_never_reappears(store: Store) -> None:
    """Rule 1.11: after pruning and deleting everything, the next sequence is above all that ever were."""
    last = (await record(store, event(), event(SECOND)))[-1]
    await commit(store, PruneEvents(NOW + 1, 0, 100), DeleteSession(CHILD, NOW), DeleteSession(SECOND, NOW))
    assert (await record(store, event()))[0] > last


async def test_a_failed_transaction_uses_up_nothing(store: Store) -> None:
    """What is refused leaves no trace, and what comes afterwards stands where it would have stood."""
    await record(store, event())
    with pytest.raises(WriteRefusedError):
        await commit(store, event(), event(SECOND, now_ms=2**70))
    assert await record(store, event()) == [2]
    assert not await store.session_exists(SECOND.session_key)


@pytest.mark.parametrize("poison", [event(summary="\ud800"), event(now_ms=2**64), event(payload={"a": object()})])
async def test_a_poisoned_row_is_refused_whole(store: Store, poison: object) -> None:
    """A value that the database does not take is a `WriteRefusedError`, and nothing of its transaction is applied."""
    with pytest.raises(WriteRefusedError):
        await store.commit([event(), poison, event()], busy_timeout_s=1)  # type: ignore[list-item]
    assert await store.events(address=None, limit=10) == ()


async def test_a_dedupe_key_counts_once(store: Store) -> None:
    """Rule 1.6: a repeat records nothing, moves nothing, changes no row and gives the first event."""
    await commit(store, watch())
    first = (await commit(store, event(dedupe_key="k", payload={"n": 1}))).results
    before = await positions(store), await store.status(CHILD, changes_since=0, limit=9)
    repeat = event(dedupe_key="k", session=SessionDraft("main", label="new"), now_ms=NOW + 5, seeds=OTHER, summary="another")
    again = await commit(store, repeat)
    assert (again.results, again.recorded, again.opened) == (first, 0, ())
    assert (await positions(store), await store.status(CHILD, changes_since=0, limit=9)) == before
    assert await positions(store, OTHER) is None


async def test_a_dedupe_key_counts_once_within_a_batch(store: Store) -> None:
    """Rule 1.6: two events with one key in the same transaction are one."""
    one, two, other_kind = (
        await commit(store, event(dedupe_key="k"), event(dedupe_key="k"), event(kind="compacted", dedupe_key="k"))
    ).results
    assert one == two
    assert one != other_kind


async def test_dedupe_keys_belong_to_a_session_and_kind(store: Store) -> None:
    """Rule 1.6: the same key in another session, under another agent, or of another kind is another key."""
    elsewhere = Address(CHILD.session_key, "ops")
    appends = [
        event(dedupe_key="k"),
        event(SECOND, dedupe_key="k"),
        event(elsewhere, dedupe_key="k"),
        event(kind="adopted", dedupe_key="k"),
    ]
    assert len(set(await record(store, *appends))) == 4


async def test_a_dedupe_key_is_free_once_its_event_is_gone(store: Store) -> None:
    """Rule 1.6: a key is held for as long as the first event is kept."""
    first = await record(store, event(dedupe_key="k"))
    await commit(store, PruneEvents(NOW + 1, 10, 10))
    assert await record(store, event(dedupe_key="k")) != first


async def test_a_blank_dedupe_key_is_none(store: Store) -> None:
    """Rule 1.6: an empty key makes no event a repeat."""
    assert len(set(await record(store, event(dedupe_key=""), event(dedupe_key="")))) == 2


async def test_an_unwatched_event_is_not_recorded(store: Store) -> None:
    """Rule 1.8: without parent and cursor the result is None, and nothing but the session's row is written."""
    committed = await commit(store, event(only_if_watched=True))
    assert (committed.results, committed.recorded) == ((None,), 0)
    assert await store.session_exists(CHILD.session_key)


async def test_a_cursor_makes_it_watched(store: Store) -> None:
    """Rule 1.8: one cursor on the session is enough, and it counts no more once it is gone."""
    await commit(store, watch())
    assert await record(store, event(only_if_watched=True)) != []
    await commit(store, Unwatch(MAIN.session_key, CHILD))
    assert await record(store, event(only_if_watched=True)) == []


async def test_a_parent_makes_it_watched(store: Store) -> None:
    """Rule 1.8: a parent is enough, in the row or in the draft."""
    assert await record(store, event(only_if_watched=True, session=SessionDraft("subagent", parent=MAIN.session_key))) != []
    assert await record(store, event(only_if_watched=True)) != []


async def test_a_seed_earlier_in_the_batch_makes_it_watched(store: Store) -> None:
    """Rule 1.8: what a batch's own spawn seeds counts for the events after it, and not for those before it."""
    before, _, after = (await commit(store, event(only_if_watched=True), spawn(), event(only_if_watched=True))).results
    assert before is None
    assert after is not None


async def test_recording_time_never_goes_back_within_a_session(store: Store) -> None:
    """Rule 1.7: an event recorded by a clock set back counts as recorded with the one before it, so that it is pruned with it."""
    await record(store, event(now_ms=NOW), event(now_ms=NOW - 1000), event(SECOND, now_ms=NOW - 1000))
    await commit(store, PruneEvents(NOW, 100, 100))
    assert (await sequences(store), await sequences(store, SECOND)) == ([1, 2], [])


async def test_an_event_renews_what_the_row_says(store: Store) -> None:
    """A row's `updated_at_ms` is the later of its last change and the last recording."""
    await commit(store, PutSession(CHILD, SessionDraft("main"), NOW), event(now_ms=NOW + 7))
    read = await store.status(CHILD, changes_since=None, limit=1)
    assert read is not None
    assert (read.session.created_at_ms, read.session.updated_at_ms) == (NOW, NOW + 7)


async def test_a_spawn_seeds_at_its_own_sequence(store: Store) -> None:
    """Rule 3.1: the parent's cursor stands at the spawn, so that the spawn itself and all before it open nothing."""
    _, spawned = await record(store, event(), spawn())
    assert await positions(store) == Positions(spawned, spawned, spawned)


async def test_a_spawn_keeps_a_pending_notice(store: Store) -> None:
    """Rule 3.1: a pair with a pending notice keeps its positions, whether it was opened before or in this very batch."""
    await commit(store, watch())
    opened, _ = await record(store, event(), spawn())
    await record(store, spawn())
    assert await positions(store) == Positions(0, opened, opened)


async def test_a_spawn_moves_a_clean_cursor(store: Store) -> None:
    """Rule 3.1: a clean pair is seeded anew at the spawn, and an event after it in the batch opens it."""
    await commit(store, watch())
    _, spawned, changed = await record(store, event(by=MAIN), spawn(), event())
    assert await positions(store) == Positions(spawned, changed, changed)


async def test_a_spawned_child_spawns_in_the_same_batch(store: Store) -> None:
    """A session that is new may be target and watcher in one batch."""
    committed = await commit(store, spawn(MAIN, CHILD), spawn(CHILD, SECOND), event(CHILD), event(SECOND))
    assert set(committed.opened) == {Opened(MAIN.session_key, CHILD), Opened(CHILD.session_key, SECOND)}


async def test_events_of_one_key_under_two_agents_are_apart(store: Store) -> None:
    """Rule 2.4: head, events and cursors are kept per (key, agent)."""
    ops = Address(CHILD.session_key, "ops")
    mine, theirs = await record(store, event(), event(ops))
    assert (await sequences(store), await sequences(store, ops)) == ([mine], [theirs])


async def test_a_large_batch_equals_many_small_ones(store: Store) -> None:
    """300 events over 70 sessions in one batch stand where the same events in single commits would stand."""
    targets = [Address(f"agent:main:subagent:{number % 70}", "main") for number in range(300)]
    got = await record(store, *(event(target) for target in targets))
    assert got == list(range(1, 301))
    for number in (0, 29, 69):
        assert await sequences(store, targets[number]) == list(range(number + 1, 301, 70))
