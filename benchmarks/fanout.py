"""What an event costs when many watch its session."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from time import perf_counter

from kizuki.actors import Gateway, open_gateway

from .databases import folder
from .rows import Row, paired

SUITE = "fanout"
WHAT = "an event on a session with 10,000 watchers against one with a single watcher"

POPULAR, QUIET, FRESH = (f"agent:main:subagent:{name}" for name in ("popular", "quiet", "fresh"))
MOST_COST = 1.5


def measure(*, quick: bool) -> list[Row]:
    """Run the suite."""
    with folder() as place:
        watchers = 2_000 if quick else 10_000
        return asyncio.run(_measure(str(place / "gateway.db"), watchers, repetitions=40 if quick else 200))


async def _measure(path: str, watchers: int, repetitions: int) -> list[Row]:
    async with open_gateway(path) as gateway:
        keys = [f"agent:main:watcher-{number}" for number in range(watchers)]
        for target, observers in ((POPULAR, keys), (FRESH, keys), (QUIET, keys[:1])):
            await asyncio.gather(*(gateway.watch(key, target) for key in observers))
        await _settled(gateway, POPULAR)
        await _settled(gateway, QUIET)
        return [await _pending(gateway, watchers, repetitions), await _clean(gateway, watchers)]


async def _pending(gateway: Gateway, watchers: int, repetitions: int) -> Row:
    popular: list[float] = []
    quiet: list[float] = []
    for _ in range(repetitions):
        popular.append(await _event_us(gateway, POPULAR))
        quiet.append(await _event_us(gateway, QUIET))
    row = paired(SUITE, f"an event, {watchers:,} watchers pending, against one watcher", "µs", popular, quiet)
    return replace(row, target=f"ratio <= {MOST_COST}", ok=row.ratio is not None and row.ratio <= MOST_COST)


async def _clean(gateway: Gateway, watchers: int) -> Row:
    opened = (await gateway.statistics()).notices_opened
    elapsed_s = await _settled(gateway, FRESH)
    opened = (await gateway.statistics()).notices_opened - opened
    return Row(SUITE, f"a notice opened, {watchers:,} watchers clean", elapsed_s / watchers * 1e6, "µs", ok=opened == watchers)


async def _event_us(gateway: Gateway, target: str) -> float:
    began = perf_counter()
    await gateway.human_message(target, channel="telegram")
    return (perf_counter() - began) * 1e6


async def _settled(gateway: Gateway, target: str) -> float:
    """Seconds from an event until every notice that it calls for is open."""
    began = perf_counter()
    await gateway.human_message(target, channel="telegram")
    await gateway.idle()
    return perf_counter() - began
