"""The actors' own weight: memory of one that rests, time of one mail, of a start and a stop; beside tasks, queues and Pykka's threads."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Callable, Coroutine, Sequence
from time import perf_counter
from typing import Any

import pykka

from kizuki.actors.clock import SystemClock
from kizuki.actors.directory import ActorDirectory
from kizuki.actors.runs import ActiveRuns
from kizuki.actors.runtime import AsyncioActor, AsyncioActorRef, Runtime
from kizuki.actors.session import SessionActor
from kizuki.storage.records import Address

from .rows import Row, paired
from .scale import Scale

SUITE = "runtime"
WHAT = "a resting actor, a mail, a start and a stop, against call_soon, a task with a queue, and stock Pykka threads"

BURSTS = 200
THREAD_BURSTS = 20
ROUND_TRIPS = 1_000
CHURN = 500
ACTORS = 100
MOST_IDLE_BYTES = 1_024.0
MOST_HOP = 3.0
MOST_CHURN = 1.5


class Counting(AsyncioActor):
    """Handles mail as cheaply as can be."""

    def __init__(self) -> None:
        super().__init__()
        self.handled = 0

    def on_receive(self, message: object) -> None:  # noqa: ARG002, the shape of a handler
        self.handled += 1


class ThreadCounting(pykka.ThreadingActor):
    """The same on a thread of its own, as Pykka has it."""

    def __init__(self) -> None:
        super().__init__()
        self.handled = 0

    def on_receive(self, message: object) -> None:  # noqa: ARG002, the shape of a handler
        self.handled += 1


def measure(scale: Scale, progress: Callable[[str], None]) -> list[Row]:
    """Run the suite."""
    actors = scale.pick(200, 5_000, 50_000, 50_000)
    crowds = scale.pick((10, 50), (1_000, 10_000), (1_000, 10_000, 100_000), (1_000, 10_000, 100_000))
    rounds = scale.pick(1, 5, 20, 20)
    rows: list[Row] = []
    steps: tuple[tuple[str, Callable[[], Coroutine[Any, Any, list[Row]]]], ...] = (
        (f"memory of {actors:,} that rest", lambda: _memory(actors)),
        (f"{rounds} rounds of mail", lambda: _hops(rounds)),
        (f"{rounds} rounds of questions and answers", lambda: _round_trips(rounds)),
        (f"starts and stops among up to {crowds[-1]:,} others", lambda: _churns(crowds, rounds)),
    )
    for what, step in steps:
        progress(what)
        rows += asyncio.run(step())
    return rows


async def _memory(actors: int) -> list[Row]:
    addresses = [Address(f"agent:main:subagent:child-{number}", "main") for number in range(actors)]
    runtime, directory = Runtime(), ActorDirectory()
    clock, runs = SystemClock(), ActiveRuns()

    def start(address: Address) -> object:
        return directory.get_or_start(address, lambda: runtime.start(SessionActor, address, _no_log, clock, runs, record_unwatched=False))

    tasks_before = len(asyncio.all_tasks())
    ours = _bytes_each(lambda: [start(address) for address in addresses], actors)
    tasks_more = len(asyncio.all_tasks()) - tasks_before
    await runtime.stop_all()
    tasks: list[asyncio.Task[Any]] = []
    theirs = _bytes_each(lambda: tasks.extend(asyncio.create_task(asyncio.Queue[object]().get()) for _ in addresses), actors)
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    resting = Row(SUITE, "a resting session actor, against a task with a queue", ours, "bytes", theirs, ours / theirs)
    return [resting.at_most(MOST_IDLE_BYTES), Row(SUITE, f"tasks of {actors:,} resting actors", float(tasks_more), "tasks").at_most(0)]


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


async def _hops(rounds: int) -> list[Row]:
    """In bursts of one for each of a hundred receivers; a burst is over when all have handled theirs."""
    runtime = Runtime()
    actors = [runtime.start(Counting) for _ in range(ACTORS)]
    threads = [ThreadCounting.start() for _ in range(ACTORS)]
    queues = [asyncio.Queue[int]() for _ in range(ACTORS)]
    readers = [asyncio.create_task(_read(queue)) for queue in queues]
    ours, bare, queued, threaded = [], [], [], []
    try:
        for _ in range(rounds):
            ours.append(await _actor_hop_us(runtime, actors))
            bare.append(await _bare_hop_us())
            queued.append(await _queue_hop_us(queues))
            threaded.append(_thread_hop_us(threads))
    finally:
        for reader in readers:
            reader.cancel()
        await asyncio.wait(readers)
        for thread in threads:
            thread.stop()
        await runtime.stop_all()
    return [
        paired(SUITE, "a mail to an actor, against a bare call_soon", "µs", ours, bare).ratio_at_most(MOST_HOP),
        paired(SUITE, "a mail to an actor, against a queue with a task that reads it", "µs", ours, queued),
        paired(SUITE, "a mail to an actor, against a stock Pykka thread", "µs", ours, threaded),
    ]


async def _actor_hop_us(runtime: Runtime, actors: Sequence[AsyncioActorRef[Counting]]) -> float:
    began = perf_counter()
    for number in range(BURSTS):
        for actor in actors:
            actor.tell(number)
        await runtime.idle()
    return (perf_counter() - began) / (BURSTS * ACTORS) * 1e6


async def _bare_hop_us() -> float:
    loop = asyncio.get_running_loop()
    began = perf_counter()
    for number in range(BURSTS):
        for _ in range(ACTORS):
            loop.call_soon(_nothing, number)
        await asyncio.sleep(0)
    return (perf_counter() - began) / (BURSTS * ACTORS) * 1e6


async def _read(queue: asyncio.Queue[int]) -> None:
    while True:
        await queue.get()
        queue.task_done()


async def _queue_hop_us(queues: Sequence[asyncio.Queue[int]]) -> float:
    began = perf_counter()
    for number in range(BURSTS):
        for queue in queues:
            queue.put_nowait(number)
        await queues[-1].join()  # it was the last to be given one, and its reader is the last to run
    return (perf_counter() - began) / (BURSTS * ACTORS) * 1e6


def _thread_hop_us(threads: Sequence[pykka.ActorRef[ThreadCounting]]) -> float:
    """The answer to the last mail to each says that it was handled."""
    began = perf_counter()
    for number in range(THREAD_BURSTS):
        for future in [thread.ask(number, block=False) for thread in threads]:
            future.get()
    return (perf_counter() - began) / (THREAD_BURSTS * ACTORS) * 1e6


async def _round_trips(rounds: int) -> list[Row]:
    """A question and its answer, one at a time: what a call of the gateway is made of."""
    runtime = Runtime()
    actor, thread = runtime.start(Counting), ThreadCounting.start()
    ours, threaded = [], []
    for _ in range(rounds):
        began = perf_counter()
        for number in range(ROUND_TRIPS):
            await actor.ask(number)
        ours.append((perf_counter() - began) / ROUND_TRIPS * 1e6)
        began = perf_counter()
        for number in range(ROUND_TRIPS):
            thread.ask(number)
        threaded.append((perf_counter() - began) / ROUND_TRIPS * 1e6)
    thread.stop()
    await runtime.stop_all()
    return [paired(SUITE, "a question and its answer, against a stock Pykka thread", "µs", ours, threaded)]


async def _churns(crowds: Sequence[int], rounds: int) -> list[Row]:
    """Interleaved: each round starts and stops actors in every crowd, and threads in none."""
    runtimes = {crowd: Runtime() for crowd in crowds}
    for crowd, runtime in runtimes.items():
        for _ in range(crowd):
            runtime.start(Counting)
    each: dict[int, list[float]] = {crowd: [] for crowd in crowds}
    threads = []
    for _ in range(rounds):
        for crowd, runtime in runtimes.items():
            each[crowd].append(await _churn_us(runtime))
        threads.append(_thread_churn_us())
    for runtime in runtimes.values():
        await runtime.stop_all()
    rows = []
    for crowd in crowds:
        row = paired(SUITE, f"a start and a stop among {crowd:,} others, against a stock Pykka thread", "µs", each[crowd], threads)
        rows.append(row.at("Starting and stopping an actor", crowd, "other actors", beside="a stock Pykka thread, among none"))
    for crowd in crowds[1:]:
        flat = paired(SUITE, f"a start and a stop among {crowd:,}, against among {crowds[0]:,}", "µs", each[crowd], each[crowds[0]])
        rows.append(flat.ratio_at_most(MOST_CHURN))
    return rows


async def _churn_us(runtime: Runtime) -> float:
    began = perf_counter()
    for actor in [runtime.start(Counting) for _ in range(CHURN)]:
        await actor.stop()
    return (perf_counter() - began) / CHURN * 1e6


def _thread_churn_us() -> float:
    count = CHURN // 10
    began = perf_counter()
    for thread in [ThreadCounting.start() for _ in range(count)]:
        thread.stop()
    return (perf_counter() - began) / count * 1e6


def _nothing(_number: int) -> None:
    return None


def _no_log() -> Any:
    raise AssertionError("a resting session actor needs no log")
