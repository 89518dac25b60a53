"""A database connection on its own thread, used a whole function per hop. The one file that knows aiosqlite's insides.

aiosqlite awaits every statement, which stays at 7,000 events a second whatever the batch, and leaves a transaction open if the
task is cancelled between two of them. Here the whole transaction is one synchronous function that runs on the thread.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from functools import partial
from typing import Self, TypeVar

import aiosqlite

from .handoff import Handoff, handoff
from .runner import Runner
from .whole import ended

logging.getLogger("aiosqlite").setLevel(logging.INFO)  # its DEBUG prints parameters, which is other people's data

T = TypeVar("T")


class Connection(aiosqlite.Connection, Runner):
    """An `aiosqlite.Connection` that runs whole functions; entered and left like one."""

    def __init__(self, connector: Callable[[], sqlite3.Connection]) -> None:
        super().__init__(connector, iter_chunk_size=64)
        self._stopped: asyncio.Future[object] | None = None
        self._thread.daemon = True  # a connection that was not closed must not keep the interpreter alive

    async def __aenter__(self) -> Self:
        try:
            await super().__aenter__()
        except BaseException:
            await self._thread_ended()
            raise
        return self

    def stop(self) -> asyncio.Future[object] | None:
        self._stopped = super().stop()
        return self._stopped

    async def _thread_ended(self) -> None:
        """Wait for a thread that failed to connect: its last word would find the loop closed."""
        if self._stopped is not None:
            await ended(self._stopped)

    def waiting(self) -> Handoff:
        return handoff()

    def hand_over(self, function: Callable[[sqlite3.Connection], T], answer: asyncio.Future[T]) -> None:
        """Hand it to the thread, without the coroutine around it, which would need a task to be shielded. Raises `ValueError`."""
        if not self._running:
            raise ValueError("Connection closed")
        self._tx.put_nowait((answer, partial(function, self._conn)))
