"""Rule 6.1: pruning by age and by rows."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kizuki.actors import Gateway, GatewayConfig, ManualClock
from tests.system.cast import (
    CHILD,
    DAY_MS,
    DAY_S,
    HOUR_S,
    MAIN,
    NOW,
    OTHER,
    PERSON,
    changes,
    family,
    human,
    positions,
    sequences,
    show,
    text_of,
    there,
    version,
)
from tests.system.conftest import Opening


def kept(database: Path) -> list[int]:
    """The sequences that are in the database."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        return [row[0] for row in connection.execute("SELECT sequence FROM session_state_events ORDER BY sequence")]


def heads(database: Path) -> dict[str, tuple[int, int]]:
    """Each head's last and pruned sequences."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT session_key, last_sequence, pruned_max_sequence FROM session_state_heads").fetchall()
        return {key: (last, pruned) for key, last, pruned in rows}


async def many(gateway: Gateway, count: int, key: str = CHILD) -> None:
    await asyncio.gather(*(gateway.goal_changed(key, "updated", actor=PERSON) for _ in range(count)))


async def test_by_age(gateway: Gateway, clock: ManualClock, database: Path) -> None:
    """Rule 6.1: events older than 30 days go, younger ones stay; `prune` says how many went."""
    await many(gateway, 3)
    await clock.advance(DAY_S)
    await many(gateway, 2)
    await clock.advance(29 * DAY_S - 1)
    assert await gateway.prune() == 0
    await clock.advance(2)
    await gateway.prune()
    assert kept(database) == [4, 5]
    assert await gateway.prune() == 0


async def test_prune_counts(opening: Opening, clock: ManualClock, database: Path) -> None:
    """Interface: `prune` returns the number of events removed."""
    async with opening(config=GatewayConfig(retention_rows=4, prune_interval_s=10 * DAY_S)) as gateway:
        await gateway.idle()
        await many(gateway, 11)
        assert await gateway.prune() == 7
        assert kept(database) == [8, 9, 10, 11]


async def test_by_rows_over_all_sessions(opening: Opening, database: Path) -> None:
    """Rule 6.1: all but the newest rows go, counted over the whole log, not per session."""
    async with opening(config=GatewayConfig(retention_rows=3)) as gateway:
        await many(gateway, 2, OTHER)
        await many(gateway, 2, CHILD)
        await many(gateway, 1, OTHER)
        await gateway.prune()
        assert kept(database) == [3, 4, 5]
        assert heads(database) == {OTHER: (5, 2), CHILD: (4, 0)}


@pytest.mark.parametrize("count", [2, 3, 4])
async def test_rows_are_counted_not_numbers(opening: Opening, database: Path, count: int) -> None:
    """Rule 6.1: it is rows that are kept, though numbers in between are missing."""
    async with opening(config=GatewayConfig(retention_rows=3)) as gateway:
        await many(gateway, 1, CHILD)
        await many(gateway, 10, OTHER)
        await gateway.delete_session(OTHER)
        await many(gateway, count - 1, CHILD)
        await gateway.prune()
        assert len(kept(database)) == min(count, 3)


async def test_at_a_start(opening: Opening, clock: ManualClock, database: Path) -> None:
    """Rule 6.1: pruning is done at a start, without being asked."""
    async with opening() as gateway:
        await many(gateway, 3)
    await clock.advance(31 * DAY_S)
    async with opening():
        await clock.advance(0)
        assert kept(database) == []


async def test_hourly(gateway: Gateway, clock: ManualClock, database: Path) -> None:
    """Rule 6.1: pruning is done every hour: what becomes too old goes at the next full hour, not before."""
    await clock.advance(0)
    await clock.advance(HOUR_S / 2)
    await many(gateway, 1)
    await clock.advance(30 * DAY_S - 2 * HOUR_S)
    for _ in range(2):
        await clock.advance(HOUR_S)
        assert kept(database) == [1]
    await clock.advance(HOUR_S)
    assert kept(database) == []


async def test_on_a_monotonic_clock(gateway: Gateway, clock: ManualClock, database: Path) -> None:
    """Rule 6.1: the hour is one of the monotonic clock: a wall clock that jumps brings no pruning forward and holds none up."""
    await many(gateway, 1)
    await clock.advance(0)
    clock.set_wall_clock(NOW + 31 * DAY_MS)
    await clock.advance(HOUR_S - 60)
    assert kept(database) == [1]
    clock.set_wall_clock(NOW + 31 * DAY_MS - 30 * 60_000)
    await clock.advance(61)
    assert kept(database) == []


async def test_wall_clock_that_went_back(gateway: Gateway, clock: ManualClock, database: Path) -> None:
    """Rules 1.7, 6.1: after the wall clock went back nothing is pruned early, and recording goes on."""
    await many(gateway, 1)
    clock.set_wall_clock(NOW - 100 * DAY_MS)
    await many(gateway, 1)
    await gateway.prune()
    assert kept(database) == [1, 2]


async def test_other_interval(opening: Opening, clock: ManualClock, database: Path) -> None:
    """Rule 6.1: interval and age are configured."""
    async with opening(config=GatewayConfig(retention_days=1, prune_interval_s=60)) as gateway:
        await many(gateway, 1)
        await clock.advance(DAY_S - 1)
        assert kept(database) == [1]
        await clock.advance(60)
        assert kept(database) == []


async def test_marks_are_raised(gateway: Gateway, clock: ManualClock, database: Path) -> None:
    """Rule 6.1: each head's pruned mark is at the last of its rows that went, and never beyond."""
    await many(gateway, 2)
    await many(gateway, 2, OTHER)
    await clock.advance(20 * DAY_S)
    await many(gateway, 1)
    await clock.advance(11 * DAY_S)
    await gateway.prune()
    assert heads(database) == {CHILD: (5, 2), OTHER: (4, 4)}


async def test_marks_stay_raised(gateway: Gateway, clock: ManualClock, database: Path) -> None:
    """Rule 6.1: what is recorded, watched, reset or opened after a pruning leaves the pruned marks where they are."""
    await many(gateway, 2)
    await clock.advance(31 * DAY_S)
    await gateway.prune()
    await many(gateway, 2)
    await gateway.watch(MAIN, CHILD)
    await gateway.reset_session(CHILD)
    await gateway.open_session(CHILD, label="worker")
    assert heads(database)[CHILD] == (4, 2)
    assert (await changes(gateway, since=1))["historyGap"] is True
    assert sequences(await changes(gateway, since=2)) == [3, 4]


async def test_pending_notice_survives_pruning(gateway: Gateway, clock: ManualClock) -> None:
    """Rules 4.1, 6.1: a pending notice outlives the pruning of its events, byte for byte; its call then reports the gap."""
    await family(gateway)
    event = await human(gateway)
    await clock.advance(20 * DAY_S)
    await gateway.watch(MAIN, CHILD)
    await clock.advance(11 * DAY_S)
    await gateway.prune()
    assert sequences(await changes(gateway)) == []
    assert await positions(gateway) == (1, event.sequence, event.sequence)
    assert await show(gateway) == [text_of(CHILD, 1)]
    assert (await changes(gateway, since=1))["historyGap"] is True


async def test_pruned_notice_survives_a_restart(opening: Opening, clock: ManualClock) -> None:
    """Rules 4.11, 6.1: a pending pair whose events are pruned has its notice after a restart as well."""
    async with opening() as gateway:
        await family(gateway)
        await human(gateway)
        last = await human(gateway)
        await clock.advance(20 * DAY_S)
        await gateway.watch(MAIN, CHILD)
        await clock.advance(11 * DAY_S)
        await gateway.prune()
    async with opening() as gateway:
        assert await positions(gateway) == (1, last.sequence, last.sequence)


async def test_deltas_after_partial_pruning(opening: Opening) -> None:
    """Rules 5.1, 6.1: after rows were pruned the deltas of what is kept are complete, over several slices of pruning."""
    async with opening(config=GatewayConfig(retention_rows=500)) as gateway:
        await many(gateway, 1_500)
        await many(gateway, 100, OTHER)
        assert await gateway.prune() == 1_100
        delta = await changes(gateway, since=1_100)
        assert sequences(delta) == list(range(1_101, 1_301))
        assert (delta["truncated"], delta["earliestAvailableSequence"], delta["historyGap"]) == (True, 1_101, False)
        assert (await changes(gateway, since=1_099))["historyGap"] is True


async def test_recording_goes_on_during_a_prune(opening: Opening) -> None:
    """Rule 6.1: pruning is done in batches between other commits: what is recorded meanwhile is recorded."""
    async with opening(config=GatewayConfig(retention_rows=100)) as gateway:
        await many(gateway, 3_000)
        pruning = asyncio.create_task(gateway.prune())
        recorded = [there(await gateway.goal_changed(CHILD, "updated", actor=PERSON)).sequence for _ in range(20)]
        assert await pruning >= 2_900
        assert await version(gateway) == recorded[-1] == 3_020
        assert set(recorded) <= set(sequences(await changes(gateway, since=3_000)))


async def test_two_prunes_at_once(opening: Opening) -> None:
    """Rule 6.1: prunes at the same moment remove each row once."""
    async with opening(config=GatewayConfig(retention_rows=10)) as gateway:
        await many(gateway, 50)
        assert sorted(await asyncio.gather(gateway.prune(), gateway.prune())) == [0, 40]


async def test_default_rows(opening: Opening) -> None:
    """Rule 6.1: by default 50,000 rows and 30 days are kept, and pruned hourly."""
    config = GatewayConfig()
    assert (config.retention_rows, config.retention_days, config.prune_interval_s) == (50_000, 30, 3_600.0)
