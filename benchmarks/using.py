"""Using sessions: what brings their actors into memory."""

from __future__ import annotations

import asyncio

from kizuki.actors import Gateway

from .worlds import child_key

SLICE = 1_000


async def use(gateway: Gateway, numbers: range) -> None:
    """Have each session note the end of a run: its actor is started, and sees to it that its row is in the database."""
    for start in range(0, len(numbers), SLICE):
        await asyncio.gather(*(gateway.run_finished(child_key(number), "none") for number in numbers[start : start + SLICE]))
