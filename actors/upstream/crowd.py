"""Doing the same for each of many, a bounded number at once, without holding up the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

T = TypeVar("T")
R = TypeVar("R")

AT_ONCE: Final = 64


async def for_each(items: Sequence[T], function: Callable[[T], Awaitable[R]]) -> list[R]:
    """The results in no particular order. What takes long keeps its own place only; what fails ends all, in an `ExceptionGroup`."""
    waiting = iter(items)
    results: list[R] = []

    async def work() -> None:
        for item in waiting:
            results.append(await function(item))
            await asyncio.sleep(0)  # a function that never waits must not keep the loop for all of them

    async with asyncio.TaskGroup() as group:
        for _ in range(min(AT_ONCE, len(items))):
            group.create_task(work(), name="kizuki upstream link")
    return results
