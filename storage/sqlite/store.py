"""`Store` on SQLite: one connection that writes and checkpoints, and connections of their own for the reads."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from ..connection import Connection
from ..errors import StoreError
from ..records import (
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
from ..runner import Runner
from ..writes import Commit, Write
from . import follow, links, openings, reads, views
from .apply import apply
from .files import open_for_reading, open_for_writing
from .gateways import neighbours, register
from .known import Known, KnownFolds
from .presence import Presence
from .transaction import OPENINGS_MAX, BusyTimeout, Transaction, roll_back, store_error, transact
from .writer_lock import WriterLock

P = ParamSpec("P")
T = TypeVar("T")

READERS = 2


class SqliteStore:
    """See `Store`."""

    openings_max: int = OPENINGS_MAX
    """How many notices a commit opens for its events; a simulation has fewer, so that some are owed in histories of few watchers."""

    def __init__(
        self,
        writer: Runner | None,
        readers: Sequence[Runner],
        presence: Presence,
        lock: WriterLock,
        new_session_id: Callable[[], str],
        resources: AsyncExitStack,
    ) -> None:
        self._writer = writer
        self._readers = cycle(readers)
        self._watching = writer or readers[0]
        self._presence = presence
        self._lock = lock
        self._data_version: int | None = None
        self._new_session_id = new_session_id
        self._resources = resources
        self._known = KnownFolds()
        self._timeout = BusyTimeout()

    async def register(self, *, now_ms: int, busy_timeout_s: float) -> int:
        return await self._write(self._register, now_ms, busy_timeout_s)

    def _register(self, connection: sqlite3.Connection, now_ms: int, busy_timeout_s: float) -> int:
        self._known = KnownFolds()  # Who the others are depends on who this is.
        try:
            with self._lock.held(busy_timeout_s):
                return transact(connection, partial(register, connection, self._presence, now_ms), busy_timeout_s, self._timeout)
        except StoreError:
            self._presence.give_up()
            raise

    async def changed(self) -> bool:
        """On the connection that writes, whose own commits do not count; with a store that is read-only there are none."""
        try:
            version = await self._watching.run(_data_version)
        except Exception as error:
            raise StoreError(f"cannot look for changes: {error}") from error
        before, self._data_version = self._data_version, version
        return version != before

    async def neighbours(self) -> Neighbours:
        return await self._read(neighbours, self._presence)

    async def commit(self, writes: Sequence[Write], *, busy_timeout_s: float) -> Commit:
        return await self._write(self._transact, tuple(writes), busy_timeout_s)

    async def _write(self, work: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._writer is None:
            raise StoreError("the database was opened read-only")
        try:
            return await self._writer.run_whole(work, *args, **kwargs)
        except ValueError as error:
            raise StoreError("the store is closed") from error

    def _transact(self, connection: sqlite3.Connection, writes: Sequence[Write], busy_timeout_s: float) -> Commit:
        def work() -> tuple[Commit, Known]:
            known = self._known.take(connection)
            return apply(Transaction(connection, self._new_session_id, self._presence, self.openings_max), writes, known), known

        with self._lock.held(busy_timeout_s):
            commit, known = transact(connection, work, busy_timeout_s, self._timeout)
        self._known.give_back(known)
        return commit

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

    async def pending(self, watcher: str, *, limit: int | None, excluding: Collection[Shown], with_total: bool = True) -> PendingRead:
        return await self._read(reads.pending, self._presence, watcher, limit, tuple(excluding), with_total=with_total)

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
        await self._resources.aclose()

    async def _read(self, read: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a read in a transaction of its own, so that all its statements see the same state."""
        try:
            return await next(self._readers).run(_in_snapshot, read, *args, **kwargs)
        except sqlite3.Error as error:
            raise store_error(error) from error
        except Exception as error:
            raise StoreError(f"cannot read: {error}") from error


def _in_snapshot(
    connection: sqlite3.Connection, read: Callable[Concatenate[sqlite3.Connection, P], T], /, *args: P.args, **kwargs: P.kwargs
) -> T:
    roll_back(connection)  # in case an earlier rollback failed: it would show the state of then for ever
    connection.execute("BEGIN")
    try:
        return read(connection, *args, **kwargs)
    finally:
        roll_back(connection)


def _give_up(_connection: sqlite3.Connection, presence: Presence, lock: WriterLock) -> None:
    presence.give_up()
    lock.close()


def _data_version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA data_version").fetchone()[0]
    return version


@asynccontextmanager
async def open_sqlite(path: Path, *, synchronous: str, read_only: bool, new_session_id: Callable[[], str]) -> AsyncIterator[SqliteStore]:
    """Open the database; see `open_store`."""
    async with AsyncExitStack() as resources:
        presence, lock = Presence(path), WriterLock(path)
        writer = None if read_only else await _enter(resources, partial(open_for_writing, path, synchronous))
        if writer is not None:
            resources.push_async_callback(writer.run, _give_up, presence, lock)
        readers = [await _enter(resources, partial(open_for_reading, path)) for _ in range(READERS)]
        yield SqliteStore(writer, readers, presence, lock, new_session_id, resources)


async def _enter(resources: AsyncExitStack, connector: Callable[[], sqlite3.Connection]) -> Connection:
    return await resources.enter_async_context(Connection(connector))
