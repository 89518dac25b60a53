"""Housekeeping in slices: each is one write among the others, sized by the time that the last one took."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from ..storage.retention import next_slice_rows
from ..storage.writes import ExpireCursors, ExpireHeads, PruneEvents, Swept
from .clock import Clock

Sweep = ExpireCursors | ExpireHeads | PruneEvents
CommitSlice = Callable[[Sweep], Awaitable[Swept]]
"""Commits one slice; a gateway has its log actor do it."""


async def sweep(commit: CommitSlice, clock: Clock, slice_: Sweep) -> int:
    """Commit slice after slice until the end; returns how many rows went. Raises `StoreError`."""
    removed = 0
    while True:
        began = clock.monotonic()
        swept = await commit(slice_)
        removed += swept.removed
        if swept.after is None:
            return removed
        slice_ = _next(slice_, swept, next_slice_rows(slice_.limit, clock.monotonic() - began))


def _next(slice_: Sweep, swept: Swept, limit: int) -> Sweep:
    """The slice after one that was not the last. Heads are found by index, so only the other two walk along."""
    match slice_, swept.after:
        case ExpireCursors(), tuple() as pair:
            return replace(slice_, limit=limit, after=pair)
        case PruneEvents(), int() as sequence:
            return replace(slice_, limit=limit, after=sequence)
        case _:
            return replace(slice_, limit=limit)
