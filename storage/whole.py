"""Work that is carried through even if its caller is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def whole(work: Coroutine[Any, Any, T]) -> T:
    """Await the work. A cancelled caller is held until it has ended: it never goes on beside it."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await ended(task)
        raise


async def ended(task: asyncio.Future[T]) -> None:
    """Wait for the end, however often the waiting task is cancelled; the outcome has nobody left to go to."""
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            continue
    if not task.cancelled():
        task.exception()
