"""The database of simulated worlds, and the connections to it.

By default it is SQLite's own database in memory (its `memdb` file system), which several connections of one process share like a file:
what a simulated crash kills is a process, and what that had handed to the operating system survives it. So nothing is lost by it but the
write-ahead log, and a commit costs a fifth. With a path it is a file as a gateway has it, with its log, and without `fsync`. Power cuts
are another matter, and tested elsewhere.

A world after the other takes the same database: it is emptied in between, and connections are kept with the statements that they have
prepared, which takes longer than a short history. To a gateway a kept connection is like a new one: it is in no transaction, and
everything that a store knows of earlier commits is the store's.
"""

from __future__ import annotations

import itertools
import os
import sqlite3
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from ...storage.migrate import load_migrations, migrate
from ...storage.sqlite.files import CACHED_STATEMENTS, open_for_reading, open_for_writing
from ...storage.sqlite.transaction import roll_back

_numbers = itertools.count(1)


class Connections(NamedTuple):
    """What one gateway has open."""

    writer: sqlite3.Connection
    reader: sqlite3.Connection


class Disk:
    """One database for worlds that follow one another; `with` closes it. A file at `path` stays. Raises `StoreError`."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._memory = f"file:/kizuki-{os.getpid()}-{next(_numbers)}?vfs=memdb"
        self._kept = [self._open()]
        # It stays open: a database in memory goes with its last connection.
        self.look = self._connect_to_memory("ro") if path is None else open_for_reading(path)
        """A read-only connection for whoever checks the world, in no gateway's name."""
        self._tables = [row[0] for row in self.look.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def connect(self) -> Connections:
        """Open the database, as a gateway that starts does."""
        return self._kept.pop() if self._kept else self._open()

    def disconnect(self, connections: Connections) -> None:
        """Take back what a gateway had open, however it ended: a transaction that was under way is gone with it."""
        for connection in connections:
            roll_back(connection)
        self._kept.append(connections)

    def clear(self) -> None:
        """Empty the database, for the next world."""
        connections = self.connect()
        connections.writer.execute("BEGIN IMMEDIATE")
        for table in self._tables:
            connections.writer.execute(f"DELETE FROM {table}")  # noqa: S608 - the schema's own names
        connections.writer.execute("COMMIT")
        self.disconnect(connections)

    def close(self) -> None:
        """Close every connection that was given back."""
        for connection in (*itertools.chain(*self._kept), self.look):
            connection.close()
        self._kept = []

    def _open(self) -> Connections:
        if self._path is not None:
            return Connections(open_for_writing(self._path, "off"), open_for_reading(self._path))
        writer = self._connect_to_memory("rwc")
        writer.execute("PRAGMA journal_mode = memory")
        migrate(writer, load_migrations())
        return Connections(writer, self._connect_to_memory("ro"))

    def _connect_to_memory(self, mode: str) -> sqlite3.Connection:
        uri = f"{self._memory}&mode={mode}"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, cached_statements=CACHED_STATEMENTS, check_same_thread=False)
        connection.execute("PRAGMA temp_store = memory")
        return connection
