"""Commits beside a host that keeps the loop busy with Python of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from statistics import median
from time import perf_counter
from typing import Any
from unittest.mock import patch

from kizuki.storage import Store, open_store
from kizuki.storage.records import Address, SessionDraft
from kizuki.storage.writes import Append, Watch

from .databases import NOW_MS, folder
from .rows import Row, paired, percentile
from .scale import Scale

SUITE = "busy"
WHAT = "commits of 256 events while the host keeps the loop 90 % busy, with and without the loop's pauses"

BATCH = 256
LARGE_BATCH = 2_048
LEAST_EVENTS = 25_000
BUSY_SHARE = 0.9
PERIOD_S = 0.01
BETWEEN_S = 0.02
MOST_MS = 25.0
MOST_BY_IDLE = 1.5
"""On a machine whose disk takes longer than `MOST_MS` by itself."""


@dataclass(frozen=True, slots=True)
class _Size:
    seconds: float
    """Of all rounds of one kind of host."""
    rounds: int
    batch: int
    large_batch: int


def measure(scale: Scale, progress: Callable[[str], None]) -> list[Row]:
    """Run the suite."""
    seconds = scale.pick(0.1, 2.0, 8.0, 20.0)
    size = _Size(seconds, scale.pick(1, 4, 4, 4), scale.pick(16, BATCH, BATCH, BATCH), scale.pick(64, *[LARGE_BATCH] * 3))
    rows: list[Row] = []
    for turn_us in (50, 500):
        progress(f"turns of {turn_us} µs, {seconds:g} seconds")
        rows += _with_and_without(turn_us, size)
        rows.append(_throughput(turn_us, size))
    return rows


def _throughput(turn_us: int, size: _Size) -> Row:
    """One commit after another, as large as the log's largest group."""
    ours: list[float] = []
    idle: list[float] = []
    for _ in range(size.rounds):
        ours.append(asyncio.run(_events_a_second(turn_us / 1e6, size)))
        idle.append(asyncio.run(_events_a_second(0.0, size)))
    name = f"turns of {turn_us} µs, commits of {size.large_batch:,} events one after another, against an idle loop"
    return paired(SUITE, name, "events/s", ours, idle).at_least(LEAST_EVENTS)


async def _events_a_second(turn_s: float, size: _Size) -> float:
    elapsed_ms = await _commits_ms(turn_s, size.seconds / size.rounds / 4, nullcontext(), size.large_batch, 0.0)
    return size.large_batch * 1e3 / median(elapsed_ms)


def _with_and_without(turn_us: int, size: _Size) -> list[Row]:
    """In short turns with each other, so that all see the same machine."""
    cured: list[float] = []
    stalled: list[float] = []
    alone: list[float] = []
    seconds = size.seconds / size.rounds / 3
    for _ in range(size.rounds):
        cured.extend(asyncio.run(_commits_ms(turn_us / 1e6, seconds, nullcontext(), size.batch)))
        stalled.extend(asyncio.run(_commits_ms(turn_us / 1e6, seconds, _no_pauses(), size.batch)))
        alone.extend(asyncio.run(_commits_ms(0.0, seconds, nullcontext(), size.batch)))
    name = f"turns of {turn_us} µs, commit of {size.batch} events"
    worst, worst_idle = percentile(cured, 0.99), percentile(alone, 0.99)
    beside_idle = _row(f"{name}, 99th percentile, against an idle loop", worst, worst_idle)
    met = worst <= max(MOST_MS, MOST_BY_IDLE * worst_idle)
    return [
        replace(beside_idle, target=f"<= {MOST_MS:g} ms or ratio <= {MOST_BY_IDLE}", ok=met),
        _row(f"{name}, 99th percentile, against no pauses", worst, percentile(stalled, 0.99)),
        _row(f"{name}, median, against no pauses", median(cured), median(stalled)),
    ]


def _row(name: str, cured_ms: float, other_ms: float) -> Row:
    return Row(SUITE, name, cured_ms, "ms", other_ms, cured_ms / other_ms)


def _no_pauses() -> AbstractContextManager[Any]:
    return patch("kizuki.storage.handoff.pause_s", lambda _turn_s: 0.0)


async def _commits_ms(
    turn_s: float, seconds: float, pauses: AbstractContextManager[Any], batch_size: int, between_s: float = BETWEEN_S
) -> list[float]:
    with folder() as place, pauses:
        async with open_store(place / "store.db") as store:
            batch = await _watched_batch(store, batch_size)
            host = asyncio.create_task(_host(turn_s))
            try:
                return await _commit_for(store, batch, seconds, between_s)
            finally:
                host.cancel()
                await asyncio.wait([host])


async def _commit_for(store: Store, batch: Sequence[Append], seconds: float, between_s: float) -> list[float]:
    elapsed_ms: list[float] = []
    end_s = perf_counter() + seconds
    while perf_counter() < end_s or not elapsed_ms:
        await asyncio.sleep(between_s)
        began_s = perf_counter()
        await store.commit(batch, busy_timeout_s=5.0)
        elapsed_ms.append((perf_counter() - began_s) * 1e3)
    return elapsed_ms


async def _host(turn_s: float) -> None:
    """Turns of Python, 90 % of the time; none at all for turns of 0."""
    while turn_s:
        for _ in range(round(PERIOD_S * BUSY_SHARE / turn_s)):
            _spin(turn_s)
            await asyncio.sleep(0)
        await asyncio.sleep(PERIOD_S * (1 - BUSY_SHARE))


def _spin(seconds: float) -> None:
    end_s = perf_counter() + seconds
    while perf_counter() < end_s:
        pass


async def _watched_batch(store: Store, size: int) -> list[Append]:
    watcher = Address("agent:main:main", "main")
    targets = [Address(f"agent:main:subagent:child-{number}", "main") for number in range(size)]
    watches = [Watch(watcher, SessionDraft("main"), target, SessionDraft("subagent"), NOW_MS) for target in targets]
    await store.commit(watches, busy_timeout_s=5.0)
    batch = [_append(target) for target in targets]
    await store.commit(batch, busy_timeout_s=5.0)
    return batch


def _append(target: Address) -> Append:
    return Append(
        target=target,
        session=SessionDraft("subagent"),
        kind="human_direct_message",
        notifies=True,
        actor_type="human",
        actor_id=None,
        run_id=None,
        occurred_at_ms=NOW_MS,
        recorded_at_ms=NOW_MS,
        summary="human message via telegram",
        only_if_watched=True,
    )
