"""What sessions weigh: one that rests, one that was put away, and a million of which a thousand are busy."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from kizuki.actors import open_gateway
from kizuki.actors.clock import ManualClock

from .children import run_child
from .databases import NOW_MS, folder
from .rows import Row, compared
from .scale import Scale
from .using import use
from .worlds import build_sessions

SUITE = "memory"
WHAT = "memory of a resting and of a put-away session, and of a gateway with up to a million sessions"

BUSY_SHARE = 1_000
MOST_IDLE_BYTES = 1_024.0
MOST_PUT_AWAY_BYTES = 64.0
"""What the store remembers of the latest sessions, 4,096 at most, is in it."""
MOST_MIB = 1_024.0
IDLE_S = 300.0


def measure(scale: Scale, progress: Callable[[str], None]) -> list[Row]:
    """Run the suite."""
    resting = scale.pick(100, 30_000, 50_000, 100_000)
    sizes = scale.pick((200,), (2_000, 10_000), (10_000, 100_000), (10_000, 100_000, 1_000_000))
    progress(f"{resting:,} sessions that rest, and are put away")
    with folder() as place:
        rows = asyncio.run(_weights(place, resting))
    for size in sizes:
        progress(f"building {size:,} sessions, then using each once while {max(1, size // BUSY_SHARE):,} are busy")
        rows += _crowd(size)
    return rows


async def _weights(place: Path, count: int) -> list[Row]:
    """Through a whole gateway: the actor, its ref and its entry in the directory; then what is left of them."""
    clock = ManualClock(NOW_MS)
    async with open_gateway(place / "gateway.db", clock=clock) as gateway:
        tracemalloc.start()
        try:
            # What is kept for any session up to some number, such as statements and heads, is filled by others first.
            await use(gateway, range(count, 2 * count))
            await _put_away(clock)
            gc.collect()
            before = tracemalloc.get_traced_memory()[0]
            tasks = len(asyncio.all_tasks())
            await use(gateway, range(count))
            gc.collect()
            resting = (tracemalloc.get_traced_memory()[0] - before) / count
            tasks = len(asyncio.all_tasks()) - tasks
            await _put_away(clock)
            left = (await gateway.statistics()).actors_resident
            gc.collect()
            put_away = max(0.0, tracemalloc.get_traced_memory()[0] - before) / count
        finally:
            tracemalloc.stop()
    return [
        Row(SUITE, "a session that rests, in a gateway", resting, "bytes").at_most(MOST_IDLE_BYTES),
        Row(SUITE, f"tasks more for {count:,} sessions that rest", float(tasks), "tasks").at_most(0),
        compared(SUITE, "a session that was put away, against one that rests", "bytes", put_away, resting).at_most(MOST_PUT_AWAY_BYTES),
        Row(SUITE, "actors left of them", float(left), "actors").at_most(0),
    ]


async def _put_away(clock: ManualClock) -> None:
    for _ in range(3):
        await clock.advance(IDLE_S)


def _crowd(size: int) -> list[Row]:
    """In a process of its own; the baseline is one that has as many tasks with a queue each, of which the sizes up to 100,000 are tried."""
    busy = max(1, size // BUSY_SHARE)
    with folder() as place:
        build_sessions(place / "gateway.db", size, watched=busy)
        ours = asyncio.run(run_child("residents", "gateway", place / "gateway.db", size, busy))
    tasks = min(size, 100_000)
    theirs = asyncio.run(run_child("residents", "tasks", "-", tasks, busy))
    # Memory of tasks grows with their number alone, so a million need not be made to know what they take.
    scaled = theirs["empty_mib"] + (theirs["mib"] - theirs["empty_mib"]) * size / tasks
    name = f"{size:,} sessions of which {busy:,} are busy: the most memory, against a task with a queue for each"
    row = compared(SUITE, name, "MiB", ours["mib"], scaled).at_most(MOST_MIB)
    return [
        row.at("Memory of a gateway whose sessions are all used", size, "sessions", beside="a task with a queue for each"),
        Row(SUITE, f"{size:,} sessions: events recorded meanwhile", ours["events"], "events"),
    ]
