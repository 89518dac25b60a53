"""`Store` on SQLite: one connection that writes and checkpoints, and connections of their own for the reads."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import cycle
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from ..connection import Connection, connect
from ..errors import StoreError
from ..migrate import check_version, load_migrations, migrate, schema_version
from ..records import Address, Cursor, PendingRead, SessionsPage, StateEvent, StatusRead, StoreStatistics
from ..writes import Commit, Write
from . import reads
from .apply import apply
from .transaction import Transaction, store_error, transact

P = ParamSpec("P")
T = TypeVar("T")

READERS = 2
OPEN_TIMEOUT_S = 5.0
_COMMON_PRAGMAS = (f"busy_timeout = {round(OPEN_TIMEOUT_S * 1000)}", "cache_size = -16000", "temp_store = memory")


class SqliteStore:
    """See `Store`."""

    def __init__(
        self, writer: Connection | None, readers: Sequence[Connection], new_session_id: Callable[[], str], resources: AsyncExitStack
    ) -> None:
        self._writer = writer
        self._readers = cycle(readers)
        self._new_session_id = new_session_id
        self._resources = resources

    async def commit(self, writes: Sequence[Write], *, busy_timeout_s: float) -> Commit:
        if self._writer is None:
            raise StoreError("the database was opened read-only")
        try:
            return await self._writer.run_whole(self._transact, tuple(writes), busy_timeout_s)
        except ValueError as error:
            raise StoreError("the store is closed") from error

    def _transact(self, connection: sqlite3.Connection, writes: Sequence[Write], busy_timeout_s: float) -> Commit:
        return transact(connection, lambda: apply(Transaction(connection, self._new_session_id), writes), busy_timeout_s)

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

    async def pending(self, watcher: str, *, limit: int | None, excluding: Collection[Address]) -> PendingRead:
        return await self._read(reads.pending, watcher, limit, tuple(excluding))

    async def events(self, *, address: Address | None, limit: int) -> tuple[StateEvent, ...]:
        return await self._read(reads.events, address, limit)

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
    connection.execute("BEGIN")
    try:
        return read(connection, *args, **kwargs)
    finally:
        connection.execute("ROLLBACK")


@asynccontextmanager
async def open_sqlite(path: Path, *, synchronous: str, read_only: bool, new_session_id: Callable[[], str]) -> AsyncIterator[SqliteStore]:
    """Open the database; see `open_store`."""
    async with AsyncExitStack() as resources:
        try:
            store = await _open(path, synchronous, read_only, new_session_id, resources)
        except (sqlite3.Error, StoreError) as error:
            raise _explained(path, error, read_only) from error
        yield store


async def _open(path: Path, synchronous: str, read_only: bool, new_session_id: Callable[[], str], resources: AsyncExitStack) -> SqliteStore:
    _check_path(path, read_only)
    writer = None if read_only else await resources.enter_async_context(_writer(path, synchronous))
    if writer is not None:
        await writer.run(migrate, load_migrations())
    readers = [await resources.enter_async_context(_reader(path)) for _ in range(READERS)]
    await readers[0].run(_check_schema)
    return SqliteStore(writer, readers, new_session_id, resources)


def _writer(path: Path, synchronous: str) -> Connection:
    return connect(f"{path.as_uri()}?mode=rwc", *_COMMON_PRAGMAS, f"synchronous = {synchronous}", "journal_size_limit = 67108864")


def _reader(path: Path) -> Connection:
    return connect(f"{path.as_uri()}?mode=ro", *_COMMON_PRAGMAS, "query_only = on")


def _check_path(path: Path, read_only: bool) -> None:
    if path.is_dir():
        raise StoreError("this is a folder, not a database")
    if not path.parent.is_dir():
        raise StoreError(f"the folder {path.parent} does not exist")
    if read_only and not path.exists():
        raise StoreError("there is no such database")


def _check_schema(connection: sqlite3.Connection) -> None:
    version, newest = schema_version(connection), load_migrations()[-1].version
    check_version(version, newest)
    if version < newest:
        raise StoreError(f"the database has schema version {version}, {newest} is needed: open it once for writing")


def _explained(path: Path, error: Exception, read_only: bool) -> StoreError:
    known = error if isinstance(error, StoreError) else store_error(error)
    purpose = " for reading" if read_only else ""
    return type(known)(f"cannot open {path}{purpose}: {known}")
