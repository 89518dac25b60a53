"""From the call that appends an event to the watcher that is told of it, at a steady pace, beside a bare commit at the same pace.

Each event goes to a session whose only watcher is clean, so each opens a notice. Two moments are measured from the call on. *In the
queue*: the call has returned, so event and notice are durable and the watcher's next turn shows it. *Woken*: the host's wake callback has
been called, with the merging of wakes (250 ms) switched off; before that the heartbeat has looked once more whether there is still a
notice. The baseline is what no design can do without: one `sqlite3` commit of one row, `synchronous=FULL`, on a thread, from the moment
that thread has begun it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from time import perf_counter

from kizuki.actors import Gateway, GatewayConfig, open_gateway

from .databases import RawDatabase, folder, raw_database
from .rows import Row, compared, percentile
from .scale import Scale
from .worlds import build_sessions, child_key

SUITE = "inbox"
WHAT = "from the append to the watcher at 1,000 events a second, against a bare commit at the same pace"

PACE_S = 0.001
EVENTS_A_ROUND = 500
MOST_OVER_MS = 1.5


def measure(scale: Scale, progress: Callable[[str], None]) -> list[Row]:
    """Run the suite."""
    rounds, events = scale.pick((1, 20), (2, EVENTS_A_ROUND), (6, EVENTS_A_ROUND), (20, EVENTS_A_ROUND))
    with folder() as place, raw_database(place / "raw.db") as raw:
        build_sessions(place / "gateway.db", rounds * events, watched=rounds * events)
        progress(f"{rounds} rounds of {events} events")
        return asyncio.run(_measure(place / "gateway.db", raw, rounds, events))


@dataclass(slots=True)
class _Latencies:
    """Milliseconds from the call."""

    began: dict[str, float] = field(default_factory=dict)
    queued: list[float] = field(default_factory=list)
    woken: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)

    def wake(self, _watcher: str, reasons: tuple[str, ...]) -> None:
        now = perf_counter()
        for target in reasons:
            self.woken.append((now - self.began[target]) * 1e3)


async def _measure(path: Path, raw: RawDatabase, rounds: int, events: int) -> list[Row]:
    seen = _Latencies()
    config = GatewayConfig(wake_coalesce_s=0)
    with ThreadPoolExecutor(1) as thread:
        async with open_gateway(path, config=config, wake=seen.wake) as gateway:
            await _alternate(gateway, raw, thread, seen, rounds, events)
    return _rows(seen)


async def _alternate(gateway: Gateway, raw: RawDatabase, thread: Executor, seen: _Latencies, rounds: int, events: int) -> None:
    for number in range(rounds):
        first = number * events
        await _paced(range(first, first + events), lambda each: _append(gateway, child_key(each), seen))
        await gateway.idle()
        await _paced(range(events), lambda _each: _bare(raw, thread, seen))


async def _paced(events: range, work: Callable[[int], Awaitable[None]]) -> None:
    """Begin each when it is due, whether or not those before have ended: what is late waits in the measurement, not before it."""
    began = perf_counter()
    async with asyncio.TaskGroup() as group:
        for number, each in enumerate(events):
            await asyncio.sleep(max(0.0, began + number * PACE_S - perf_counter()))
            group.create_task(_await(work(each)))


async def _await(work: Awaitable[None]) -> None:
    await work


async def _append(gateway: Gateway, key: str, seen: _Latencies) -> None:
    began = seen.began[key] = perf_counter()
    await gateway.human_message(key, channel="telegram")
    seen.queued.append((perf_counter() - began) * 1e3)


async def _bare(raw: RawDatabase, thread: Executor, seen: _Latencies) -> None:
    (elapsed_s,) = await asyncio.get_running_loop().run_in_executor(thread, raw.same_table, [child_key(0)], 1)
    seen.bare.append(elapsed_s * 1e3)


def _rows(seen: _Latencies) -> list[Row]:
    rows = []
    for moment, latencies in (("in the watcher's queue", seen.queued), ("watcher woken", seen.woken)):
        name = f"from the append to {moment}, against a bare commit"
        worst, bare = percentile(latencies, 0.99), percentile(seen.bare, 0.99)
        row = compared(SUITE, f"{name}, 99th percentile", "ms", worst, bare)
        rows.append(compared(SUITE, f"{name}, median", "ms", median(latencies), median(seen.bare)))
        rows.append(replace(row, target=f"<= baseline + {MOST_OVER_MS:g} ms", ok=worst <= bare + MOST_OVER_MS))
    return rows
