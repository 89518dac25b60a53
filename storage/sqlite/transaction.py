"""One transaction: all of it or nothing, and every way in which it can fail told apart."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from ..errors import CommitUnknownError, StoreBusyError, StoreError, WriteRefusedError
from ..records import Opened
from .presence import Presence

T = TypeVar("T")

_REFUSALS = (sqlite3.DataError, sqlite3.IntegrityError, sqlite3.InterfaceError, sqlite3.ProgrammingError)
"""How SQLite refuses a value; what is no `sqlite3.Error` at all (a lone surrogate, an integer too large) is refused on the way there."""

OPENINGS_MAX = 256
"""How many notices one transaction opens for its events at most, however many sessions they are on; what is beyond it is owed."""


@dataclass(slots=True)
class Transaction:
    """What the writes of one transaction share."""

    connection: sqlite3.Connection
    new_session_id: Callable[[], str]
    presence: Presence
    """Whose transaction it is."""
    openings_left: int = OPENINGS_MAX
    opened: list[Opened] = field(default_factory=list)
    recorded: int = 0
    """New events."""
    _last_head_id: int | None = None

    def next_head_id(self) -> int:
        """A head id that no row has; it is written with the head's row."""
        if self._last_head_id is None:
            self._last_head_id = self.connection.execute("SELECT coalesce(max(head_id), 0) FROM heads").fetchone()[0]
        self._last_head_id += 1
        return self._last_head_id

    def last_sequence(self) -> int:
        """The highest sequence ever given out, also if its event is gone."""
        row = self.connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'events'").fetchone()
        return row[0] if row is not None else 0


class BusyTimeout:
    """How long one connection waits for another's locks. To set it is a statement of its own, so what is set stays where it will do."""

    def __init__(self) -> None:
        self._set_ms = -1

    def set(self, connection: sqlite3.Connection, timeout_s: float) -> None:
        """Have the connection wait no longer than this, and at most a tenth less."""
        timeout_ms = max(0, round(timeout_s * 1000))
        if not 0.9 * timeout_ms <= self._set_ms <= timeout_ms:
            connection.execute(f"PRAGMA busy_timeout = {timeout_ms}")
            self._set_ms = timeout_ms


def transact(connection: sqlite3.Connection, work: Callable[[], T], busy_timeout_s: float, timeout: BusyTimeout | None = None) -> T:
    """Run `work` in a write transaction; whatever it raises comes out as a `StoreError`, with nothing applied.

    `timeout` is the connection's, where one is kept.
    """
    try:
        (timeout or BusyTimeout()).set(connection, busy_timeout_s)
        result = _begin_and_work(connection, work)
        _commit(connection)
        return result
    except StoreError:
        raise
    except Exception as error:
        raise store_error(error) from error


def _begin_and_work(connection: sqlite3.Connection, work: Callable[[], T]) -> T:
    roll_back(connection)  # in case an earlier rollback failed
    connection.execute("BEGIN IMMEDIATE")
    try:
        return work()
    except BaseException:
        roll_back(connection)
        raise


def _commit(connection: sqlite3.Connection) -> None:
    try:
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        if not connection.in_transaction:
            raise CommitUnknownError(f"the commit raised, and its outcome is unknown: {error}") from error
        roll_back(connection)
        raise


def roll_back(connection: sqlite3.Connection) -> None:
    """Leave the transaction, if the connection is in one: after grave errors SQLite has left it by itself."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def store_error(error: Exception) -> StoreError:
    """The store's error for one of the database's, or of a value that the database does not take."""
    code = getattr(error, "sqlite_errorcode", None)
    if isinstance(code, int) and code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusyError(f"the database is held by another process: {error}")
    if not isinstance(error, sqlite3.Error) or isinstance(error, _REFUSALS):
        return WriteRefusedError(f"{type(error).__name__}: {error}")
    return StoreError(f"{type(error).__name__}: {error}")
