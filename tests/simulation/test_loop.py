"""The event loops on virtual time."""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest

from kizuki.actors.simulation.loop import Deadlock, OutOfSteps, ProcessLoop, Scheduler, bridge

T = TypeVar("T")


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    """Buried at the end of the test."""
    made = Scheduler()
    yield made
    made.close()


def finish(scheduler: Scheduler, loop: ProcessLoop, work: Coroutine[Any, Any, T]) -> T:
    """Run the work to its end."""
    return scheduler.run_until(loop.create_task(work))


def test_time_jumps_to_the_next_timer(scheduler: Scheduler) -> None:
    """A day of sleep takes no real time, and exactly a day of virtual time."""
    finish(scheduler, scheduler.loop("a"), asyncio.sleep(86_400))
    assert scheduler.now_us == 86_400 * 1_000_000


def test_timers_ring_in_their_order(scheduler: Scheduler) -> None:
    """Timers ring by their moments, those of one moment in the order in which they were set, whichever loop they are on."""
    rung: list[str] = []
    one, another = scheduler.loop("a"), scheduler.loop("b")
    one.call_later(2, rung.append, "late")
    another.call_later(1, rung.append, "first")
    one.call_later(1, rung.append, "second")
    one.call_later(1, rung.append, "cancelled").cancel()
    finish(scheduler, one, asyncio.sleep(3))
    assert rung == ["first", "second", "late"]


def test_one_step_runs_one_callback(scheduler: Scheduler) -> None:
    """Between any two callbacks the world can be stopped."""
    ran: list[int] = []
    loop = scheduler.loop("a")
    for number in range(3):
        loop.call_soon(ran.append, number)
    assert scheduler.step()
    assert ran == [0]
    assert scheduler.step()
    assert ran == [0, 1]


def test_waiting_for_what_never_comes_is_a_deadlock(scheduler: Scheduler) -> None:
    """Nothing ready and no timer: the run says so instead of hanging."""
    with pytest.raises(Deadlock):
        scheduler.run_until(scheduler.loop("a").create_future())


def test_a_run_that_never_ends_is_out_of_steps(scheduler: Scheduler) -> None:
    """A loop that is always ready is stopped after the steps that it was given."""

    async def turning() -> None:
        while True:  # noqa: ASYNC110 - a loop that never rests is what is tested
            await asyncio.sleep(0)

    loop = scheduler.loop("a")
    task = loop.create_task(turning())
    with pytest.raises(OutOfSteps):
        scheduler.run_until(task, steps_max=1_000)


def test_callbacks_of_one_loop_keep_their_order_whatever_the_seed() -> None:
    """The order within one loop is asyncio's promise within one loop; which process runs next is the seed's."""
    orders = set()
    for seed in range(20):
        scheduler = Scheduler(random.Random(seed))
        ran: list[str] = []
        loops = [scheduler.loop(name) for name in "ab"]
        for number in range(3):
            for loop in loops:
                loop.call_soon(ran.append, f"{loop.name}{number}")
        while scheduler.step():
            pass
        for name in "ab":
            assert [entry for entry in ran if entry[0] == name] == [f"{name}0", f"{name}1", f"{name}2"]
        orders.add(tuple(ran))
        scheduler.close()
    assert len(orders) > 5


def test_a_short_sleep_lets_time_pass(scheduler: Scheduler) -> None:
    """A wait below the clock's resolution takes one tick, so that a loop that waits for a moment gets there."""
    loop = scheduler.loop("a")

    async def until(moment: float) -> None:
        while loop.time() < moment:  # noqa: ASYNC110 - as the library's own loops do
            await asyncio.sleep(moment - loop.time())

    finish(scheduler, loop, until(0.30000000000000004))
    assert scheduler.now_us == 300_001


class Cleanup:
    """What `finally` blocks of a process have done."""

    def __init__(self) -> None:
        self.done: list[str] = []

    async def task(self) -> None:
        try:
            async with self.manager():
                await asyncio.get_running_loop().create_future()
        finally:
            self.done.append("task")
            await asyncio.sleep(0)
            self.done.append("task, after an await")

    @asynccontextmanager
    async def manager(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            self.done.append("context manager")

    async def generator(self) -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            self.done.append("generator")


def dead_process(scheduler: Scheduler, cleanup: Cleanup) -> ProcessLoop:
    """A process that died inside a task, a context manager and a generator that nobody holds."""
    loop = scheduler.loop("a")

    async def holds() -> None:
        generator = cleanup.generator()
        await anext(aiter(generator))
        await asyncio.sleep(1_000)

    loop.create_task(cleanup.task())
    loop.create_task(holds())
    finish(scheduler, loop, asyncio.sleep(1))
    loop.die()
    return loop


def test_a_dead_process_runs_no_finally(scheduler: Scheduler) -> None:
    """After a crash no `finally` of a task, a context manager or a generator runs, though nobody holds them and garbage is collected."""
    cleanup = Cleanup()
    dead_process(scheduler, cleanup)
    gc.collect()
    finish(scheduler, scheduler.loop("b"), asyncio.sleep(10_000))
    gc.collect()
    assert cleanup.done == []


def test_what_died_is_buried_in_silence(scheduler: Scheduler) -> None:
    """When the run is over, what died is closed without a warning, and what it does then wakes nobody up."""
    cleanup = Cleanup()
    loop = dead_process(scheduler, cleanup)
    steps = scheduler.steps
    scheduler.close()
    gc.collect()
    assert {"task", "context manager"} <= set(cleanup.done)
    assert "task, after an await" not in cleanup.done
    assert not scheduler.step()
    assert scheduler.steps == steps
    assert loop.problems == []


def test_a_task_made_while_a_dead_process_is_buried_never_runs(scheduler: Scheduler) -> None:
    """A `finally` that starts a task when it is buried starts nothing, and no warning tells of a coroutine that was never awaited."""
    ran: list[str] = []

    async def late() -> None:
        ran.append("late")

    async def task() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            asyncio.create_task(late())  # noqa: RUF006 - nobody is left to hold it
            asyncio.get_running_loop().call_later(1, ran.append, "timer")

    loop = scheduler.loop("a")
    loop.create_task(task())
    finish(scheduler, loop, asyncio.sleep(0))
    loop.die()
    scheduler.close()
    gc.collect()
    assert ran == []


def test_a_dropped_generator_of_a_living_process_is_closed(scheduler: Scheduler) -> None:
    """As on any loop: only the dead leave theirs open."""
    cleanup = Cleanup()

    async def drops() -> None:
        async for _ in cleanup.generator():
            break
        await asyncio.sleep(1)

    finish(scheduler, scheduler.loop("a"), drops())
    assert cleanup.done == ["generator"]


def test_a_stalled_process_is_late_and_forgets_nothing(scheduler: Scheduler) -> None:
    """A process that stands still runs what became ready meanwhile when it goes on, in its order; the others go on."""
    rung: list[tuple[str, float]] = []
    stalled, other = scheduler.loop("a"), scheduler.loop("b")

    def ring(name: str) -> None:
        rung.append((name, scheduler.now_us / 1e6))

    for loop in (stalled, other):
        loop.call_later(1, ring, loop.name)
    stalled.stall(5)
    finish(scheduler, other, asyncio.sleep(10))
    assert rung == [("b", 1.0), ("a", 5.0)]


def test_a_bridge_carries_results_errors_and_cancellations(scheduler: Scheduler) -> None:
    """One process awaits what another does: what that gives or raises, and cancelling the wait cancels the work."""
    here, there = scheduler.loop("here"), scheduler.loop("there")

    async def fails() -> None:
        raise ValueError("no")

    async def asks() -> tuple[int, bool]:
        task = there.create_task(asyncio.sleep(100))
        waiting = bridge(task, here)
        await asyncio.sleep(1)
        waiting.cancel()
        await asyncio.sleep(1)
        with pytest.raises(ValueError, match="no"):
            await bridge(there.create_task(fails()), here)
        return await bridge(there.create_task(asyncio.sleep(1, 7)), here), task.cancelled()

    assert finish(scheduler, here, asks()) == (7, True)


async def test_a_world_does_not_run_inside_another_loop() -> None:
    """A run is a program of its own: inside a running loop it would step that one's tasks."""
    scheduler = Scheduler()
    future = scheduler.loop("a").create_future()
    with pytest.raises(RuntimeError, match="inside a running event loop"):
        scheduler.run_until(future)
