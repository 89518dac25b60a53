"""Two processes on one database: how late a notice comes from the other one, and what a turn pays for being safe beside it."""

from __future__ import annotations

import asyncio
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from statistics import median
from time import perf_counter

from kizuki.actors import Gateway, GatewayConfig, open_gateway

from .children import run_child
from .databases import folder
from .rows import Row, paired, percentile
from .scale import Scale

SUITE = "neighbours"
WHAT = "a notice recorded by another process on the same database, and a turn's claim in the store"

WATCHER, TARGET = "agent:main:main", "agent:main:subagent:child"
DELIVERED_MS = 250.0
PRODUCERS = 64


def measure(scale: Scale, progress: Callable[[str], None]) -> list[Row]:
    """Run the suite."""
    with folder() as place:
        return asyncio.run(_measure(place.as_posix(), scale, progress))


async def _measure(place: str, scale: Scale, progress: Callable[[str], None]) -> list[Row]:
    repetitions = scale.pick(2, 30, 100, 300)
    progress(f"{repetitions} events recorded by another process")
    rows = await measure_latency(f"{place}/two.db", repetitions)
    progress(f"{repetitions} turns with a claim")
    rows += await measure_turns(f"{place}/one.db", repetitions)
    rounds, seconds = scale.pick((1, 0.2), (2, 1.0), (4, 2.0), (6, 3.0))
    progress(f"{rounds} rounds of {seconds:g} seconds in which two processes write, or one")
    return [*rows, await measure_throughput(place, rounds, seconds)]


async def measure_throughput(place: str, rounds: int, seconds: float) -> Row:
    """Two processes with half the producers each, against one with all of them, on files of their own."""
    two, one = [], []
    for number in range(rounds):
        pair = [run_child("recording", f"{place}/both-{number}.db", PRODUCERS // 2, each, seconds) for each in range(2)]
        two.append(sum([child["rate"] for child in await asyncio.gather(*pair)]))
        one.append((await run_child("recording", f"{place}/alone-{number}.db", PRODUCERS, 0, seconds))["rate"])
    return paired(SUITE, f"two processes with {PRODUCERS // 2} producers each, against one with {PRODUCERS}", "events/s", two, one)


async def measure_latency(database: str, repetitions: int, *, of: str = "SQLite") -> list[Row]:
    """From the commit in another process to the wake in this one, on an empty database of whichever kind."""
    woken = asyncio.Event()
    at_once = GatewayConfig(wake_coalesce_s=0)
    async with open_gateway(database, config=at_once, wake=lambda *_: woken.set()) as gateway, _recorder(database) as recorder:
        await gateway.open_session(WATCHER)
        await gateway.watch(WATCHER, TARGET)
        late = [await _latency_ms(gateway, recorder, woken) for _ in range(repetitions)]
    name = f"{of}: from the commit in another process to the wake"
    last = Row(SUITE, f"{name}, 99th percentile", percentile(late, 0.99), "ms", target=f"<= {DELIVERED_MS:g} ms")
    return [Row(SUITE, f"{name}, median", median(late), "ms"), replace(last, ok=last.value <= DELIVERED_MS)]


@asynccontextmanager
async def _recorder(database: str) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", f"{__package__}.recorder", database, TARGET, stdin=PIPE, stdout=PIPE
    )
    try:
        await _answer(process)
        yield process
    finally:
        if process.stdin is not None:
            process.stdin.close()
        await process.wait()


async def _answer(process: Process) -> bytes:
    if process.stdout is None:
        raise RuntimeError("the recorder has no pipe")
    return await process.stdout.readline()


async def _latency_ms(gateway: Gateway, recorder: Process, woken: asyncio.Event) -> float:
    woken.clear()
    if recorder.stdin is not None:
        recorder.stdin.write(b"\n")
    durable_at = int(await _answer(recorder))
    await woken.wait()
    late = (time.monotonic_ns() - durable_at) / 1e6
    async with gateway.turn(WATCHER):
        pass
    return late


async def measure_turns(database: str, repetitions: int) -> list[Row]:
    """What a turn costs, against reading the same notices and acknowledging them without a claim."""
    async with open_gateway(database) as gateway:
        await gateway.open_session(WATCHER)
        await gateway.watch(WATCHER, TARGET)
        full: list[float] = []
        unclaimed: list[float] = []
        empty: list[float] = []
        read: list[float] = []
        for _ in range(repetitions):
            await gateway.human_message(TARGET, channel="telegram")
            full.append(await _turn_us(gateway))
            await gateway.human_message(TARGET, channel="telegram")
            unclaimed.append(await _unclaimed_us(gateway))
            empty.append(await _turn_us(gateway))
            read.append(await _unclaimed_us(gateway))
    return [
        paired(SUITE, "a turn with a notice, against reading and acknowledging it", "µs", full, unclaimed),
        paired(SUITE, "a turn without notices, against reading that there are none", "µs", empty, read),
    ]


async def _turn_us(gateway: Gateway) -> float:
    began = perf_counter()
    async with gateway.turn(WATCHER):
        pass
    return (perf_counter() - began) * 1e6


async def _unclaimed_us(gateway: Gateway) -> float:
    began = perf_counter()
    notices = await gateway.pending(WATCHER)
    if notices:
        await gateway.acknowledge(WATCHER, notices)
    return (perf_counter() - began) * 1e6
