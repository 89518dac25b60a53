"""A real SQLite whose statements fail on order. What the library does with it is untouched: only the connections are others."""

from __future__ import annotations

import functools
import sqlite3
import threading
from collections.abc import Callable
from typing import Any, Literal

import pytest

Kind = Literal["disk", "locked", "rolled_back", "committed"]
"""How a statement fails. `disk`, `locked`: it does nothing and says so. `rolled_back`: as SQLite does after grave errors, the
whole transaction is gone with it. `committed`: a COMMIT took effect, and says that it failed; another statement fails as with `disk`."""

_ERRORS = {"locked": ("database is locked", sqlite3.SQLITE_BUSY)}


class Faults:
    """Counts the statements of all connections, and fails those from the `first` on, `count` of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kind: Kind = "disk"
        self._failing = range(0)
        self.statements: list[str] = []
        """Since it was armed."""
        self.raised = 0

    def arm(self, first: int = 0, *, count: int = 1, kind: Kind = "disk") -> None:
        """Count from here; fail `count` statements from the `first` (from 1) on. 0: fail none."""
        with self._lock:
            self._kind = kind
            self._failing = range(first, first + count) if first else range(0)
            self.statements, self.raised = [], 0

    def disarm(self) -> None:
        """Fail nothing from here on."""
        with self._lock:
            self._failing = range(0)

    def run(self, connection: sqlite3.Connection, statement: str, execute: Callable[[], Any]) -> Any:
        """Execute the statement, or fail it."""
        with self._lock:
            self.statements.append(statement)
            fails = len(self.statements) in self._failing
            self.raised += fails
        if not fails:
            return execute()
        if self._kind == "committed" and statement == "COMMIT":
            execute()
        if self._kind == "rolled_back" and connection.in_transaction:
            sqlite3.Connection.execute(connection, "ROLLBACK")
        text, code = _ERRORS.get(self._kind, ("disk I/O error", sqlite3.SQLITE_IOERR))
        error = sqlite3.OperationalError(text)
        error.sqlite_errorcode = code
        raise error


class FaultyConnection(sqlite3.Connection):
    """A connection whose statements pass through the faults."""

    faults: Faults

    def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
        result: sqlite3.Cursor = self.faults.run(self, sql, functools.partial(super().execute, sql, *args))
        return result

    def executemany(self, sql: str, *args: Any) -> sqlite3.Cursor:
        result: sqlite3.Cursor = self.faults.run(self, sql, functools.partial(super().executemany, sql, *args))
        return result


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    """Every connection that is opened from here on is a faulty one, with nothing failing yet."""
    made = Faults()
    faulty = type("Faulty", (FaultyConnection,), {"faults": made})
    monkeypatch.setattr(sqlite3, "connect", functools.partial(sqlite3.connect, factory=faulty))
    return made
