"""One alarm for one actor: a `Tick` in its inbox when the time has come."""

from __future__ import annotations

import asyncio
from typing import Any

from .clock import Clock
from .messages import Tick
from .runtime import AsyncioActorRef


class Timer:
    """At most one alarm at a time; setting it again replaces the one before. It costs nothing while it is not set."""

    def __init__(self, clock: Clock, ref: AsyncioActorRef[Any]) -> None:
        self._clock = clock
        self._ref = ref
        self._task: asyncio.Task[None] | None = None

    @property
    def is_set(self) -> bool:
        return self._task is not None

    def set(self, delay_s: float) -> None:
        """Ring once after `delay_s` seconds on the clock's monotonic time."""
        self.cancel()
        self._task = asyncio.create_task(self._ring(delay_s), name="kizuki timer")

    def cancel(self) -> None:
        """Do not ring."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _ring(self, delay_s: float) -> None:
        await self._clock.sleep(delay_s)
        self._task = None
        if self._ref.is_alive():
            self._ref.tell(Tick())
