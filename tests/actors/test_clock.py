"""The clocks."""

from __future__ import annotations

import asyncio
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kizuki.actors.clock import Clock, ManualClock, SystemClock
from kizuki.actors.errors import InvalidArgument


async def noting(clock: Clock, seconds: float, name: str, notes: list[str]) -> None:
    await clock.sleep(seconds)
    notes.append(name)


async def test_time_stands_still_until_advanced() -> None:
    """A manual clock moves by exactly what it is advanced, both its wall time and its monotonic one."""
    clock = ManualClock(1_000)
    assert (clock.now_ms(), clock.monotonic()) == (1_000, 0.0)
    await clock.advance(0.0015)
    assert (clock.now_ms(), clock.monotonic()) == (1_001, 0.0015)
    await clock.advance(0.0005)
    assert (clock.now_ms(), clock.monotonic()) == (1_002, 0.002)


@given(st.lists(st.integers(0, 10**9), max_size=50))
def test_steps_add_up_exactly(steps_ms: list[int]) -> None:
    """Many small steps reach the same moment as one large one."""

    async def advance_all() -> int:
        clock = ManualClock(5)
        for step in steps_ms:
            await clock.advance(step / 1000)
        return clock.now_ms()

    assert asyncio.run(advance_all()) == 5 + sum(steps_ms)


async def test_sleepers_fire_oldest_deadline_first() -> None:
    """One jump wakes all that are due, in the order of their deadlines, and those of one deadline in the order they went to sleep."""
    clock, notes = ManualClock(0), list[str]()
    async with asyncio.TaskGroup() as group:
        for seconds, name in ((3, "c"), (1, "a"), (2, "b1"), (2, "b2"), (4.000001, "d")):
            group.create_task(noting(clock, seconds, name, notes))
        await clock.advance(4)
        assert notes == ["a", "b1", "b2", "c"]
        await clock.advance(0.000001)
    assert notes == ["a", "b1", "b2", "c", "d"]


async def test_everything_settles_between_two_sleepers() -> None:
    """What a woken task sets off has happened before the next one wakes, and all of them see the end of the jump."""
    clock, notes = ManualClock(0), list[str]()

    async def chain(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        for turn in range(3):
            notes.append(f"{name}{turn}@{clock.monotonic():g}")
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        group.create_task(chain("b", 2))
        group.create_task(chain("a", 1))
        await clock.advance(5)
    assert notes == ["a0@5", "a1@5", "a2@5", "b0@5", "b1@5", "b2@5"]


async def test_a_periodic_task_fires_once_a_jump() -> None:
    """A task that sleeps again after waking waits for a later advance, however many periods the jump covers."""
    clock, ticks = ManualClock(0), list[float]()

    async def periodic() -> None:
        while True:
            await clock.sleep(1)
            ticks.append(clock.monotonic())

    task = asyncio.create_task(periodic())
    await clock.advance(10)
    assert ticks == [10.0]
    await clock.advance(0.5)
    assert ticks == [10.0]
    await clock.advance(0.5)
    assert ticks == [10.0, 11.0]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_sleeper_cancelled_meanwhile_does_not_fire() -> None:
    """A sleeper that an earlier one cancels in the same jump is cancelled, not woken."""
    clock, notes = ManualClock(0), list[str]()
    later = asyncio.create_task(noting(clock, 2, "later", notes))

    async def cancelling() -> None:
        await clock.sleep(1)
        later.cancel()

    earlier = asyncio.create_task(cancelling())
    await clock.advance(5)
    await earlier
    assert later.cancelled()
    assert notes == []
    assert not clock.sleeping_tasks()


async def test_sleeping_tasks_are_known_by_task() -> None:
    """The clock tells which tasks sleep on it, for as long as they do."""
    clock = ManualClock(0)
    task = asyncio.create_task(clock.sleep(1))
    await clock.settle()
    assert clock.sleeping_tasks() == {task}
    await clock.advance(1)
    assert clock.sleeping_tasks() == frozenset()
    await task


async def test_sleeping_for_no_time_yields_once() -> None:
    """`sleep(0)` gives the loop one turn and needs no advance."""
    clock, notes = ManualClock(0), list[str]()
    asyncio.get_running_loop().call_soon(notes.append, "the loop's turn")
    await clock.sleep(0)
    assert notes == ["the loop's turn"]
    assert clock.monotonic() == 0.0


async def test_a_wait_below_the_resolution_ends() -> None:
    """Waiting in a loop until a deadline that rounding left a hair away comes to an end."""
    clock = ManualClock(0)
    await clock.advance(0.3)
    due = 0.1 + 0.2
    assert clock.monotonic() < due
    while clock.monotonic() < due:
        await clock.sleep(due - clock.monotonic())
    assert clock.monotonic() == pytest.approx(due, abs=2e-6)


@pytest.mark.parametrize("seconds", [-0.1, math.nan, math.inf, -math.inf])
async def test_impossible_waits_are_refused(seconds: float) -> None:
    """Negative and non-finite seconds are errors, on both clocks."""
    clock = ManualClock(0)
    for wait in (clock.sleep, clock.advance, SystemClock().sleep):
        with pytest.raises(InvalidArgument, match="seconds is "):
            await wait(seconds)


async def test_wall_time_can_go_back_alone() -> None:
    """Setting the wall clock moves neither the monotonic time nor a sleeper."""
    clock, notes = ManualClock(1_000_000), list[str]()
    task = asyncio.create_task(noting(clock, 2, "woken", notes))
    await clock.advance(1)
    clock.set_wall_clock(5_000)
    assert (clock.now_ms(), clock.monotonic()) == (5_000, 1.0)
    await clock.advance(1)
    await task
    assert clock.now_ms() == 6_000


class Working:
    """A participant that needs some turns of the loop to come to rest, like one that waits for a database thread."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.work = 0
        self.seen: list[tuple[str, float]] = []

    async def at_rest(self) -> None:
        while self.work:
            self.work -= 1
            await asyncio.sleep(0)
            if not self.work:
                self.seen.append(("rested", self.clock.monotonic()))


async def test_a_jump_waits_for_rest_before_and_after() -> None:
    """The clock does not move while a participant works, and `advance` returns only when the work that it set off is done."""
    clock = ManualClock(0)
    participant = Working(clock)
    clock.register(participant)
    participant.work = 50

    async def woken() -> None:
        await clock.sleep(1)
        participant.seen.append(("woken", clock.monotonic()))
        participant.work = 50

    task = asyncio.create_task(woken())
    await clock.advance(2)
    assert participant.seen == [("rested", 0.0), ("woken", 2.0), ("rested", 2.0)]
    assert participant.work == 0
    await task


async def test_an_unregistered_participant_is_not_waited_for() -> None:
    """A participant that left does not hold the clock, and leaving twice is allowed."""
    clock = ManualClock(0)
    participant = Working(clock)
    clock.register(participant)
    clock.unregister(participant)
    clock.unregister(participant)
    participant.work = 5
    await clock.advance(1)
    assert participant.work == 5


async def test_sleepers_that_begin_while_settling_are_seen() -> None:
    """A sleeper that goes to sleep only while others come to rest before the jump is woken by it."""
    clock, notes = ManualClock(0), list[str]()

    async def slow_starter() -> None:
        for _ in range(10):
            await asyncio.sleep(0)
        await noting(clock, 1, "woken", notes)

    task = asyncio.create_task(slow_starter())
    await clock.advance(1)
    assert notes == ["woken"]
    await task


async def test_one_advance_at_a_time() -> None:
    """Advancing a clock from a task that the same advance has woken is an error, not a deadlock."""
    clock = ManualClock(0)

    async def nested() -> None:
        await clock.sleep(1)
        await clock.advance(1)

    task = asyncio.create_task(nested())
    await clock.advance(1)
    with pytest.raises(RuntimeError, match="being advanced already"):
        await task
    await clock.advance(1)
    assert clock.monotonic() == 2.0


async def test_the_system_clock_is_the_systems() -> None:
    """The system clock tells wall time in milliseconds and a monotonic time in seconds."""
    clock = SystemClock()
    before = time.time_ns() // 1_000_000
    assert before <= clock.now_ms() <= time.time_ns() // 1_000_000
    first = clock.monotonic()
    await clock.sleep(0)
    assert clock.monotonic() >= first
