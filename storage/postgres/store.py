"""`Store` on PostgreSQL: a connection that writes, two that read, one that says that this gateway is there, one that sends word."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import cycle
from typing import Concatenate, ParamSpec, TypeVar

from ..errors import StoreError
from ..records import (
    Address,
    Cursor,
    Followed,
    LinkRecord,
    LogPosition,
    Neighbours,
    Opened,
    Overview,
    PendingRead,
    SessionsPage,
    Shown,
    StateEvent,
    StatusRead,
    StoreStatistics,
    Surroundings,
)
from ..urls import without_password
from ..whole import whole
from ..writes import Commit, Write
from . import follow, handover, links, openings, presence, reads, views
from .apply import apply
from .connecting import Server, server_at
from .failures import is_lost, store_error
from .gateways import put_hints
from .line import Database, Line
from .locks import KnownHeads
from .migrations import migrate, require_newest
from .notifier import Notifier
from .presence import Presence
from .transaction import Transaction, Work, Worked, transact

P = ParamSpec("P")
T = TypeVar("T")

READERS = 2
READ_S = 5.0
"""How long a read waits for a connection to be made anew."""
CLOSE_S = 1.0
HINT_S = 1.0

_REGISTER = "INSERT INTO gateways DEFAULT VALUES RETURNING gateway_id, pg_current_xact_id()::text::bigint"
_GOODBYE = "UPDATE gateways SET closed = true WHERE gateway_id = $1"


class PostgresStore:
    """See `Store`."""

    def __init__(self, server: Server, *, read_only: bool, new_session_id: Callable[[], str]) -> None:
        self._server = server
        self._presence = Presence(server.connect)
        self._writer = None if read_only else Line(self._connect_writer)
        self._readers = [Line(server.connect) for _ in range(READERS)]
        self._next_reader = cycle(self._readers)
        self._notifying = Line(server.connect)
        self._notifier = Notifier(self._notifying)
        self._new_session_id = new_session_id
        self._known = KnownHeads()

    async def _connect_writer(self) -> Database:
        connection = await self._server.connect()
        await self._presence.hold(connection)
        return connection

    async def prepare(self) -> None:
        """Reach the server, and see to it that the tables are there."""
        line, prepare = (self._readers[0], require_newest) if self._writer is None else (self._writer, migrate)
        async with line.use(within_s=0) as connection:
            await prepare(connection)

    async def register(self, *, now_ms: int, busy_timeout_s: float) -> int:  # noqa: ARG002 - here the database's own time is noted
        try:
            return await self._write(self._register, busy_timeout_s)
        except StoreError:
            await self._presence.disappear()
            raise

    async def _register(self, connection: Database) -> Worked[int]:
        gateway_id, transaction_id = await connection.fetchrow(_REGISTER) or (0, None)
        await self._presence.appear(connection, gateway_id)
        return Worked(gateway_id, transaction_id)

    async def changed(self) -> bool:
        if self._writer is not None and self._writer.is_closed:
            raise StoreError("the store is closed")
        return self._presence.changed()

    async def neighbours(self) -> Neighbours:
        return await presence.neighbours(partial(self._read, presence.look, self._presence.gateway_id))

    async def commit(self, writes: Sequence[Write], *, busy_timeout_s: float) -> Commit:
        done, tx = await self._write(partial(self._apply, tuple(writes)), busy_timeout_s)
        self._known.learn(tx.folds.values())
        done = await self._look_once_more(done, tx)
        self._notifier.notify(tx.hinted)
        return done

    async def _look_once_more(self, done: Commit, tx: Transaction) -> Commit:
        """See `handover`. The commit is not undone by a failure here: then somebody is woken later, by the next opening."""
        if not tx.has_others or not (done.opened or tx.moved):
            return done
        with suppress(StoreError):
            came = await self._read(handover.came_meanwhile, tx) if tx.moved else []
            done = replace(done, opened=tuple(dict.fromkeys((*done.opened, *came))))
            moved = await self._read(handover.moved_meanwhile, tx.gateway_id, done.opened)
            if moved:
                await self._write(partial(self._hint, tx, moved), HINT_S)
                gone = {pair for _, pair in moved}
                done = replace(done, opened=tuple(pair for pair in done.opened if pair not in gone))
        return done

    async def _hint(self, tx: Transaction, hints: list[tuple[int, Opened]], connection: Database) -> Worked[None]:
        await put_hints(replace(tx, connection=connection), hints, tx.moment_ms)
        return Worked(None, None)

    async def _apply(self, writes: Sequence[Write], connection: Database) -> Worked[tuple[Commit, Transaction]]:
        gateway_id = self._presence.gateway_id
        return await apply(connection, writes, known=self._known, gateway_id=gateway_id, new_session_id=self._new_session_id)

    async def _write(self, work: Work[T], busy_timeout_s: float) -> T:
        if self._writer is None:
            raise StoreError("the database was opened read-only")
        return await whole(transact(self._writer, work, busy_timeout_s=busy_timeout_s))

    async def status(self, address: Address, *, changes_since: int | None, limit: int) -> StatusRead | None:
        return await self._read(reads.status, address, changes_since, limit)

    async def session_exists(self, session_key: str) -> bool:
        return await self._read(reads.session_exists, session_key)

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
        return await self._read(reads.sessions, agent_id, kind, parent, limit, after, with_total)

    async def cursors(self, watcher: str | None) -> tuple[Cursor, ...]:
        return await self._read(reads.cursors, watcher)

    async def pending(
        self,
        watcher: str,
        *,
        limit: int | None,
        excluding: Collection[Shown],
        with_total: bool = True,  # noqa: ARG002, the server counts in any case
    ) -> PendingRead:
        return await self._read(reads.pending, self._presence.gateway_id, watcher, limit, tuple(excluding))

    async def owes(self, watcher: str) -> bool:
        return await self._read(openings.owes, watcher)

    async def links(self, *, watched_only: bool) -> tuple[LinkRecord, ...]:
        return await self._read(links.read, watched_only)

    async def events(self, *, address: Address | None, limit: int) -> tuple[StateEvent, ...]:
        return await self._read(reads.events, address, limit)

    async def follow(self, position: LogPosition | None, *, events_max: int, opened_max: int) -> Followed:
        return await self._read(follow.follow, position, events_max, opened_max)

    async def overview(self, *, sessions_max: int, cursors_max: int, events_max: int) -> Overview:
        return await self._read(views.overview, sessions_max, cursors_max, events_max)

    async def surroundings(self, address: Address, *, limit: int) -> Surroundings | None:
        return await self._read(views.surroundings, address, limit)

    async def statistics(self) -> StoreStatistics:
        return await self._read(reads.statistics)

    async def close(self) -> None:
        await self._say_goodbye()
        await self._notifier.close()
        await self._presence.disappear()
        lines = [self._notifying, *self._readers]
        for line in lines if self._writer is None else [*lines, self._writer]:
            await line.close()

    async def _say_goodbye(self) -> None:
        """Without it the others would wait for this gateway to come back, which does no harm."""
        if self._writer is None or not self._presence.gateway_id:
            return
        with suppress(Exception):
            async with self._writer.use(within_s=0) as connection:
                await connection.execute(_GOODBYE, self._presence.gateway_id, timeout=CLOSE_S)

    async def _read(self, read: Callable[Concatenate[Database, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a read in a transaction of its own, so that all its statements see the same state; again, if its connection was lost."""
        try:
            try:
                return await self._read_once(read, *args, **kwargs)
            except Exception as error:
                if not is_lost(error):
                    raise
            return await self._read_once(read, *args, **kwargs)
        except Exception as error:
            known = store_error(error)
            raise known if known is error else StoreError(f"cannot read: {known}") from error

    async def _read_once(self, read: Callable[Concatenate[Database, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        async with (
            next(self._next_reader).use(within_s=READ_S) as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            return await read(connection, *args, **kwargs)


@asynccontextmanager
async def open_postgres(url: str, *, synchronous: str, read_only: bool, new_session_id: Callable[[], str]) -> AsyncIterator[PostgresStore]:
    """Open the database; see `open_store`."""
    server = server_at(url, synchronous=synchronous, read_only=read_only)
    store = PostgresStore(server, read_only=read_only, new_session_id=new_session_id)
    try:
        try:
            await store.prepare()
        except Exception as error:
            known = store_error(error)
            raise StoreError(f"cannot open {without_password(url)}: {known}") from error
        yield store
    finally:
        await store.close()
