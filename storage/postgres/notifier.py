"""Word to other gateways, on a connection of its own.

A NOTIFY in the writing transaction would have every commit of the database wait for the one before it. So it is sent after the commit, for
all gateways at once that were left word meanwhile. It carries nothing, and may be lost: what it is about is in the table `hints`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from ..errors import StoreError
from .failures import is_lost
from .line import Line
from .presence import channel, lock_class

CONNECT_S = 1.0

_NOTIFY = "SELECT pg_notify(name, '') FROM unnest($1::text[]) AS name"


class Notifier:
    """Sends word, one message after another, for as many gateways as there are by then."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._waiting: set[int] = set()
        self._task: asyncio.Task[None] | None = None

    def notify(self, gateway_ids: Iterable[int]) -> None:
        """Send word to these, soon."""
        self._waiting.update(gateway_ids)
        if self._waiting and self._task is None:
            self._task = asyncio.create_task(self._send_all())

    async def close(self) -> None:
        """Send nothing more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                gateway_ids, self._waiting = self._waiting, set()
                await self._send(gateway_ids)
        finally:
            self._task = None

    async def _send(self, gateway_ids: set[int]) -> None:
        try:
            async with self._line.use(within_s=CONNECT_S) as connection:
                kind = await lock_class(connection)
                await connection.execute(_NOTIFY, [channel(kind, gateway_id) for gateway_id in gateway_ids])
        except Exception as error:
            if not (is_lost(error) or isinstance(error, StoreError)):
                raise
