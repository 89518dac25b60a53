"""Following the log of all sessions, whatever the backend and whoever records."""

from __future__ import annotations

import pytest

from kizuki.storage import Store
from kizuki.storage.records import LogPosition
from kizuki.storage.writes import PruneEvents
from tests.storage.conftest import Backend
from tests.storage.writing import CHILD, MAIN, OTHER, SECOND, acknowledge, commit, event, record, watch


async def followed(store: Store, position: LogPosition | None, events_max: int = 100) -> tuple[list[int], LogPosition]:
    """Follow until there is no more: the sequences, and how far that is."""
    got: list[int] = []
    while True:
        read = await store.follow(position, events_max=events_max, opened_max=100)
        got += [found.sequence for found in read.events]
        position = read.position
        if not read.more:
            return got, position


async def test_from_now_on(backend: Backend, store: Store) -> None:
    """Rule 8.1: who follows is given each later event once, also what another process records, and nothing of before."""
    await record(store, event(), event(SECOND))
    got, position = await followed(store, None)
    assert got == []
    async with backend.open() as elsewhere:
        recorded = await record(elsewhere, event(), event(SECOND), event())
    recorded += await record(store, event(OTHER))
    got, position = await followed(store, position)
    assert got == recorded
    for _ in range(3):
        got, position = await followed(store, position)
        assert got == []
    assert position.settled == recorded[-1]


@pytest.mark.parametrize("events_max", [1, 2, 7, 100])
async def test_in_pieces(store: Store, events_max: int) -> None:
    """However few are asked for at once, each event is given once, ascending, with the session that it belongs to."""
    _, position = await followed(store, None)
    recorded = await record(store, *(event(CHILD if number % 3 else SECOND) for number in range(20)))
    got, position = await followed(store, position, events_max)
    assert got == recorded
    assert await followed(store, position, events_max) == ([], (await followed(store, position))[1])


async def test_behind_a_sequence(store: Store) -> None:
    """A position can be made of a sequence: what comes behind it is given, as far as it is kept."""
    recorded = await record(store, *(event() for _ in range(9)))
    assert (await followed(store, LogPosition(recorded[3])))[0] == recorded[4:]
    await commit(store, PruneEvents(0, 3, 100))
    assert (await followed(store, LogPosition(0)))[0] == recorded[-3:]
    assert (await followed(store, LogPosition(2**53)))[0] == []
    assert (await store.follow(LogPosition(0), events_max=2, opened_max=1)).events[0].session_key == CHILD.session_key


async def test_read_only(backend: Backend, store: Store) -> None:
    """Rule 8.4: a store that was opened read-only can follow, too."""
    async with backend.open(read_only=True) as reader:
        _, position = await followed(reader, None)
        recorded = await record(store, event())
        assert (await followed(reader, position))[0] == recorded


async def test_opened_notices(store: Store) -> None:
    """All opened notices are told, those that are acknowledged no more; more than were asked for are not told in part."""
    await commit(store, watch(MAIN, CHILD), watch(MAIN, SECOND), watch(OTHER, CHILD))
    assert (await store.follow(None, events_max=1, opened_max=5)).opened == ()
    first, _, second = await record(store, event(), event(), event(SECOND))
    read = await store.follow(None, events_max=1, opened_max=3)
    assert read.opened is not None
    wanted = [(MAIN.session_key, CHILD, first), (MAIN.session_key, SECOND, second), (OTHER.session_key, CHILD, first)]
    assert [(cursor.watcher, cursor.target, cursor.positions.notified) for cursor in read.opened] == wanted
    assert (await store.follow(None, events_max=1, opened_max=2)).opened is None
    await commit(store, acknowledge(MAIN, 0, second, SECOND))
    read = await store.follow(None, events_max=1, opened_max=2)
    assert read.opened is not None
    assert [(cursor.watcher, cursor.target) for cursor in read.opened] == [(MAIN.session_key, CHILD), (OTHER.session_key, CHILD)]
