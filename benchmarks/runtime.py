"""The actors' own weight: memory of one that rests, time of one mail."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Callable
from time import perf_counter
from typing import Any

from kizuki.actors.clock import SystemClock
from kizuki.actors.directory import ActorDirectory
from kizuki.actors.runs import ActiveRuns
from kizuki.actors.runtime import AsyncioActor, Runtime
from kizuki.actors.session import SessionActor
from kizuki.storage.records import Address

from .rows import Row, paired

SUITE = "runtime"
WHAT = "bytes of a resting session actor against a task with a queue, and a mail against a bare call_soon"

HOPS = 20_000


class Counting(AsyncioActor):
    """Handles mail as cheaply as can be."""

    def __init__(self) -> None:
        super().__init__()
        self.handled = 0

    def on_receive(self, message: object) -> None:  # noqa: ARG002, the shape of a handler
        self.handled += 1


def measure(*, quick: bool) -> list[Row]:
    """Run the suite."""
    return asyncio.run(_measure(actors=5_000 if quick else 50_000, repetitions=5 if quick else 20))


async def _measure(actors: int, repetitions: int) -> list[Row]:
    return [await _memory(actors), await _hop(repetitions)]


async def _memory(actors: int) -> Row:
    addresses = [Address(f"agent:main:subagent:child-{number}", "main") for number in range(actors)]
    runtime, directory = Runtime(), ActorDirectory()
    clock, runs = SystemClock(), ActiveRuns()

    def start(address: Address) -> object:
        return directory.get_or_start(address, lambda: runtime.start(SessionActor, address, _no_log, clock, runs, record_unwatched=False))

    ours = _bytes_each(lambda: [start(address) for address in addresses], actors)
    await runtime.stop_all()
    tasks: list[asyncio.Task[Any]] = []
    theirs = _bytes_each(lambda: tasks.extend(asyncio.create_task(asyncio.Queue[object]().get()) for _ in addresses), actors)
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    return Row(SUITE, "a resting session actor, against a task with a queue", ours, "bytes", theirs, ours / theirs)


def _bytes_each(make: Callable[[], object], count: int) -> float:
    gc.collect()
    tracemalloc.start()
    try:
        kept = make()
        gc.collect()
        return tracemalloc.get_traced_memory()[0] / count
    finally:
        tracemalloc.stop()
        del kept


async def _hop(repetitions: int) -> Row:
    runtime = Runtime()
    actors = [runtime.start(Counting) for _ in range(100)]
    loop = asyncio.get_running_loop()
    hops: list[float] = []
    bare: list[float] = []
    for _ in range(repetitions):
        began_s = perf_counter()
        for number in range(HOPS):
            actors[number % 100].tell(number)
        await runtime.idle()
        hops.append((perf_counter() - began_s) / HOPS * 1e6)
        began_s = perf_counter()
        for number in range(HOPS):
            loop.call_soon(_nothing, number)
        await asyncio.sleep(0)
        bare.append((perf_counter() - began_s) / HOPS * 1e6)
    await runtime.stop_all()
    return paired(SUITE, "a mail to an actor, against a bare call_soon", "µs", hops, bare)


def _nothing(_number: int) -> None:
    return None


def _no_log() -> Any:
    raise AssertionError("a resting session actor needs no log")
