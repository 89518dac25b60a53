"""The database file of simulated worlds, and the connections to it.

It is a real file with SQLite's real write-ahead log, where possible in memory (`/dev/shm`), with `synchronous=off`: what a simulated crash
kills is a process, and what it had handed to the operating system survives it. Power cuts are another matter, and tested elsewhere.

A world after the other takes the same file: it is emptied in between, and connections are kept with the statements that they have prepared, which
takes far longer than a short history. To a gateway a kept connection is like a new one: it is in no transaction, and everything that a store knows
of earlier commits is the store's.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from ...storage.sqlite.files import open_for_reading, open_for_writing
from ...storage.sqlite.transaction import roll_back

MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a file system in memory; the folder inside it is private


class Connections(NamedTuple):
    """What one gateway has open."""

    writer: sqlite3.Connection
    reader: sqlite3.Connection


class Disk:
    """One database file. `with Disk() as disk:` removes it at the end; with `path` it is a file of yours, and stays."""

    def __init__(self, path: Path | None = None) -> None:
        self._folder = None if path is not None else Path(tempfile.mkdtemp(prefix="kizuki-", dir=MEMORY if MEMORY.is_dir() else None))
        self.path = path if path is not None else self._made_folder / "state.db"
        self._kept: list[Connections] = []
        self._look: sqlite3.Connection | None = None
        self._tables: tuple[str, ...] = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def connect(self) -> Connections:
        """Open the database as a gateway does; raises `StoreError`."""
        if self._kept:
            return self._kept.pop()
        writer = open_for_writing(self.path, "off")
        return Connections(writer, open_for_reading(self.path))

    def disconnect(self, connections: Connections) -> None:
        """Take back what a gateway had open, however it ended: a transaction that was under way is gone with it."""
        for connection in connections:
            roll_back(connection)
        self._kept.append(connections)

    def look(self) -> sqlite3.Connection:
        """A read-only connection for whoever checks the world, in no gateway's name."""
        if self._look is None:
            self.disconnect(self.connect())  # there is a file now, with the newest schema
            self._look = open_for_reading(self.path)
        return self._look

    def clear(self) -> None:
        """Empty the database, for the next world."""
        connections = self.connect()
        connection = connections.writer
        connection.execute("BEGIN IMMEDIATE")
        for table in self._all_tables(connection):
            connection.execute(f"DELETE FROM {table}")  # noqa: S608 - the schema's own names
        connection.execute("COMMIT")
        self.disconnect(connections)

    def close(self) -> None:
        """Close what is kept, and remove the file if it is not the caller's."""
        for connection in (*(part for connections in self._kept for part in connections), self._look):
            if connection is not None:
                connection.close()
        self._kept, self._look = [], None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _made_folder(self) -> Path:
        assert self._folder is not None  # noqa: S101 - for the type checker
        return self._folder

    def _all_tables(self, connection: sqlite3.Connection) -> tuple[str, ...]:
        if not self._tables:
            rows = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
            self._tables = tuple(row[0] for row in rows)
        return self._tables
