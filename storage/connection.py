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
from typing import Concatenate, ParamSpec, Self, TypeVar

import aiosqlite

from .handoff import handoff
from .whole import ended

logging.getLogger("aiosqlite").setLevel(logging.INFO)  # its DEBUG prints parameters, which is other people's data

P = ParamSpec("P")
T = TypeVar("T")


class Hop(asyncio.Future[T]):
    """What runs on the thread. It cannot be cancelled: a task that is cancelled while it awaits one learns so when the hop has ended."""

    def cancel(self, msg: object = None) -> bool:  # noqa: ARG002, the name is asyncio's
        return False


class Connection(aiosqlite.Connection):
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

    async def run(self, function: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the function on the connection's thread. Cancelling the caller does not stop the function."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        with handoff():
            return await self._submit(partial(function, self._conn, *args, **kwargs), future)

    async def run_whole(self, function: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same, but a cancelled caller is held until the function has ended: it never goes on beside it."""
        with handoff():
            return await self._submit(partial(function, self._conn, *args, **kwargs), Hop(loop=asyncio.get_running_loop()))

    def _submit(self, function: Callable[[], T], future: asyncio.Future[T]) -> asyncio.Future[T]:
        """Hand a function to the thread, which will answer the future. Raises `ValueError`."""
        if not self._running:
            raise ValueError("Connection closed")
        self._tx.put_nowait((future, function))
        return future
