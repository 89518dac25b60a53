"""How long an event takes while everything else goes on: turns, reconciling, lists."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from statistics import median
from time import perf_counter
from typing import Any

from kizuki.actors import Gateway, open_gateway

from .databases import folder
from .rows import Row, compared, percentile
from .scale import Scale
from .worlds import child_key, watcher_key

SUITE = "mixed"
WHAT = "how long an event takes while watchers have turns, reconcile and list sessions"

PRODUCERS = 32
WATCHERS = 8
MOST_TAIL = 10.0


def measure(scale: Scale, progress: Callable[[str], None]) -> list[Row]:
    """Run the suite."""
    seconds = scale.pick(0.2, 2.0, 6.0, 20.0)
    progress(f"{seconds:g} seconds with {PRODUCERS} producers and {WATCHERS} watchers")
    return asyncio.run(_measure(seconds))


async def _measure(seconds: float) -> list[Row]:
    with folder() as place:
        async with open_gateway(place / "gateway.db") as gateway:
            keys = [child_key(number) for number in range(PRODUCERS)]
            for number in range(WATCHERS):
                await gateway.open_session(watcher_key(number))
                await asyncio.gather(*(gateway.watch(watcher_key(number), key) for key in keys))
            latencies, turns = await _load(gateway, keys, seconds)
    middle, worst = median(latencies), percentile(latencies, 0.99)
    return [
        compared(SUITE, "an event, 99th percentile, against the median", "ms", worst, middle).ratio_at_most(MOST_TAIL),
        Row(SUITE, "events meanwhile", len(latencies) / seconds, "events/s"),
        Row(SUITE, "turns meanwhile, each with its notices and a reconciliation", turns / seconds, "turns/s"),
    ]


async def _load(gateway: Gateway, keys: Sequence[str], seconds: float) -> tuple[list[float], int]:
    end_s = perf_counter() + seconds
    latencies: list[float] = []
    turns: list[int] = []

    async def produce(key: str) -> None:
        began = perf_counter()
        await gateway.human_message(key, channel="telegram")
        latencies.append((perf_counter() - began) * 1e3)

    async def run_turn(key: str) -> None:
        async with gateway.turn(key) as turn:
            for notice in turn.notices[:1]:
                await gateway.session_status(notice.target, changes_since=notice.changes_since)
        turns.append(1)

    async def list_sessions(_key: str) -> None:
        await gateway.sessions_list()

    jobs: list[Coroutine[Any, Any, None]] = [_until(end_s, produce, key) for key in keys]
    jobs += [_until(end_s, run_turn, watcher_key(number)) for number in range(WATCHERS)]
    await asyncio.gather(*jobs, _until(end_s, list_sessions, ""))
    return latencies, len(turns)


async def _until(end_s: float, work: Callable[[str], Coroutine[Any, Any, None]], key: str) -> None:
    while perf_counter() < end_s:
        await work(key)
