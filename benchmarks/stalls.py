"""How long the loop is ever kept from its other work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from time import perf_counter

from kizuki.actors import Gateway, GatewayConfig, open_gateway

from .databases import folder
from .rows import Row
from .scale import Scale

SUITE = "stalls"
WHAT = "the loop's longest gap under load and during a prune, against an idle gateway's"

TICK_S = 0.001
PRODUCERS = 64
KEPT_ROWS = 1_000
MOST_MS = 50.0


def measure(scale: Scale, progress: Callable[[str], None]) -> list[Row]:
    """Run the suite."""
    seconds, rows = scale.pick((0.1, 500), (1.0, 10_000), (5.0, 50_000), (5.0, 50_000))
    progress(f"{seconds:g} seconds of {PRODUCERS} producers, then a prune of {rows:,} rows")
    return asyncio.run(_measure(seconds, rows))


async def _measure(seconds: float, rows: int) -> list[Row]:
    keys = [f"agent:main:subagent:child-{number}" for number in range(PRODUCERS)]
    config = GatewayConfig(retention_rows=KEPT_ROWS)
    with folder() as place:
        async with open_gateway(place / "gateway.db", config=config) as gateway:
            for key in keys:
                await gateway.watch("agent:main:main", key)
            idle = await _longest_gap_ms(asyncio.sleep(seconds))
            load = await _longest_gap_ms(_load(gateway, keys, seconds))
            await _load_rows(gateway, keys, rows + KEPT_ROWS)
            prune = await _longest_gap_ms(gateway.prune())
    return [_row("64 producers", load, idle), _row(f"a prune of {rows:,} rows", prune, idle)]


def _row(name: str, gap_ms: float, idle_ms: float) -> Row:
    return Row(SUITE, f"{name}, longest gap", gap_ms, "ms", idle_ms, gap_ms / idle_ms, f"<= {MOST_MS:g} ms", gap_ms <= MOST_MS)


async def _longest_gap_ms(work: Awaitable[object]) -> float:
    """The longest that a tick of every millisecond was late while the work went on."""
    gaps: list[float] = []
    ticker = asyncio.create_task(_tick(gaps))
    try:
        await work
    finally:
        ticker.cancel()
        await asyncio.wait([ticker])
    return max(gaps) * 1e3


async def _tick(gaps: list[float]) -> None:
    while True:
        began_s = perf_counter()
        await asyncio.sleep(TICK_S)
        gaps.append(perf_counter() - began_s - TICK_S)


async def _load(gateway: Gateway, keys: Sequence[str], seconds: float) -> None:
    end_s = perf_counter() + seconds
    await asyncio.gather(*(_produce_until(gateway, key, end_s) for key in keys))


async def _produce_until(gateway: Gateway, key: str, end_s: float) -> None:
    while perf_counter() < end_s:
        await gateway.human_message(key, channel="telegram")


async def _load_rows(gateway: Gateway, keys: Sequence[str], rows: int) -> None:
    """As many further events, in large commits."""
    for _ in range(rows // 2_048 + 1):
        await asyncio.gather(*(gateway.human_message(keys[number % PRODUCERS], channel="telegram") for number in range(2_048)))
