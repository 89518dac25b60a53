"""A watcher's actor: hands out its notices, one turn at a time.

The pinned positions are in the store, where the log actor moves them; which notices are in an open turn is in `Claims`, and for the
other gateways in the store. So the actor keeps nothing that its end could lose: it puts what one watcher does into one order, and
sees to it that the openings still owed to this watcher are made before it is served (rule 1.10).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pykka import ActorDeadError

from ..storage.errors import StoreError
from ..storage.protocol import Store
from ..storage.records import Cursor, PendingRead, Shown
from ..storage.writes import Acknowledge, Acknowledged, OpenOwed, Release, TakeNotices
from .claims import Claims
from .clock import Clock
from .keys import is_subagent
from .messages import AcknowledgeShown, GiveBack, ReadPending, ReadWatches, ReplayWatcher, Take, TurnOver
from .replay import ReplayProgress
from .runtime import AsyncioActor, AsyncioActorRef
from .wakes import WakeBook

WAKE_REASONS_MAX: Final = 100
"""How many of the notices left over a wake names; the turn that follows shows them anyway."""

WatcherMail = Take | ReadPending | ReadWatches | AcknowledgeShown | TurnOver | GiveBack


def shown(cursor: Cursor) -> Shown:
    """What identifies the notice that this cursor has open."""
    return Shown(cursor.target, cursor.positions.last_seen, cursor.positions.notified)


class WatcherActor(AsyncioActor):
    """One watcher. `child` gives the log or replay actor of the moment, for those may have been restarted."""

    def __init__(
        self,
        key: str,
        *,
        store: Store,
        child: Callable[[str], AsyncioActorRef[Any]],
        clock: Clock,
        claims: Claims,
        wakes: WakeBook,
        replay: ReplayProgress,
    ) -> None:
        super().__init__()
        self._key = key
        self._store = store
        self._child = child
        self._clock = clock
        self._claims = claims
        self._wakes = wakes
        self._replay = replay

    async def on_receive(self, message: WatcherMail) -> Any:
        match message:
            case Take():
                return await self._take(message)
            case ReadPending():
                return await self._read_pending(message.limit)
            case ReadWatches():
                await self._settle()
                return await self._store.cursors(self._key)
            case AcknowledgeShown():
                return await self._acknowledge(message.shown)
            case TurnOver():
                await self._give_back()
                await self._wake_for_the_rest(message.failed)
            case GiveBack():
                await self._give_back()
        return None

    async def _settle(self) -> None:
        """Make the openings that this watcher is still owed: by the start (rule 4.11), and by commits (rule 1.10), also other gateways'."""
        await self._replayed()
        if await self._store.owes(self._key):
            await self._child("log").ask(OpenOwed(self._clock.now_ms(), limit=0, watcher=self._key))

    async def _replayed(self) -> None:
        if not self._replay.serves(self._key):
            await self._child("replay").ask(ReplayWatcher(self._key))

    async def _read_pending(self, limit: int | None) -> PendingRead:
        await self._settle()
        return await self._store.pending(self._key, limit=limit, excluding=self._claims.taken(self._key), with_total=False)

    async def _take(self, message: Take) -> PendingRead:
        await self._replayed()
        was_stale = self._key in self._claims.stale
        self._claims.stale.add(self._key)  # until it is known what the store has claimed
        try:
            read = await self._claim(message.limit)
        except (StoreError, ActorDeadError):  # it may have taken all the same: then the host has moved here, and nobody else wakes for it
            self._request_wake((), failed=True)
            raise
        holds = self._claims.take(self._key, message.turn, tuple(shown(cursor) for cursor in read.cursors))
        if holds and not was_stale:
            self._claims.stale.discard(self._key)
        await self._give_back()
        if not holds and read.session_exists:  # the host has moved here with the claim, so nobody else wakes for it
            await self._wake_for_the_rest(failed=True)
        return read

    async def _claim(self, limit: int) -> PendingRead:
        taken = tuple(sorted(self._claims.taken(self._key)))
        read: PendingRead = await self._child("log").ask(TakeNotices(self._key, limit, taken, self._clock.now_ms()))
        return read

    async def _give_back(self) -> None:
        """Let the store know what no turn holds any more. Here it is free already, so a failure costs the others time only."""
        if self._key not in self._claims.stale:
            return
        self._claims.stale.discard(self._key)  # before the await: what ends during it is stale again
        kept = tuple(sorted(self._claims.taken(self._key)))
        try:
            await self._child("log").ask(Release(self._key, kept, self._clock.now_ms()))
        except (StoreError, ActorDeadError):
            self._claims.stale.add(self._key)

    async def _acknowledge(self, notices: tuple[Shown, ...]) -> Acknowledged:
        await self._replayed()
        result: Acknowledged = await self._child("log").ask(Acknowledge(self._key, notices, self._clock.now_ms()))
        self._claims.settle(self._key, notices)
        return result

    async def _wake_for_the_rest(self, failed: bool) -> None:
        """A turn that leaves notices behind asks to be woken for them (rule 4.9)."""
        if not failed:
            self._wakes.turn_ended_well(self._key)
        if is_subagent(self._key):
            return
        try:
            read = await self._read_pending(WAKE_REASONS_MAX)
        except (StoreError, ActorDeadError):  # something may be left, so ask: the heartbeat looks before it wakes
            self._request_wake((), failed)
        else:
            reasons = tuple(cursor.target.session_key for cursor in read.cursors)
            if reasons:
                self._request_wake(reasons, failed)

    def _request_wake(self, reasons: tuple[str, ...], failed: bool) -> None:
        if is_subagent(self._key):
            return
        request = self._wakes.turn_failed if failed else self._wakes.opened
        request(self._key, reasons, self._clock.monotonic())
