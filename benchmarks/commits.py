"""Durable events: many producers at once, and one alone, each against `sqlite3` by hand in turns."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from time import perf_counter

from kizuki.actors import Gateway, open_gateway

from .databases import RawDatabase, folder, raw_database
from .rows import Row, paired

SUITE = "commits"
WHAT = "durable events a second with 64 producers, and the latency of one, against raw sqlite3"

WATCHER = "agent:main:main"
PRODUCERS = 64
EVENTS_EACH = 25
LEAST_THROUGHPUT = 0.5
MOST_LATENCY = 4.0


def measure(*, quick: bool) -> list[Row]:
    """Run the suite."""
    with folder() as place, raw_database(place / "raw.db") as raw:
        return asyncio.run(_measure(str(place / "gateway.db"), raw, repetitions=6 if quick else 30))


async def _measure(path: str, raw: RawDatabase, repetitions: int) -> list[Row]:
    async with open_gateway(path) as gateway:
        keys = [f"agent:main:subagent:child-{number}" for number in range(PRODUCERS)]
        for key in keys:
            await gateway.watch(WATCHER, key)
        await produce(gateway, keys)
        return [*await _throughput(gateway, raw, keys, repetitions), await _latency(gateway, raw, keys[0], repetitions)]


async def _throughput(gateway: Gateway, raw: RawDatabase, keys: Sequence[str], repetitions: int) -> list[Row]:
    events = PRODUCERS * EVENTS_EACH
    ours, same, text = [], [], []
    for _ in range(repetitions):
        ours.append(events / await produce(gateway, keys))
        same.append(events / raw.same_table(keys, EVENTS_EACH))
        text.append(events / raw.text_table(keys, EVENTS_EACH))
    row = paired(SUITE, "64 producers, against a table with session keys and their index", "events/s", ours, text)
    met = row.ratio is not None and row.ratio >= LEAST_THROUGHPUT
    return [
        replace(row, target=f"ratio >= {LEAST_THROUGHPUT}", ok=met),
        paired(SUITE, "64 producers, against the bare inner table", "events/s", ours, same),
    ]


async def produce(gateway: Gateway, keys: Sequence[str]) -> float:
    """Seconds until every producer has recorded its events, each waiting for its own to be durable before the next."""
    began = perf_counter()
    await asyncio.gather(*(_producer(gateway, key) for key in keys))
    return perf_counter() - began


async def _producer(gateway: Gateway, key: str) -> None:
    for _ in range(EVENTS_EACH):
        await gateway.human_message(key, channel="telegram")


async def _latency(gateway: Gateway, raw: RawDatabase, key: str, repetitions: int) -> Row:
    ours, single = [], []
    for _ in range(repetitions):
        latencies = []
        for _ in range(10):
            began = perf_counter()
            await gateway.human_message(key, channel="telegram")
            latencies.append((perf_counter() - began) * 1e6)
        ours.append(median(latencies))
        single.append(median(raw.same_table([key], 1) * 1e6 for _ in range(10)))
    row = paired(SUITE, "one producer, median latency, against a commit of one row", "µs", ours, single)
    return replace(row, target=f"ratio <= {MOST_LATENCY:g}", ok=row.ratio is not None and row.ratio <= MOST_LATENCY)
