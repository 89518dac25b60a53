"""Openings, acknowledgements, replays: what happens to cursors, whatever the backend."""

from __future__ import annotations

import pytest

from kizuki.storage import Store
from kizuki.storage.records import Address, Cursor, Opened, Positions, Shown
from kizuki.storage.writes import Acknowledge, Acknowledged, OpenOwed, Replay, Replayed, Unwatch
from tests.storage.writing import CHILD, MAIN, NOW, OTHER, SECOND, acknowledge, commit, event, positions, record, spawn, watch

MANY = 300
"""More watchers than one transaction opens notices for."""


def crowd(count: int = MANY) -> list[Address]:
    """Many watchers."""
    return [Address(f"agent:main:watcher{number}", "main") for number in range(count)]


async def notified(store: Store, target: Address = CHILD) -> dict[str, Positions]:
    """Where all cursors on a target stand."""
    return {cursor.watcher: cursor.positions for cursor in await store.cursors(None) if cursor.target == target}


async def test_a_material_event_opens(store: Store) -> None:
    """Rule 4.3: on a clean pair a material event sets notified to its sequence, and the commit tells of it."""
    await commit(store, watch())
    committed = await commit(store, event())
    assert committed.opened == (Opened(MAIN.session_key, CHILD),)
    assert await positions(store) == Positions(0, 1, 1)


async def test_the_first_event_of_a_batch_pins(store: Store) -> None:
    """Rule 4.3: of several events in one transaction the first material one is the pin."""
    await commit(store, watch())
    own, first, last = await record(store, event(by=MAIN), event(), event())
    assert await positions(store) == Positions(0, first, last)
    assert own < first


async def test_a_pending_notice_stays(store: Store) -> None:
    """Rule 4.4: further material events move material alone, and open nothing."""
    await commit(store, watch(), event())
    committed = await commit(store, event(), event())
    assert committed.opened == ()
    assert await positions(store) == Positions(0, 1, 3)


async def test_own_events_are_not_material(store: Store) -> None:
    """Rule 4.6: what the watcher did itself opens nothing and does not move its material position."""
    await commit(store, watch(), watch(OTHER))
    committed = await commit(store, event(by=MAIN))
    assert committed.opened == (Opened(OTHER.session_key, CHILD),)
    assert await positions(store) == Positions(0, 0, 0)


async def test_a_person_with_the_id_of_the_watcher_is_another(store: Store) -> None:
    """Rule 4.6: only an agent is the watcher itself, whatever a person's id is."""
    await commit(store, watch())
    await commit(store, event()._replace(actor_id=MAIN.session_key))
    assert await positions(store) == Positions(0, 1, 1)


async def test_events_that_do_not_notify_open_nothing(store: Store) -> None:
    """Rule 1.1: such a kind moves the version and no cursor."""
    await commit(store, watch())
    assert (await commit(store, event(kind="compacted", notifies=False))).opened == ()
    assert await positions(store) == Positions(0, 0, 0)


async def test_a_watch_begins_at_the_version(store: Store) -> None:
    """Rule 3.2: earlier history opens nothing; watching again keeps the positions, pending or not."""
    await commit(store, event())
    assert (await commit(store, watch())).results == (True,)
    assert await positions(store) == Positions(1, 1, 1)
    await commit(store, event())
    await commit(store, watch())
    assert await positions(store) == Positions(1, 2, 2)


async def test_a_watch_creates_both_rows(store: Store) -> None:
    """Both sessions exist after a watch."""
    await commit(store, watch())
    assert await store.session_exists(MAIN.session_key)
    assert await store.session_exists(CHILD.session_key)


async def test_an_event_before_the_watch_in_one_transaction_opens_nothing(store: Store) -> None:
    """Writes take effect in their order."""
    committed = await commit(store, event(), watch(), event(by=MAIN), watch(OTHER), event())
    assert set(committed.opened) == {Opened(MAIN.session_key, CHILD), Opened(OTHER.session_key, CHILD)}
    assert (await positions(store), await positions(store, OTHER)) == (Positions(1, 3, 3), Positions(2, 3, 3))


async def test_unwatch_removes_the_cursor(store: Store) -> None:
    """Rule 3.4: cursor and notice go; the result says whether there was one."""
    await commit(store, watch(), watch(OTHER), event())
    assert (await commit(store, Unwatch(MAIN.session_key, CHILD), Unwatch(MAIN.session_key, CHILD))).results == (True, False)
    assert set(await notified(store)) == {OTHER.session_key}


async def test_acknowledging_the_last_change_leaves_the_pair_clean(store: Store) -> None:
    """Rule 4.5: last seen becomes the notified position; with nothing beyond, the pair is clean."""
    await commit(store, watch(), event())
    committed = await commit(store, acknowledge(MAIN, 0, 1))
    assert committed.results == (Acknowledged((Shown(CHILD, 0, 1),), ()),)
    assert committed.opened == ()
    assert await positions(store) == Positions(1, 1, 1)


async def test_acknowledging_with_a_rest_opens_one_notice_for_it(store: Store) -> None:
    """Rule 4.5: material beyond opens exactly one notice, pinned at the material position."""
    await commit(store, watch(), event(), event(), event())
    committed = await commit(store, acknowledge(MAIN, 0, 1))
    assert committed.results == (Acknowledged((Shown(CHILD, 0, 1),), (CHILD,)),)
    assert committed.opened == (Opened(MAIN.session_key, CHILD),)
    assert await positions(store) == Positions(1, 3, 3)


async def test_an_acknowledgement_of_another_notice_changes_nothing(store: Store) -> None:
    """Rule 4.5: other positions, a repeat, a clean pair or no cursor: nothing is applied."""
    await commit(store, watch(), event(), event())
    stale = [acknowledge(MAIN, 0, 2), acknowledge(MAIN, 1, 1), acknowledge(OTHER, 0, 1), acknowledge(MAIN, 0, 1, SECOND)]
    assert (await commit(store, *stale)).results == (Acknowledged((), ()),) * 4
    once, twice = (await commit(store, acknowledge(MAIN, 0, 1), acknowledge(MAIN, 0, 1))).results
    assert (once, twice) == (Acknowledged((Shown(CHILD, 0, 1),), (CHILD,)), Acknowledged((), ()))


async def test_one_notice_shown_twice_in_an_acknowledgement_counts_once(store: Store) -> None:
    """Rule 4.5: within one write, too, a notice is acknowledged once, and its rest not along with it."""
    await commit(store, watch(), event(), event())
    shown = Shown(CHILD, 0, 1)
    assert (await commit(store, Acknowledge(MAIN.session_key, (shown, shown), NOW))).results == (Acknowledged((shown,), (CHILD,)),)
    assert await positions(store) == Positions(1, 2, 2)


async def test_an_acknowledgement_across_an_unwatch_changes_nothing(store: Store) -> None:
    """Rule 4.5: a pair that was watched anew has another notice."""
    await commit(store, watch(), event(), Unwatch(MAIN.session_key, CHILD), watch(), event())
    assert (await commit(store, acknowledge(MAIN, 0, 1))).results == (Acknowledged((), ()),)
    assert await positions(store) == Positions(1, 2, 2)


async def test_an_event_and_an_acknowledgement_in_one_transaction(store: Store) -> None:
    """An event before the acknowledgement belongs to its rest; one after it finds the pair clean and opens it."""
    await commit(store, watch(), event())
    await commit(store, acknowledge(MAIN, 0, 1), event(), event())
    assert await positions(store) == Positions(1, 2, 3)
    await commit(store, event(), acknowledge(MAIN, 1, 2))
    assert await positions(store) == Positions(2, 4, 4)


async def test_what_the_budget_does_not_reach_is_owed(store: Store) -> None:
    """Rule 4.3: an event on a target with many watchers opens some at once and the rest by `OpenOwed`, all pinned at the event."""
    await commit(store, *(watch(watcher) for watcher in crowd()))
    committed = await commit(store, event())
    assert 0 < len(committed.opened) < MANY
    assert committed.owed
    opened = set(committed.opened)
    while committed.owed:
        committed = await commit(store, OpenOwed(NOW, 20))
        assert len(committed.opened) == committed.results[0] <= 20  # type: ignore[operator]
        assert opened.isdisjoint(committed.opened)
        opened |= set(committed.opened)
    assert opened == {Opened(watcher.session_key, CHILD) for watcher in crowd()}
    assert set((await notified(store)).values()) == {Positions(0, 1, 1)}


async def test_what_is_owed_survives(store: Store, backend: object) -> None:
    """Rule 4.11: what was owed when the store was closed is owed when it is opened again."""
    await commit(store, *(watch(watcher) for watcher in crowd()), event())
    await store.close()
    async with backend.open() as again:  # type: ignore[attr-defined]
        assert (await commit(again)).owed
        assert (await commit(again, OpenOwed(NOW, 1000))).owed is False


async def test_an_event_on_a_target_that_owes_opens_nothing_itself(store: Store) -> None:
    """Rule 4.3: an owed pair is pinned at its first material event, though later ones came before it was opened."""
    watchers = crowd()
    await commit(store, *(watch(watcher) for watcher in watchers), event(by=watchers[-1]))
    committed = await commit(store, event(by=watchers[-1]), event(), event(by=watchers[0]))
    assert committed.opened == ()
    await commit(store, OpenOwed(NOW, 1000))
    got = await notified(store)
    assert got.pop(watchers[-1].session_key) == Positions(0, 3, 4)
    assert got.pop(watchers[0].session_key) == Positions(0, 1, 3)
    assert set(got.values()) == {Positions(0, 1, 4)}


async def test_one_watcher_can_have_what_is_owed_to_it(store: Store) -> None:
    """Rule 1.10: `OpenOwed` with a watcher opens all that is owed to it, whatever the limit, and leaves the others owed."""
    watchers = crowd()
    watches = [watch(watcher, target) for target in (CHILD, SECOND) for watcher in watchers]
    told = {opened.watcher for opened in (await commit(store, *watches, event(CHILD), event(SECOND))).opened}
    waiting = next(watcher.session_key for watcher in watchers if watcher.session_key not in told)
    before = await store.owes(waiting)
    committed = await commit(store, OpenOwed(NOW, 0, waiting))
    assert set(committed.opened) == {Opened(waiting, CHILD), Opened(waiting, SECOND)}
    assert (before, await store.owes(waiting)) == (True, False)
    assert committed.results == (2,)
    assert committed.owed
    assert (await store.pending(waiting, limit=None, excluding=[])).total == 2


async def test_a_pair_that_became_clean_while_its_target_owes_is_pinned_at_the_next_event(store: Store) -> None:
    """Rule 4.3: opened, acknowledged and touched again while others wait: the pin is the first event after last seen."""
    watchers = crowd()
    await commit(store, *(watch(watcher) for watcher in watchers))
    early = (await commit(store, event())).opened[0].watcher
    await commit(store, Acknowledge(early, (Shown(CHILD, 0, 1),), NOW))
    await commit(store, event(kind="compacted", notifies=False), event(by=Address(early, "main")), event(), event())
    await commit(store, OpenOwed(NOW, 1000))
    assert (await notified(store))[early] == Positions(1, 4, 5)


async def test_owing_ends_when_nobody_is_left(store: Store) -> None:
    """Where the watchers that were owed are gone, nothing is opened and nothing is owed any more."""
    watchers = crowd()
    await commit(store, *(watch(watcher) for watcher in watchers), event())
    await commit(store, *(Unwatch(watcher.session_key, CHILD) for watcher in watchers))
    committed = await commit(store, OpenOwed(NOW, 10))
    assert (committed.results, committed.opened, committed.owed) == ((0,), (), False)


async def test_a_replay_pins_at_the_material_position(store: Store) -> None:
    """Rule 4.11: after a start every pending pair has one notice, since last seen, pinned at material; clean pairs have none."""
    await commit(store, watch(), watch(OTHER), event(), event(by=OTHER), acknowledge(OTHER, 0, 1))
    committed = await commit(store, Replay(100))
    assert committed.opened == (Opened(MAIN.session_key, CHILD),)
    assert (await positions(store), await positions(store, OTHER)) == (Positions(0, 2, 2), Positions(1, 1, 1))


async def test_a_replay_in_slices_tells_every_pair_once(store: Store) -> None:
    """Slices follow one another by `Replayed.after`, and pass over the watchers that are done."""
    pairs = [(watcher, target) for watcher in (MAIN, OTHER, SECOND) for target in (CHILD, Address("global", "main"))]
    await commit(store, *(watch(*pair) for pair in pairs), event(CHILD), event(Address("global", "main")))
    told: list[Opened] = []
    replay = Replay(2, done=frozenset({OTHER.session_key}))
    while True:
        committed = await commit(store, replay)
        told += committed.opened
        assert isinstance(committed.results[0], Replayed)
        if committed.results[0].after is None:
            break
        replay = Replay(2, committed.results[0].after, done=replay.done)
    assert sorted(told) == sorted(Opened(watcher.session_key, target) for watcher, target in pairs if watcher != OTHER)


async def test_a_replay_of_one_watcher_tells_all_its_pairs(store: Store) -> None:
    """Rule 4.11: opened or still owed, each of its pending pairs is pinned at material and told."""
    watchers = crowd()
    waiting = watchers[-1].session_key
    await commit(store, *(watch(watcher) for watcher in watchers), watch(watchers[-1], SECOND), event(SECOND), event(), event())
    committed = await commit(store, Replay(0, watcher=waiting))
    assert committed.results == (Replayed(None),)
    assert set(committed.opened) == {Opened(waiting, CHILD), Opened(waiting, SECOND)}
    assert (await notified(store))[waiting] == Positions(0, 3, 3)


@pytest.mark.parametrize("watcher", [None, MAIN.session_key])
async def test_a_replay_passes_over_what_has_expired(store: Store, watcher: str | None) -> None:
    """Rules 3.5, 4.11: what was not renewed in time is neither pinned anew nor told, though no sweep has removed it yet."""
    await commit(store, watch(), watch(MAIN, SECOND), event(SECOND), event())
    await commit(store, event())
    committed = await commit(store, Replay(100, watcher=watcher, renewed_from_ms=NOW + 100_000))
    assert (committed.opened, await positions(store)) == ((), Positions(0, 2, 3))
    committed = await commit(store, Replay(100, watcher=watcher, renewed_from_ms=NOW - 1))
    assert (len(committed.opened), await positions(store)) == (2, Positions(0, 3, 3))


async def test_the_first_slice_of_a_replay_moves_what_is_owed(store: Store) -> None:
    """Rule 4.11: what was owed at a start is opened at the material position of then, also if more comes before it is opened."""
    watchers = crowd()
    await commit(store, *(watch(watcher) for watcher in watchers), event(), event(by=watchers[-1]))
    await commit(store, Replay(1000), event())
    await commit(store, OpenOwed(NOW, 1000))
    got = await notified(store)
    assert got.pop(watchers[-1].session_key) == Positions(0, 1, 3)
    assert set(got.values()) == {Positions(0, 2, 3)}


async def test_pending_is_ordered_and_limited(store: Store) -> None:
    """Rule 4.7: by notified position; `total` counts what the limit cuts off."""
    targets = [Address(f"agent:main:subagent:{name}", "main") for name in "zyx"]
    await commit(store, *(watch(MAIN, target) for target in targets), *(event(target) for target in targets))
    read = await store.pending(MAIN.session_key, limit=2, excluding=[])
    assert [cursor.target for cursor in read.cursors] == targets[:2]
    assert (read.total, read.session_exists) == (3, True)


async def test_pending_without_a_total_gives_the_same_notices(store: Store) -> None:
    """Whether all that is pending is counted or not, the same notices are given."""
    targets = [Address(f"agent:main:subagent:{name}", "main") for name in "zyx"]
    await commit(store, *(watch(MAIN, target) for target in targets), *(event(target) for target in targets))
    for limit in (1, 3, None):
        counted = await store.pending(MAIN.session_key, limit=limit, excluding=[])
        uncounted = await store.pending(MAIN.session_key, limit=limit, excluding=[], with_total=False)
        assert (counted.total, uncounted.cursors) == (3, counted.cursors)


async def test_pending_leaves_out_the_very_notices_excluded(store: Store) -> None:
    """Rule 4.8: a notice that was taken is left out; another notice of the same pair is not."""
    await commit(store, watch(), watch(MAIN, SECOND), event(CHILD), event(SECOND))
    taken = [Shown(CHILD, 0, 1), Shown(SECOND, 0, 7)]
    read = await store.pending(MAIN.session_key, limit=None, excluding=taken)
    assert read.cursors == (Cursor(MAIN.session_key, SECOND, Positions(0, 2, 2)),)
    assert read.total == 1


async def test_pending_of_nobody(store: Store) -> None:
    """A watcher without a session has nothing pending, and the read says that there is no session."""
    read = await store.pending("agent:main:nobody", limit=None, excluding=[])
    assert (read.session_exists, read.cursors, read.total) == (False, (), 0)


async def test_cursors_are_ordered(store: Store) -> None:
    """All cursors, or one watcher's, by watcher and then target."""
    await commit(store, watch(OTHER, SECOND), watch(OTHER, CHILD), watch(MAIN, SECOND), spawn())
    everybody = [(cursor.watcher, cursor.target) for cursor in await store.cursors(None)]
    assert everybody == [(watcher.session_key, target) for watcher in (MAIN, OTHER) for target in (CHILD, SECOND)]
    assert [cursor.target for cursor in await store.cursors(OTHER.session_key)] == [CHILD, SECOND]
