"""One run of a session's model in an SDK that tells of its beginning, its model calls and its end in separate callbacks.

The gateway's turn is a block; here it is open from one callback to another. What it took is acknowledged when the SDK proves that the
model was shown it, and goes back if the run ends without that.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager

from ...errors import UnknownSession
from ...gateway import Gateway
from ...logs import logger
from ...notices import Notice
from ...turn import Turn
from .failing_open import fail_open


class RunNotShownError(Exception):
    """Ends a turn whose notices the model was not shown; it never leaves this file."""


class RunTurn:
    """The notices of one run. No method raises."""

    def __init__(self, gateway: Gateway, session_key: str, timeout_s: float) -> None:
        self._gateway = gateway
        self._session_key = session_key
        self._timeout_s = timeout_s
        self._opening: AbstractAsyncContextManager[Turn] | None = None
        self.notices: tuple[Notice, ...] = ()
        """What was taken and the model was not proved to have seen yet."""

    async def take(self) -> None:
        """Open the turn, with its notices. In doubt there are none: they stay pending."""
        opening = self._gateway.turn(self._session_key)
        turn = await fail_open("taking notices", _enter(opening), self._timeout_s, session_key=self._session_key)
        if turn is not None:
            self._opening = opening
            self.notices = turn.notices

    async def acknowledge(self, notices: tuple[Notice, ...]) -> None:
        """The model has been shown these. It holds also for notices that went back meanwhile: shown is shown."""
        if not notices:
            return
        stored = self._gateway.acknowledge(self._session_key, notices)
        if await fail_open("acknowledging", stored, self._timeout_s, session_key=self._session_key) is not None:
            self.notices = tuple(notice for notice in self.notices if notice not in notices)

    async def end(self, *, well: bool) -> None:
        """Close the turn; what was not acknowledged goes back. A second call does nothing.

        A turn that still holds something is never ended well: its acknowledgement would be carried through a database that hangs.
        """
        opening, self._opening = self._opening, None
        if opening is None:
            return
        error = None if well and not self.notices else RunNotShownError()
        try:
            await opening.__aexit__(type(error) if error else None, error, None)
        except Exception as failure:  # noqa: BLE001 - the run that ends here is not ours
            logger(session_key=self._session_key).warning("a turn was not ended", error=str(failure) or repr(failure))


async def _enter(opening: AbstractAsyncContextManager[Turn]) -> Turn | None:
    try:
        return await opening.__aenter__()
    except UnknownSession:
        return None  # nothing was ever recorded of it, so it watches nothing


class HeldTurn:
    """A run's turn in an SDK that has no callback for a run that fails: nobody would end it.

    So it is held for at most `hold_s` seconds until the model is asked, then its notices go back, and the watcher is woken for them. A
    model that is shown them later all the same has been shown them: `RunTurn.acknowledge` tells.
    """

    def __init__(self, turn: RunTurn, hold_s: float) -> None:
        self._turn = turn
        self._timer = asyncio.get_running_loop().call_later(hold_s, self._give_back)
        self._giving_back: asyncio.Task[None] | None = None

    def keep(self) -> None:
        """The model is being asked, however long it takes: whoever asks it ends the turn."""
        self._timer.cancel()

    async def end(self, *, well: bool) -> None:
        """End the turn now."""
        self._timer.cancel()
        await self._turn.end(well=well)

    def _give_back(self) -> None:
        self._giving_back = asyncio.create_task(self._turn.end(well=False), name="kizuki give back")
