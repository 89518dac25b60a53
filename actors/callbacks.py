"""Calls into the host: `wake`, `dispatch` and whatever else it gave us, sync or async.

The host's code may hang, raise, or sleep on the very clock that a test advances, so every running call is known here by its task.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from .clock import Clock, ManualClock

T = TypeVar("T")

HUNG_AFTER_S: Final = 0.2
"""Real seconds after which a call that has not answered no longer counts as something to wait for."""


class HostCallCancelledError(Exception):
    """The host's own code raised `CancelledError` though nobody cancelled the call: a failure of that code like any other."""


async def within(clock: Clock, seconds: float, task: asyncio.Task[T]) -> T:
    """The task's result, if it comes in time on this clock; else the task is cancelled and `TimeoutError` raised."""
    alarm = asyncio.create_task(_alarm(clock, seconds))
    try:
        await asyncio.wait({task, alarm}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise TimeoutError
    finally:
        alarm.cancel()
        task.cancel()


async def _alarm(clock: Clock, seconds: float) -> None:
    await clock.sleep(seconds)


def raise_own_cancellation() -> None:
    """Tell the caller's own cancellation from that of its call into the host, which is cancelled when the gateway is left."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


class Callbacks:
    """The host's calls that are running."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._running: dict[asyncio.Task[Any], None] = {}
        """In the order of their calls, so that they are cancelled in that of a run before, too."""
        self._hung: set[asyncio.Task[Any]] = set()

    def start(self, function: Callable[..., T | Awaitable[T]], *args: object) -> asyncio.Task[T]:
        """Call the host in a task of its own; the task's result or exception is the call's."""
        task = asyncio.create_task(_call(function, args), name="kizuki host call")
        self._running[task] = None
        task.add_done_callback(self._done)
        return task

    async def settle(self) -> None:
        """Wait until every running call has answered, sleeps on the clock, or has proved to hang."""
        while waiting := {task for task in self._running.keys() - self._hung if not self._asleep(task)}:
            done, _ = await asyncio.wait(waiting, timeout=HUNG_AFTER_S, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                self._hung.update(task for task in waiting if not self._asleep(task))

    async def cancel(self) -> None:
        """Cancel every running call and see it end; one that swallows its cancellation is not waited for."""
        running = tuple(self._running)
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=HUNG_AFTER_S)

    def _asleep(self, task: asyncio.Task[Any]) -> bool:
        return isinstance(self._clock, ManualClock) and task in self._clock.sleeping_tasks()

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._running.pop(task, None)
        self._hung.discard(task)
        if not task.cancelled():
            task.exception()


async def _call(function: Callable[..., T | Awaitable[T]], args: tuple[object, ...]) -> T:
    try:
        answer = function(*args)
        return await answer if inspect.isawaitable(answer) else answer
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        # Let through, it would look to whoever waits for the call as if they had been cancelled themselves.
        raise HostCallCancelledError("the host's code was cancelled") from error
