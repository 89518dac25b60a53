"""The seam between the actors and a database.

A store is opened by `open_store`, belongs to one event loop, and is used by one log actor (which alone calls `commit`) and by
any number of readers. Every method may raise `StoreError`; none blocks the loop.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from .records import Address, Cursor, LinkRecord, PendingRead, SessionsPage, Shown, StateEvent, StatusRead, StoreStatistics
from .writes import Commit, Write


class Store(Protocol):
    """Durable state: sessions, the signal log, heads, cursors and links."""

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

    async def pending(self, watcher: str, *, limit: int | None, excluding: Collection[Shown]) -> PendingRead:
        """The watcher's opened notices, at most `limit` of them, but for the very ones excluded: a target that was watched anew
        meanwhile has another notice."""
        ...

    async def links(self, *, watched_only: bool) -> tuple[LinkRecord, ...]:
        """Every link, or only those of sessions with at least one cursor on them, ordered by (key, agent id)."""
        ...

    async def events(self, *, address: Address | None, limit: int) -> tuple[StateEvent, ...]:
        """The newest `limit` events, of one session or of all, ascending."""
        ...

    async def statistics(self) -> StoreStatistics:
        """Counts over the whole database."""
        ...

    async def close(self) -> None:
        """Close every connection. Closing twice is allowed."""
        ...
