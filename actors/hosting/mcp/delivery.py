"""Bringing notices to one client: they ride along in the result of a call, and the client's next request acknowledges them.

The protocol tells a server nothing of a result's fate, so a notice that was shown is in an open turn of the watcher until there is
a sign of it. A later request is one: the client goes on. That the client has left, has cancelled that call, or was sent an answer
that did not get out, is a sign that the notice was not seen: then the turn is ended as one that failed, and the notice is
shown again, byte for byte (rule 4.8). If this process is killed meanwhile, its claim goes with it, and the same holds (rule 8.3).
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final

from ...errors import KizukiError
from ...gateway import Gateway
from ...logs import logger
from ...notices import Notice
from ...turn import Turn
from .exchange import Exchange

LEASE_S: Final = 300.0
"""How long a client without a connection of its own may take for its next request."""


class NotSeenError(Exception):
    """Ends a turn whose notices nobody has seen."""


@dataclass(frozen=True, slots=True)
class Shown:
    """An open turn whose notices are in a result."""

    turn: AbstractAsyncContextManager[Turn]
    request_id: int | str | None
    """Of the call whose result they are in."""
    exchange: Exchange | None
    """The HTTP exchange that carries this result; None where a result goes out on the client's own connection."""

    def is_out(self) -> bool:
        """Whether the result has gone to the client, as far as this side can tell."""
        return self.exchange is None or self.exchange.completed


class Delivery:
    """The notices of one watcher on their way to one client; at most one turn at a time is open for it.

    A turn is entered in one request's task and left in another's: it is a plain context manager that binds nothing to a task.
    Nothing here raises but a cancellation.
    """

    def __init__(self, gateway: Gateway, watcher: str, *, lease_s: float = LEASE_S) -> None:
        self._gateway = gateway
        self._watcher = watcher
        self._lease_s = lease_s
        self._shown: Shown | None = None
        self._taking = False
        self._left = False
        self._lease: asyncio.TimerHandle | None = None
        self._expiring: asyncio.Task[None] | None = None

    async def take(self, request_id: int | str | None, exchange: Exchange | None = None) -> tuple[Notice, ...]:
        """Notices for the result of this call; none while a result before it still has some that are not acknowledged."""
        if self._taking or self._left or self._shown is not None:
            return ()
        self._taking = True
        try:
            return await self._take(request_id, exchange)
        except KizukiError as error:
            logger(watcher=self._watcher).warning("no notices for a result", error=str(error))
            return ()
        finally:
            self._taking = False

    async def acknowledge(self) -> None:
        """The client goes on, so it has what it was shown; a result that is still on its way out is not meant by that."""
        if self._shown is not None and self._shown.is_out():
            await self._end(None)

    async def give_back(self) -> None:
        """What was shown, if anything, was not seen."""
        if self._shown is not None:
            await self._end(NotSeenError())

    async def give_back_from(self, request_id: object) -> None:
        """The result of this call was not seen."""
        if self._shown is not None and self._shown.request_id == request_id:
            await self.give_back()

    async def leave(self) -> None:
        """The client has gone: nothing more is taken for it."""
        self._left = True
        await self.give_back()
        if self._expiring is not None:
            await self._expiring

    async def _take(self, request_id: int | str | None, exchange: Exchange | None) -> tuple[Notice, ...]:
        opening = self._gateway.turn(self._watcher)
        turn = await opening.__aenter__()
        if not turn.notices:
            await opening.__aexit__(None, None, None)
            return ()
        self._shown = Shown(opening, request_id, exchange)
        if self._left or (exchange is not None and exchange.over):
            await self.give_back()
            return ()
        if exchange is not None:
            exchange.on_failure(self._exchange_failed)
            self._lease = asyncio.get_running_loop().call_later(self._lease_s, self._expire)
        return turn.notices

    async def _exchange_failed(self, exchange: Exchange) -> None:
        if self._shown is not None and self._shown.exchange is exchange:
            await self.give_back()

    def _expire(self) -> None:
        self._expiring = asyncio.ensure_future(self.give_back())

    async def _end(self, error: NotSeenError | None) -> None:
        """End the turn, once: it is out of here before anything is awaited, so that of two requests at a time only one ends it."""
        shown, self._shown = self._shown, None
        if self._lease is not None:
            self._lease.cancel()
        if shown is None:
            return
        try:
            await shown.turn.__aexit__(type(error) if error else None, error, None)
        except NotSeenError:
            pass
        except Exception as failure:  # noqa: BLE001 - an end that failed shows the notices again, and must not fail the request
            logger(watcher=self._watcher).warning("a turn's end failed", error=repr(failure))
