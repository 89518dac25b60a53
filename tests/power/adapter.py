"""A connection of apsw with as much of the surface of `sqlite3.Connection` as the store's SQL uses."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import apsw

from kizuki.storage.sqlite.files import CACHED_STATEMENTS

Values = Sequence[Any] | Mapping[str, Any]


class Rows:
    """What a statement gave, all of it."""

    def __init__(self, rows: list[tuple[Any, ...]], rowcount: int) -> None:
        self._rows = iter(rows)
        self.rowcount = rowcount

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self._rows

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row."""
        return next(self._rows, None)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows that are left."""
        return list(self._rows)


class Adapter:
    """The connection."""

    def __init__(self, path: Path, vfs: str) -> None:
        self._connection = apsw.Connection(str(path), vfs=vfs, statementcachesize=CACHED_STATEMENTS)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._connection.in_transaction

    def execute(self, sql: str, values: Values = ()) -> Rows:
        """Run one statement to its end."""
        rows = self._connection.execute(sql, cast(Any, values)).fetchall()
        return Rows(rows, self._connection.changes())

    def executemany(self, sql: str, many: Iterable[Values]) -> Rows:
        """Run one statement with each of the values."""
        for values in many:
            self.execute(sql, values)
        return Rows([], -1)

    def close(self) -> None:
        """Close it, which checkpoints."""
        self._connection.close()


_MOVED = "last_sequence, recorded_at, event_count, latest_actor, latest_sequence, other_actor, other_sequence"


class HeadsApart(Adapter):
    """A store with a fault: what events move in their heads is committed in a second transaction, as if one were as good as the other."""

    def __init__(self, path: Path, vfs: str) -> None:
        super().__init__(path, vfs)
        self._before: list[tuple[Any, ...]] = []

    def execute(self, sql: str, values: Values = ()) -> Rows:
        """Run it, with another commit where it is one."""
        if sql == "COMMIT":
            self._commit_twice()
            return Rows([], -1)
        rows = super().execute(sql, values)
        if sql.startswith("BEGIN"):
            self._before = self._heads()
        return rows

    def _commit_twice(self) -> None:
        after = self._heads()
        self._put(self._before)
        super().execute("COMMIT")
        super().execute("BEGIN IMMEDIATE")
        self._put(after)
        super().execute("COMMIT")

    def _heads(self) -> list[tuple[Any, ...]]:
        known = super().execute("SELECT 1 FROM sqlite_schema WHERE name = 'heads'").fetchone()
        return super().execute(f"SELECT {_MOVED}, head_id FROM heads").fetchall() if known else []

    def _put(self, heads: list[tuple[Any, ...]]) -> None:
        for head in heads:
            super().execute(f"UPDATE heads SET ({_MOVED}) = (?, ?, ?, ?, ?, ?, ?) WHERE head_id = ?", head)


def as_sqlite3(adapter: Adapter) -> sqlite3.Connection:
    """The adapter under the type that the store's functions name."""
    return cast(sqlite3.Connection, adapter)
