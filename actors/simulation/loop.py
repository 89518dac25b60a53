"""Event loops on virtual time: one for each simulated process, all stepped by one `Scheduler`.

**A process is an event loop, and a crash is a loop that is stepped no more.** Each simulated process has a `ProcessLoop` of its own, on
which ordinary asyncio code runs unchanged; `asyncio.get_running_loop`, `current_task` and timers tell what they would tell in a process.
The scheduler runs exactly one callback a step, of one loop, and can be stopped between any two. Where nothing is ready it jumps to the
earliest timer; where there is none either, `Deadlock` is raised.

**Order.** Callbacks of one loop run in the order in which they were scheduled: asyncio promises that, and a run that broke the promise
would find faults that cannot happen. What a real machine leaves open is when another process runs, and that is what a seeded `random`
decides; without it the loops take turns. The other thing left open, how long the database takes, is `inline`'s.

**Abandoned, not cancelled.** A dead process runs no `finally`. So a crash drops the loop's callbacks and timers, and keeps every task,
with all that hangs on it, in a graveyard: a coroutine that is garbage-collected would be closed, and its `finally` blocks would run.
Whatever is done to a dead loop from outside does nothing. When the run is over and nobody looks any more, `bury` closes the coroutines at
last, on a loop on which nothing they do has an effect.

**Garbage** is collected at certain steps only, never where it happens to pile up, so that finalisers are part of the function from seed
to history, too.
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import heapq
import math
import random
import sys
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar, TypeVarTuple, Unpack
from weakref import WeakSet

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

US_PER_S: Final = 1_000_000
STEPS_PER_COLLECTION: Final = 250_000
CLOSINGS_MAX: Final = 100
"""How often a coroutine that awaits while it is closed is closed again."""
NEVER: Final = sys.maxsize
_ROUNDING_US: Final = 1e-3

Coro = Coroutine[Any, Any, T] | Generator[Any, None, T]


class Deadlock(RuntimeError):
    """What was waited for can never happen: no callback is ready and no timer is set."""


class OutOfSteps(RuntimeError):
    """The run took more steps than it was given."""


class Scheduler:
    """Virtual time, and which loop runs next."""

    def __init__(self, order: random.Random | None = None) -> None:
        self.now_us = 0
        """Since the run began."""
        self.steps = 0
        self._order = order
        self._runnable: list[ProcessLoop] = []
        self._timers: list[tuple[int, int, VirtualTimer]] = []
        self._numbers = 0
        self._loops: list[ProcessLoop] = []

    def loop(self, name: str) -> ProcessLoop:
        """Start a process: its loop."""
        loop = ProcessLoop(self, name)  # type: ignore[abstract] # asyncio's class answers all that is left out with NotImplementedError
        self._loops.append(loop)
        return loop

    def step(self) -> bool:
        """Run one callback, after a jump in time if need be; False if there is nothing that could ever run."""
        if not self._runnable and not self._jump():
            return False
        loop = self._pick()
        if loop.steps >= loop.alarm_at_step:
            loop.alarm_at_step = NEVER
            loop.alarm()
            return True
        handle = loop.ready.popleft()
        if not loop.ready:
            self.forget(loop)
        if not handle.cancelled():
            self.steps += 1
            loop.steps += 1
            asyncio._set_running_loop(loop)
            handle._run()
        return True

    def run_until(self, future: asyncio.Future[T], *, steps_max: int = NEVER) -> T:
        """Step until the future is done. Raises `Deadlock`, `OutOfSteps`, and what the future raises."""
        last = self.steps + steps_max
        collect_at = self.steps + STEPS_PER_COLLECTION
        with self._running():
            while not future.done():
                if not self.step():
                    raise Deadlock("nothing is ready and no timer is set")
                if self.steps >= last:
                    raise OutOfSteps(f"not done after {steps_max} steps")
                if self.steps >= collect_at:
                    gc.collect()
                    collect_at = self.steps + STEPS_PER_COLLECTION
        return future.result()

    def close(self) -> None:
        """End the run: every process that is left dies, and all are buried."""
        for loop in self._loops:
            loop.die()
        with _collection_off(), self._hooks():
            for loop in self._loops:
                loop.bury()
        self._loops.clear()
        self._timers.clear()

    def make_ready(self, loop: ProcessLoop, handle: asyncio.Handle) -> None:
        """Put the callback into its loop's line."""
        loop.ready.append(handle)
        if not loop.in_line and not loop.is_stalled:
            loop.in_line = True
            self._runnable.append(loop)

    def go_on_at(self, when_us: int, loop: ProcessLoop) -> None:
        """Let a stalled loop go on at this moment, with what has become ready meanwhile."""
        self.set_timer(when_us, VirtualTimer(when_us / US_PER_S, _nothing, (), loop, None))

    def set_timer(self, when_us: int, timer: VirtualTimer) -> None:
        """Ring the timer at this moment; those of one moment in the order in which they were set."""
        self._numbers += 1
        heapq.heappush(self._timers, (when_us, self._numbers, timer))

    def forget(self, loop: ProcessLoop) -> None:
        """Step this loop no more, until something else becomes ready on it."""
        if loop.in_line:
            loop.in_line = False
            self._runnable.remove(loop)

    def _pick(self) -> ProcessLoop:
        """The loop that runs next; without a seed they take turns."""
        runnable = self._runnable
        if len(runnable) == 1:
            return runnable[0]
        if self._order is not None:
            return runnable[int(self._order.random() * len(runnable))]
        loop = runnable.pop(0)
        runnable.append(loop)
        return loop

    def _jump(self) -> bool:
        """Go to the earliest moment at which a timer rings, and make all of that moment ready."""
        timers = self._timers
        while timers and not self._runnable:
            when_us = timers[0][0]
            while timers and timers[0][0] == when_us:
                timer = heapq.heappop(timers)[2]
                if not timer.cancelled():
                    self.now_us = max(self.now_us, when_us)
                    timer.loop.ring(timer)
        return bool(self._runnable)

    @contextmanager
    def _running(self) -> Iterator[None]:
        if asyncio._get_running_loop() is not None:
            raise RuntimeError("a simulated world cannot run inside a running event loop")
        with _collection_off(), self._hooks():
            yield

    @contextmanager
    def _hooks(self) -> Iterator[None]:
        before = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(firstiter=_generator_begun, finalizer=_generator_dropped)
        try:
            yield
        finally:
            asyncio._set_running_loop(None)
            sys.set_asyncgen_hooks(*before)


class VirtualTimer(asyncio.TimerHandle):
    """A timer that knows its loop."""

    __slots__ = ("loop",)

    def __init__(
        self, when: float, callback: Callable[..., object], args: Any, loop: ProcessLoop, context: contextvars.Context | None
    ) -> None:
        super().__init__(when, callback, args, loop, context)
        self.loop = loop


class ProcessLoop(asyncio.AbstractEventLoop):
    """The event loop of one simulated process. It is never run by itself: its `Scheduler` steps it."""

    def __init__(self, scheduler: Scheduler, name: str) -> None:
        self.name = name
        self.steps = 0
        """Callbacks that were run."""
        self.alarm_at_step = NEVER
        """After so many steps, before the next one, `alarm` is called, once."""
        self.alarm: Callable[[], None] = _nothing
        self.ready: deque[asyncio.Handle] = deque()
        self.in_line = False
        """Whether its scheduler knows that it has something to run."""
        self.problems: list[dict[str, Any]] = []
        """What asyncio's exception handler was called with."""
        self._scheduler = scheduler
        self._alive = True
        self._stalled_until_us = 0
        self._generators: WeakSet[AsyncGenerator[Any, Any]] = WeakSet()
        self._dead_tasks: list[asyncio.Task[Any]] = []
        self._graveyard: list[object] = []

    # -- life and death ------------------------------------------------------------------------------------------------------

    @property
    def is_alive(self) -> bool:
        """Whether callbacks of it are run."""
        return self._alive

    def die(self) -> None:
        """Run nothing of this process any more, not even its `finally` blocks; what it holds is kept until `bury`."""
        if not self._alive:
            return
        self._alive = False
        self._dead_tasks.extend(asyncio.all_tasks(self))
        self._graveyard.extend((tuple(self.ready), tuple(self._generators)))
        self.ready.clear()
        self._scheduler.forget(self)

    def stall(self, seconds: float) -> None:
        """Run nothing of this process for a while: what is ready waits, and timers ring late."""
        self._stalled_until_us = self._scheduler.now_us + math.ceil(seconds * US_PER_S)
        self._scheduler.forget(self)
        self._scheduler.go_on_at(self._stalled_until_us, self)

    @property
    def is_stalled(self) -> bool:
        """Whether the process stands still."""
        return self._scheduler.now_us < self._stalled_until_us

    def bury(self) -> None:
        """Close what the dead process left, which nobody will look at again. What its `finally` blocks do has no effect here."""
        asyncio._set_running_loop(self)
        while self._dead_tasks:
            _close(self._dead_tasks.pop().get_coro())
        self._graveyard.clear()
        asyncio._set_running_loop(None)

    def ring(self, timer: VirtualTimer) -> None:
        """Have a timer's callback run, unless the process is dead."""
        if self._alive:
            self._scheduler.make_ready(self, timer)
        else:
            self._graveyard.append(timer)

    def note_generator(self, generator: AsyncGenerator[Any, Any]) -> None:
        """An asynchronous generator has begun here; at a crash it must be kept."""
        if self._alive:
            self._generators.add(generator)
        else:
            self._graveyard.append(generator)

    def drop_generator(self, generator: AsyncGenerator[Any, Any]) -> None:
        """Nobody holds the generator any more: as on any loop it is closed in a task of its own."""
        if self._alive:
            self.call_soon(self.create_task, generator.aclose())

    # -- asyncio -------------------------------------------------------------------------------------------------------------

    def time(self) -> float:
        return self._scheduler.now_us / US_PER_S

    def call_soon(self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: contextvars.Context | None = None) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        if self._alive:
            self._scheduler.make_ready(self, handle)
        else:
            self._graveyard.append(handle)
        return handle

    def call_later(
        self, delay: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        # A delay above 0 takes at least one tick, else a loop of the form `while time() < due: sleep(due - time())` turned for ever.
        delay_us = max(1, math.ceil(delay * US_PER_S - _ROUNDING_US)) if delay > 0 else 0
        return self._call_at_us(self._scheduler.now_us + delay_us, callback, args, context)

    def call_at(
        self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        return self._call_at_us(max(self._scheduler.now_us, math.ceil(when * US_PER_S - _ROUNDING_US)), callback, args, context)

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Coro[T], *, name: object = None, context: contextvars.Context | None = None) -> asyncio.Task[T]:
        task = asyncio.Task(coro, loop=self, name=None if name is None else str(name), context=context)
        if not self._alive:
            self._dead_tasks.append(task)
        return task

    def is_running(self) -> bool:
        return self._alive

    def is_closed(self) -> bool:
        return False

    def get_debug(self) -> bool:
        return False

    def get_task_factory(self) -> None:
        return None

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep it for who asks. A dead process complains of nothing: that its tasks are destroyed while they are pending is how it died."""
        if self._alive:
            self.problems.append(context)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is passed over when its time comes."""

    def _call_at_us(self, when_us: int, callback: Callable[..., object], args: Any, context: contextvars.Context | None) -> VirtualTimer:
        timer = VirtualTimer(when_us / US_PER_S, callback, args, self, context)
        if self._alive:
            self._scheduler.set_timer(when_us, timer)
        else:
            self._graveyard.append(timer)
        return timer


def _nothing() -> None:
    """What is rung for its moment alone."""


def _close(coroutine: Any) -> None:
    """Close a coroutine that may await, or raise, while it is being closed."""
    for _ in range(CLOSINGS_MAX):
        try:
            coroutine.close()
        except RuntimeError as error:
            if "ignored GeneratorExit" not in str(error):
                return
        except BaseException:  # noqa: BLE001 - whatever it is, nobody is left to whom it could matter
            return
        else:
            return


def running_loop() -> ProcessLoop | None:
    """The loop of the process whose code is running."""
    loop = asyncio._get_running_loop()
    return loop if isinstance(loop, ProcessLoop) else None


def _generator_begun(generator: AsyncGenerator[Any, Any]) -> None:
    loop = running_loop()
    if loop is not None:
        loop.note_generator(generator)


def _generator_dropped(generator: AsyncGenerator[Any, Any]) -> None:
    loop = running_loop()
    if loop is not None:
        loop.drop_generator(generator)


@contextmanager
def _collection_off() -> Iterator[None]:
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def bridge(task: asyncio.Task[T], onto: asyncio.AbstractEventLoop) -> asyncio.Future[T]:
    """A future on another process's loop that is done when the task is; cancelling it cancels the task. Who crashes never answers."""
    future: asyncio.Future[T] = onto.create_future()
    task.add_done_callback(lambda done: _copy(done, future))
    future.add_done_callback(lambda done: task.cancel() if done.cancelled() else None)
    return future


def _copy(task: asyncio.Task[T], future: asyncio.Future[T]) -> None:
    if future.done():
        if not task.cancelled():
            task.exception()
    elif task.cancelled():
        future.cancel()
    elif (error := task.exception()) is not None:
        future.set_exception(error)
    else:
        future.set_result(task.result())
