"""The gateways' clock in a simulated world."""

from __future__ import annotations

import asyncio

from ..clock import checked_seconds
from .loop import US_PER_S, Scheduler


class VirtualClock:
    """See `Clock`. All gateways of a world are on one machine, and see one wall clock, which may be set in both directions."""

    def __init__(self, scheduler: Scheduler, start_ms: int) -> None:
        self._scheduler = scheduler
        self._wall_at_zero_ms = start_ms

    def now_ms(self) -> int:
        return self._wall_at_zero_ms + self.elapsed_ms

    @property
    def elapsed_ms(self) -> int:
        """Since the run began, whatever the wall clock says."""
        return self._scheduler.now_us // 1000

    def monotonic(self) -> float:
        return self._scheduler.now_us / US_PER_S

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(checked_seconds(seconds))

    def set_wall(self, by_ms: int) -> None:
        """Set the wall clock forward, or back; timers and `monotonic` know nothing of it."""
        self._wall_at_zero_ms += by_ms
