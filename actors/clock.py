"""Time as the gateway sees it: the system's, or one that a test moves by hand.

A `ManualClock` must know when the gateways on it have done all they can without time passing. Each registers as a participant, and
the clock asks it before and after every step. What a participant cannot see, a task that was woken and has not run yet, gets
its turns of the loop in between.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import math
import time
from typing import Protocol

from .errors import InvalidArgument

_TICKS_PER_S = 1_000_000
_TURNS_A_ROUND = 8
_QUIET_ROUNDS = 2


class Clock(Protocol):
    """Where the gateway takes the time from."""

    def now_ms(self) -> int:
        """Wall time in milliseconds since the epoch. May jump in both directions."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed moment; never goes backwards."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return once `seconds` have passed on `monotonic`; zero gives the loop one turn.

        Raises `InvalidArgument` for a negative or non-finite number.
        """
        ...


class Participant(Protocol):
    """What takes part in a manual clock's time."""

    async def at_rest(self) -> None:
        """Return when nothing more can happen before time passes. A task that sleeps on the clock is at rest."""
        ...


class SystemClock:
    """The operating system's time."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(checked_seconds(seconds))


class ManualClock:
    """A clock that stands still until it is advanced. It belongs to one event loop.

    Time is kept in whole microseconds, so that sums of steps and of delays meet exactly.
    """

    def __init__(self, start_ms: int = 0) -> None:
        self._wall_at_zero_us = start_ms * 1000
        self._now_us = 0
        self._numbers = itertools.count()
        self._queue: list[tuple[int, int, asyncio.Future[None]]] = []
        self._sleeping: dict[asyncio.Future[None], asyncio.Task[object] | None] = {}
        self._participants: list[Participant] = []
        self._changes = 0
        self._advancing = False

    def now_ms(self) -> int:
        return (self._wall_at_zero_us + self._now_us) // 1000

    def monotonic(self) -> float:
        return self._now_us / _TICKS_PER_S

    def set_wall_clock(self, now_ms: int) -> None:
        """Make `now_ms()` say this from here on; `monotonic` and the sleepers know nothing of it."""
        self._wall_at_zero_us = now_ms * 1000 - self._now_us

    async def sleep(self, seconds: float) -> None:
        ticks = round(checked_seconds(seconds) * _TICKS_PER_S)
        if ticks:
            await self._sleep_until(self._now_us + ticks)
            return
        # A wait below the clock's resolution is the rest that rounding left of a longer one. Letting it take one tick keeps a loop
        # of the form `while monotonic() < due: sleep(due - monotonic())` from turning for ever.
        self._now_us += seconds > 0
        await asyncio.sleep(0)

    def register(self, participant: Participant) -> None:
        """From now on `advance` waits for this participant to be at rest."""
        self._participants.append(participant)

    def unregister(self, participant: Participant) -> None:
        """The participant is no longer waited for. One that is not registered is passed over."""
        if participant in self._participants:
            self._participants.remove(participant)

    def sleeping_tasks(self) -> frozenset[asyncio.Task[object]]:
        """The tasks that wait in `sleep` for time to pass."""
        return frozenset(task for task in self._sleeping.values() if task is not None)

    async def advance(self, seconds: float) -> None:
        """Wait for rest, jump by `seconds`, wake the sleepers that became due, oldest deadline first, and wait for rest again.

        Everybody is at rest between one waking and the next. Who sleeps again after waking waits for a later `advance`. Raises
        `InvalidArgument` for a negative or non-finite number, and `RuntimeError` inside another `advance`.
        """
        ticks = round(checked_seconds(seconds) * _TICKS_PER_S)
        if self._advancing:
            raise RuntimeError("the clock is being advanced already: await that first")
        self._advancing = True
        try:
            await self._advance(ticks)
        finally:
            self._advancing = False

    async def settle(self) -> None:
        """Return when the participants are at rest and the tasks that could run have run."""
        quiet_rounds = 0
        while quiet_rounds < _QUIET_ROUNDS:
            before = self._changes
            await self._round()
            quiet_rounds = quiet_rounds + 1 if self._changes == before else 0

    async def _advance(self, ticks: int) -> None:
        await self.settle()
        self._now_us += ticks
        end_us = self._now_us
        # Whoever goes to sleep after the jump has a deadline beyond it, so nobody is woken twice.
        while (sleeper := self._pop_due(end_us)) is not None:
            sleeper.set_result(None)
            await self.settle()

    async def _round(self) -> None:
        for _ in range(_TURNS_A_ROUND):
            await asyncio.sleep(0)
        for participant in tuple(self._participants):
            await participant.at_rest()

    async def _sleep_until(self, deadline_us: int) -> None:
        sleeper: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._queue, (deadline_us, next(self._numbers), sleeper))
        self._sleeping[sleeper] = asyncio.current_task()
        self._changes += 1
        try:
            await sleeper
        finally:
            self._sleeping.pop(sleeper, None)
            self._changes += 1

    def _pop_due(self, end_us: int) -> asyncio.Future[None] | None:
        while self._queue and self._queue[0][0] <= end_us:
            sleeper = heapq.heappop(self._queue)[2]
            # The task is gone from the sleeping at once, not only when it runs: it has work to do from now on.
            self._sleeping.pop(sleeper, None)
            if not sleeper.done():
                return sleeper
        return None


def checked_seconds(seconds: float) -> float:
    """The seconds that one can sleep for. Raises `InvalidArgument`."""
    if not math.isfinite(seconds) or seconds < 0:
        raise InvalidArgument("seconds", seconds, "it must be a finite number from 0 up")
    return seconds
