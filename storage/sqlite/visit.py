"""A process that comes for one transaction and goes: without a loop, a thread, or a connection that is kept.

It is no gateway: it hosts nobody and wakes nobody, and it leaves the write-ahead log to those who stay.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

from ..errors import StoreError
from ..migrate import newest_version, schema_version
from ..records import Address, PendingRead
from ..writes import Commit, Write
from . import reads
from .apply import apply
from .presence import Presence
from .transaction import Transaction, store_error, transact
from .writer_lock import WriterLock

T = TypeVar("T")

_LINKED = "SELECT EXISTS (SELECT 1 FROM links l CROSS JOIN heads h ON h.head_id = l.head_id WHERE h.session_key = ? AND h.agent_id = ?)"


class Visit:
    """What can be done inside the transaction. All of it is done when it commits, or nothing is."""

    def __init__(self, connection: sqlite3.Connection, presence: Presence) -> None:
        self._connection = connection
        self._transaction = Transaction(connection, _random_session_id, presence)

    def apply(self, *writes: Write) -> Commit:
        """Apply the writes in their order; what was opened counts from the beginning of the transaction."""
        return apply(self._transaction, writes)

    def pending(self, watcher: str, *, limit: int) -> PendingRead:
        """The watcher's opened notices, as `Store.pending` says."""
        return reads.pending(self._connection, self._transaction.presence, watcher, limit, ())

    def is_linked(self, address: Address) -> bool:
        """Whether the session is linked to a catalog's thread."""
        return bool(self._connection.execute(_LINKED, address).fetchone()[0])


class Visitor:
    """A connection for one transaction, or for a few."""

    def __init__(self, connection: sqlite3.Connection, presence: Presence, lock: WriterLock) -> None:
        self._connection = connection
        self._presence = presence
        self._lock = lock

    def transact(self, work: Callable[[Visit], T], *, busy_timeout_s: float) -> T:
        """What the work gives, once all that it did is durable. Nothing is, and `StoreError` is raised, where anything fails."""
        with self._lock.held(busy_timeout_s):
            return transact(self._connection, lambda: work(Visit(self._connection, self._presence)), busy_timeout_s)


@contextmanager
def visiting(path: Path, *, synchronous: str) -> Iterator[Visitor]:
    """Open a database that is there and has the newest schema; `StoreError` for any other, saying why."""
    lock = WriterLock(path)
    uri = f"{path.absolute().as_uri()}?mode=rw"
    try:
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
            _prepare(connection, synchronous)
            yield Visitor(connection, Presence(path), lock)
    except sqlite3.Error as error:
        raise StoreError(f"cannot open {path}: {store_error(error)}") from error
    finally:
        lock.close()


def _prepare(connection: sqlite3.Connection, synchronous: str) -> None:
    # Two processes that checkpoint at once could damage a file (SQLite before 3.51.3); the last one to close it does so alone.
    for pragma in (f"synchronous = {synchronous}", "wal_autocheckpoint = 0"):
        connection.execute(f"PRAGMA {pragma}")
    version, newest = schema_version(connection), newest_version()
    if version != newest:
        raise StoreError(f"the database has schema version {version}, {newest} is needed: open it once with a gateway")


def _random_session_id() -> str:
    from uuid import uuid4  # needed for a new session only

    return str(uuid4())
