"""One connection to the server, made anew when it is lost. Whoever uses it has it alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import asyncpg

from ..errors import StoreError
from .failures import is_lost

if TYPE_CHECKING:
    Database = asyncpg.Connection[asyncpg.Record]
else:
    Database = asyncpg.Connection

BACKOFF_FIRST_S = 0.02
BACKOFF_MAX_S = 0.5
_ERA = "SELECT concat(pg_postmaster_start_time(), ' ', (SELECT backend_start FROM pg_stat_activity WHERE backend_type = 'checkpointer'))"
CLOSE_S = 2.0
"""How long a connection may take to say goodbye before it is just dropped."""


class Line:
    """A connection that is there when it is needed."""

    def __init__(self, connect: Callable[[], Awaitable[Database]]) -> None:
        self._connect = connect
        self._connection: Database | None = None
        self.era = ""
        """Changes when the server starts, or has recovered from a crash: then transaction ids may have been given out twice."""
        self._in_use = asyncio.Lock()
        self._closed = False

    @property
    def is_closed(self) -> bool:
        """Whether it is closed for ever."""
        return self._closed

    @asynccontextmanager
    async def use(self, *, within_s: float) -> AsyncIterator[Database]:
        """Have the connection for oneself. One that cannot be made within the time is `StoreError`; at least one attempt is made."""
        async with self._in_use:
            connection = await self._get(time.monotonic() + within_s)
            try:
                yield connection
            except BaseException:
                # Whatever state it is in, nobody else shall find out.
                self._drop_if_astray(connection)
                raise

    async def close(self) -> None:
        """Close it, now and for ever, also if it is in use."""
        self._closed = True
        if self._connection is not None and not self._connection.is_closed():
            try:
                await self._connection.close(timeout=CLOSE_S)
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                self._connection.terminate()
        self._connection = None

    async def _get(self, deadline_s: float) -> Database:
        pause_s = BACKOFF_FIRST_S
        if self._closed:
            raise StoreError("the store is closed")
        while self._connection is None or self._connection.is_closed():
            try:
                self._connection = await self._connect()
                self.era = await self._connection.fetchval(_ERA)
            except Exception as error:
                if not is_lost(error) or time.monotonic() + pause_s >= deadline_s:
                    raise
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, BACKOFF_MAX_S)
        return self._connection

    def _drop_if_astray(self, connection: Database) -> None:
        if connection.is_closed() or connection.is_in_transaction():
            connection.terminate()
            self._connection = None
