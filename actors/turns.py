"""Opening turns, and ending them well or not (rules 4.7, 4.8).

A turn's notices are taken by the watcher's actor, held in `Claims`, and acknowledged or given back here. Giving back is a plain
call, so that a cancelled turn needs no await for it.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pykka import ActorDeadError

from ..storage.errors import StoreError
from ..storage.records import PendingRead
from .errors import UnknownSession
from .logs import logger
from .messages import AcknowledgeShown, Take, TurnOver
from .notices import Notice, notice
from .system import ActorSystem
from .turn import Turn, carried_through


class Turns:
    """Opens and ends the turns of one gateway's watchers, named by their canonical keys."""

    def __init__(self, system: ActorSystem) -> None:
        self._system = system

    @asynccontextmanager
    async def open(self, watcher: str, limit: int) -> AsyncIterator[Turn]:
        """A turn with at most `limit` notices: acknowledged when the body ends well, given back when it raises or is cancelled.

        Raises `UnknownSession`, `StoreUnavailable`, both before the body.
        """
        number = self._system.claims.open(watcher)
        current: Turn | None = None
        ended_well = False
        try:
            current = await self._take(watcher, number, limit)
            yield current
            ended_well = True
            await self._end_well(watcher, number)
        finally:
            self._over(watcher, number, current, ended_well)

    async def drain(self, watcher: str, limit: int) -> list[Notice]:
        """A turn that ends well at once. Raises what `open` raises."""
        async with self.open(watcher, limit) as turn:
            return list(turn.notices)

    def notices(self, read: PendingRead) -> list[Notice]:
        """The notices of what is pending, in the gateway's language."""
        return [notice(cursor, self._system.config.language) for cursor in read.cursors]

    async def _take(self, watcher: str, number: int, limit: int) -> Turn:
        try:
            read: PendingRead = await self._system.watcher(watcher).ask(Take(number, limit))
        except (StoreError, ActorDeadError) as error:
            raise self._system.unavailable("turn", error) from error
        if not read.session_exists:
            raise UnknownSession(watcher)
        acknowledge = functools.partial(self._acknowledge_early, watcher, number)
        return Turn(tuple(self.notices(read)), read.total - len(read.cursors), acknowledge)

    async def _acknowledge_early(self, watcher: str, number: int) -> None:
        self._system.check_open("acknowledge")
        held = self._system.claims.held(watcher, number)
        if not held:
            return
        try:
            await self._system.watcher(watcher).ask(AcknowledgeShown(held))
        except (StoreError, ActorDeadError) as error:
            raise self._system.unavailable("acknowledge", error) from error

    async def _end_well(self, watcher: str, number: int) -> None:
        """Acknowledge what the turn still holds, whatever happens to the caller meanwhile. If it cannot be stored, it is shown again."""
        held = self._system.claims.held(watcher, number)
        if not held:
            return
        try:
            await carried_through(self._system.watcher(watcher).ask(AcknowledgeShown(held)))
        except (StoreError, ActorDeadError) as error:
            logger(watcher=watcher).warning("acknowledgement lost, the notices will be shown again", error=str(error))

    def _over(self, watcher: str, number: int, current: Turn | None, ended_well: bool) -> None:
        """End the turn: what it still holds goes back, and the watcher is woken again where anything is left, or has come meanwhile."""
        returned = self._system.claims.release(watcher, number)
        self._system.counters.notices_returned += len(returned)
        if not self._system.is_open:
            return
        if current is not None or returned:
            self._system.watcher(watcher).ask(TurnOver(failed=not ended_well or bool(returned)))
