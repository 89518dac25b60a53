"""The gateway on PostgreSQL: durable events against plain inserts of the same rows, and a notice from another process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from statistics import median
from time import perf_counter
from typing import Any

from kizuki.actors import Gateway, open_gateway

from .commits import EVENTS_EACH, PRODUCERS, WATCHER, produce
from .databases import NOW_MS, SESSION_ID
from .neighbours import measure_latency
from .rows import Row, paired
from .scale import Scale
from .servers import missing, server_address

SUITE = "postgres"
WHAT = "the same on PostgreSQL, against asyncpg by hand (where asyncpg and a server are there)"

_TEXT_KEYS = """
CREATE TABLE text_events (
    sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, session_key text NOT NULL, agent_id text NOT NULL, kind text NOT NULL,
    notifies boolean NOT NULL, actor_type text NOT NULL, actor_id text, run_id text, session_id text NOT NULL,
    occurred_at bigint NOT NULL, recorded_at bigint NOT NULL, dedupe_key text, summary text NOT NULL, payload_json text);
CREATE INDEX text_events_session ON text_events (session_key, agent_id, sequence);
CREATE UNIQUE INDEX text_events_dedupe ON text_events (session_key, agent_id, kind, dedupe_key) WHERE dedupe_key IS NOT NULL;
"""
_INSERT = (
    "INSERT INTO text_events (session_key, agent_id, kind, notifies, actor_type, actor_id, run_id, session_id, occurred_at, recorded_at, "
    "dedupe_key, summary, payload_json) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
)
_REST = ("main", "human_direct_message", True, "human", None, None, SESSION_ID, NOW_MS, NOW_MS, None, "human message via telegram", None)


def measure(scale: Scale, progress: Callable[[str], None]) -> list[Row]:
    """Run the suite; nothing where there is no server to run it on."""
    lacking = missing()
    if lacking is not None:
        progress(f"left out: {lacking}")
        return []
    with server_address() as address:
        return asyncio.run(_measure(address, repetitions=scale.pick(1, 4, 20, 40)))


async def _measure(address: str, repetitions: int) -> list[Row]:
    import asyncpg

    raw = await asyncpg.connect(address)
    try:
        rows = await _throughput(raw, address, repetitions)
        async with _schema(raw, address) as url:
            return rows + [replace(row, suite=SUITE) for row in await measure_latency(url, repetitions * 10, of="PostgreSQL")]
    finally:
        await raw.close()


@asynccontextmanager
async def _schema(raw: Any, address: str) -> AsyncIterator[str]:
    name = f"kizuki_bench_{os.getpid()}"
    await raw.execute(f"CREATE SCHEMA {name}")
    try:
        yield f"{address}{'&' if '?' in address else '?'}search_path={name}"
    finally:
        await raw.execute(f"DROP SCHEMA {name} CASCADE")


async def _throughput(raw: Any, address: str, repetitions: int) -> list[Row]:
    keys = [f"agent:main:subagent:child-{number}" for number in range(PRODUCERS)]
    async with _schema(raw, address) as url, open_gateway(url) as gateway:
        await raw.execute(f"SET search_path = {url.rpartition('=')[2]}")
        await raw.execute(_TEXT_KEYS)
        for key in keys:
            await gateway.watch(WATCHER, key)
        await produce(gateway, keys, 4)
        return await _in_turns(gateway, raw, keys, repetitions)


async def _in_turns(gateway: Gateway, raw: Any, keys: Sequence[str], repetitions: int) -> list[Row]:
    events = PRODUCERS * EVENTS_EACH
    ours, batches, single, alone = [], [], [], []
    for _ in range(repetitions):
        ours.append(events / await produce(gateway, keys))
        batches.append(events / await _batches(raw, keys, EVENTS_EACH))
        alone.append(await _latency_us(gateway, keys[0]))
        single.append(median([await _batches(raw, keys[:1], 1) * 1e6 for _ in range(10)]))
    return [
        paired(SUITE, "64 producers, against 64 plain inserts a transaction", "events/s", ours, batches),
        paired(SUITE, "one producer, median latency, against a transaction of one plain insert", "µs", alone, single),
    ]


async def _batches(raw: Any, keys: Sequence[str], batches: int) -> float:
    """Seconds for batches of one event for each session, each a transaction of its own."""
    rows = [(key, *_REST) for key in keys]
    began = perf_counter()
    for _ in range(batches):
        async with raw.transaction():
            await raw.executemany(_INSERT, rows)
    return perf_counter() - began


async def _latency_us(gateway: Gateway, key: str) -> float:
    latencies = []
    for _ in range(10):
        began = perf_counter()
        await gateway.human_message(key, channel="telegram")
        latencies.append((perf_counter() - began) * 1e6)
    return median(latencies)
