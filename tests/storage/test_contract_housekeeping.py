"""Pruning and expiry in slices, whatever the backend."""

from __future__ import annotations

import pytest

from kizuki.storage import Store
from kizuki.storage.records import Address, Positions
from kizuki.storage.writes import ExpireCursors, OpenOwed, PruneEvents, Replay, Swept
from tests.storage.writing import CHILD, MAIN, NOW, OTHER, SECOND, acknowledge, commit, event, positions, record, sequences, spawn, watch


async def sweep(store: Store, first: ExpireCursors | PruneEvents) -> tuple[int, int]:
    """Slice after slice to the end: how many rows went, in how many slices."""
    removed = slices = 0
    after = None
    while True:
        write = first
        if after is not None and isinstance(first, PruneEvents) and isinstance(after, int):
            write = PruneEvents(first.before_ms, first.keep_rows, first.limit, after)
        elif after is not None and isinstance(first, ExpireCursors) and isinstance(after, tuple):
            write = ExpireCursors(first.before_ms, first.limit, after)
        swept = (await commit(store, write)).results[0]
        assert isinstance(swept, Swept)
        removed, slices, after = removed + swept.removed, slices + 1, swept.after
        if after is None:
            return removed, slices


@pytest.mark.parametrize("limit", [1, 3, 7, 100])
async def test_pruning_by_age(store: Store, limit: int) -> None:
    """Rule 6.1: what was recorded before the time goes, in any session, in slices of any size."""
    await record(store, *(event(CHILD if number % 2 else SECOND, now_ms=NOW + number) for number in range(20)))
    removed, _ = await sweep(store, PruneEvents(NOW + 5, 100, limit))
    assert removed == 5
    assert (await sequences(store, SECOND), await sequences(store)) == ([7, 9, 11, 13, 15, 17, 19], [6, 8, 10, 12, 14, 16, 18, 20])


@pytest.mark.parametrize("limit", [1, 3, 7, 100])
async def test_pruning_by_number(store: Store, limit: int) -> None:
    """Rule 6.1: all but the newest rows go."""
    await record(store, *(event(CHILD if number % 2 else SECOND) for number in range(20)))
    assert (await sweep(store, PruneEvents(0, 5, limit)))[0] == 15
    assert [found.sequence for found in await store.events(address=None, limit=100)] == [16, 17, 18, 19, 20]


async def test_pruning_with_nothing_to_do(store: Store) -> None:
    """A sweep over what is to be kept removes nothing, and ends."""
    assert await sweep(store, PruneEvents(NOW, 10, 5)) == (0, 1)
    await record(store, *[event()] * 10)
    assert (await sweep(store, PruneEvents(NOW, 10, 4)))[0] == 0


async def test_pruning_changes_no_position(store: Store) -> None:
    """Rule 4.11: pending is kept in heads and cursors, and survives the pruning of its events."""
    await commit(store, watch(), watch(OTHER), event(by=OTHER), event(by=MAIN), event(kind="compacted", notifies=False))
    before = await store.cursors(None)
    await commit(store, PruneEvents(NOW + 1, 0, 100))
    assert await store.cursors(None) == before
    await commit(store, Replay(100))
    assert (await positions(store), await positions(store, OTHER)) == (Positions(0, 1, 1), Positions(0, 2, 2))


async def test_an_owed_opening_survives_the_pruning_of_its_event(store: Store) -> None:
    """Rule 4.10: what is owed is opened though its event has been pruned."""
    watchers = [Address(f"agent:main:watcher{number}", "main") for number in range(300)]
    await commit(store, *(watch(watcher) for watcher in watchers), event())
    await commit(store, PruneEvents(NOW + 1, 0, 100), OpenOwed(NOW, 1000))
    assert {cursor.positions for cursor in await store.cursors(None)} == {Positions(0, 1, 1)}


async def test_both_owed_pins_survive_the_pruning_of_their_events(store: Store) -> None:
    """Rule 4.3: the pin of the watcher that caused the first owed event, too, is known when the events are gone."""
    watchers = [Address(f"agent:main:watcher{number}", "main") for number in range(300)]
    await commit(store, *(watch(watcher) for watcher in watchers), event(by=watchers[-1]))
    await commit(store, event(), event())
    await commit(store, PruneEvents(NOW + 1, 0, 100), OpenOwed(NOW, 1000))
    got = {cursor.watcher: cursor.positions for cursor in await store.cursors(None)}
    assert got.pop(watchers[-1].session_key) == Positions(0, 2, 3)
    assert set(got.values()) == {Positions(0, 1, 3)}


async def test_cursors_expire(store: Store) -> None:
    """Rule 3.5: cursors not renewed since the time go, pending or not; in slices of any size."""
    targets = [Address(f"agent:main:subagent:{number}", "main") for number in range(10)]
    await commit(store, *(watch(MAIN, target, now_ms=NOW + number) for number, target in enumerate(targets)))
    removed, slices = await sweep(store, ExpireCursors(NOW + 4, 3))
    assert (removed, slices > 1) == (4, True)
    assert {cursor.target for cursor in await store.cursors(None)} == set(targets[4:])


async def test_what_renews_a_cursor(store: Store) -> None:
    """Rule 3.5: a watch, a spawn, an opening and an acknowledgement renew; an event on a pending pair and a replay do not."""
    old = NOW - 100
    keys = ("watched", "spawned", "opened", "acknowledged", "pending")
    targets = {name: Address(f"agent:main:subagent:{name}", "main") for name in keys}
    await commit(store, *(watch(MAIN, target, now_ms=old) for target in targets.values()))
    await commit(store, *(event(targets[name], now_ms=old) for name in ("acknowledged", "pending")))
    await commit(
        store,
        watch(MAIN, targets["watched"]),
        spawn(MAIN, targets["spawned"]),
        event(targets["opened"]),
        acknowledge(MAIN, 0, 1, targets["acknowledged"]),
        event(targets["pending"]),
        Replay(100),
        ExpireCursors(NOW, 100),
    )
    assert {cursor.target for cursor in await store.cursors(None)} == set(targets.values()) - {targets["pending"]}
