"""The seam between the actors and a database.

A store is opened by `open_store`, belongs to one event loop, and is used by one log actor (which alone calls `commit`) and by
any number of readers. Every method may raise `StoreError`; none blocks the loop.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from .records import (
    Address,
    Cursor,
    Followed,
    LinkRecord,
    LogPosition,
    Neighbours,
    Overview,
    PendingRead,
    SessionsPage,
    Shown,
    StateEvent,
    StatusRead,
    StoreStatistics,
    Surroundings,
)
from .writes import Commit, Write


class Store(Protocol):
    """Durable state: sessions, the signal log, heads, cursors and links.

    Several gateways may have stores open on one database. One that is registered is known to the others by its number, and is alive to them
    for as long as it holds a lock that ends with its process. What is claimed by, hosted by or hinted to "this gateway" is this store's.
    """

    async def register(self, *, now_ms: int, busy_timeout_s: float) -> int:
        """Register this store as a living gateway, and give its number: higher than any before, never used again.

        It is alive to the others before they can see it. Doing it again, after it was taken for dead, gives another number; what the old
        one had is not carried over.
        """
        ...

    async def changed(self) -> bool:
        """Whether another store may have committed since this was last asked; True the first time. Cheap enough to be asked ten times a
        second. A store that is told of commits, and so may miss one, says True every few seconds in any case."""
        ...

    async def neighbours(self) -> Neighbours:
        """The other gateways that are registered, the living told from the dead. Works on a store that is not registered, too."""
        ...

    async def commit(self, writes: Sequence[Write], *, busy_timeout_s: float) -> Commit:
        """Apply the writes in their order, in one transaction: all of them, or none and `StoreError`.

        When it returns, all is durable (to the degree of `synchronous`) and visible to every later read. Waits at most
        `busy_timeout_s` for another process's lock, then raises `StoreBusyError`. If the caller is cancelled, the transaction
        still ends whole, one way or the other, and the connection is not left inside it.
        """
        ...

    async def status(self, address: Address, *, changes_since: int | None, limit: int) -> StatusRead | None:
        """One session's row, head and, where `changes_since` is given, at most `limit` events after it. None: no such session."""
        ...

    async def session_exists(self, session_key: str) -> bool:
        """Whether any agent has a session under this key."""
        ...

    async def sessions(
        self,
        *,
        agent_id: str | None,
        kind: str | None,
        parent: str | None,
        limit: int,
        after: Address | None,
        with_total: bool,
    ) -> SessionsPage:
        """A page of sessions ordered by (key, agent id), starting behind `after`."""
        ...

    async def cursors(self, watcher: str | None) -> tuple[Cursor, ...]:
        """Every cursor that the watcher holds (None: all cursors), ordered by watcher, then target."""
        ...

    async def pending(self, watcher: str, *, limit: int | None, excluding: Collection[Shown], with_total: bool = True) -> PendingRead:
        """The watcher's opened notices, at most `limit` of them, but for the very ones excluded: a target that was watched anew
        meanwhile has another notice. Those that another living gateway has claimed are left out as well. To count all of them takes time
        in proportion; without `with_total` the total may be as low as what was found up to the limit."""
        ...

    async def owes(self, watcher: str) -> bool:
        """Whether openings are owed to the watcher, whoever recorded what they are for."""
        ...

    async def links(self, *, watched_only: bool) -> tuple[LinkRecord, ...]:
        """Every link, or only those of sessions with at least one cursor on them, ordered by (key, agent id)."""
        ...

    async def events(self, *, address: Address | None, limit: int) -> tuple[StateEvent, ...]:
        """The newest `limit` events, of one session or of all, ascending."""
        ...

    async def follow(self, position: LogPosition | None, *, events_max: int, opened_max: int) -> Followed:
        """The events of all sessions that are visible and were not given up to the position, the lowest `events_max` of them.

        None: no events, and the position of now. One who follows from position to position is given every event that is committed
        from then on, each once, in the order of commits within a session, whoever records it; cheap enough to be asked ten times a
        second. `LogPosition(n)` begins behind the sequence n. An event that is gone before anybody looks is not given: it was pruned, or
        its session was deleted.
        """
        ...

    async def overview(self, *, sessions_max: int, cursors_max: int, events_max: int) -> Overview:
        """All sessions, cursors and events in one consistent read, or what of them a person would want to see first.

        Where the bounds leave some out, the sessions are those of the newest `sessions_max` events, filled up in the order of their keys;
        the cursors those with an opened notice, filled up with others; the events the newest.
        """
        ...

    async def surroundings(self, address: Address, *, limit: int) -> Surroundings | None:
        """The session, at most `limit` cursors on it and as many that it holds, those with an opened notice first.

        None: no such session.
        """
        ...

    async def statistics(self) -> StoreStatistics:
        """Counts over the whole database."""
        ...

    async def close(self) -> None:
        """Close every connection; a registered gateway is dead to the others from then on, and is taken over. Closing twice is allowed."""
        ...
