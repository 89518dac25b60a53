"""Housekeeping in slices: each is one write among the others, sized by the time that the last one took."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..storage.retention import next_slice_rows
from ..storage.writes import ExpireCursors, ExpireHeads, PruneEvents, Swept
from .clock import Clock
from .runtime import AsyncioActorRef

Sweep = ExpireCursors | ExpireHeads | PruneEvents


async def sweep(log: AsyncioActorRef[Any], clock: Clock, slice_: Sweep) -> int:
    """Have the log commit slice after slice until the end; returns how many rows went. Raises `StoreError`."""
    removed = 0
    while True:
        began = clock.monotonic()
        swept: Swept = await log.ask(slice_)
        removed += swept.removed
        if swept.after is None:
            return removed
        slice_ = _next(slice_, swept, next_slice_rows(slice_.limit, clock.monotonic() - began))


def _next(slice_: Sweep, swept: Swept, limit: int) -> Sweep:
    if isinstance(slice_, ExpireHeads):
        return replace(slice_, limit=limit)
    return replace(slice_, limit=limit, after=swept.after)
