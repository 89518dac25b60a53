"""Numbered migrations: each file is applied once, in one transaction, together with the version that it leads to.

The version is SQLite's `user_version`, which lives in the file's header and is rolled back with everything else; the
`application_id` beside it tells our databases from other people's.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from .errors import StoreError

APPLICATION_ID = 0x6B697A75
"""`kizu` in ASCII."""


class Migration(NamedTuple):
    """One numbered file."""

    version: int
    sql: str


def load_migrations(backend: str = "sqlite") -> tuple[Migration, ...]:
    """The files of a backend in the order of their numbers."""
    return tuple(sorted(Migration(_number(file), file.read_text("utf-8")) for file in _files(backend)))


def newest_version(backend: str = "sqlite") -> int:
    """The version that the last migration leads to, without reading any."""
    return max(map(_number, _files(backend)))


def _files(backend: str) -> Iterator[Path]:
    return (Path(__file__).parent / "migrations" / backend).glob("*.sql")


def _number(file: Path) -> int:
    return int(file.name[:4])


def schema_version(connection: sqlite3.Connection) -> int:
    """The version that a database is at; 0 for an empty one. `StoreError` for a database that is not ours."""
    version = _pragma(connection, "user_version")
    if _pragma(connection, "application_id") == APPLICATION_ID:
        return version
    if version or connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
        raise StoreError("this is an SQLite database, but not one of kizuki's")
    return 0


def check_version(version: int, newest: int) -> None:
    """`StoreError` for a database that a newer release has written."""
    if version > newest:
        raise StoreError(f"the database has schema version {version}, this release knows versions up to {newest}: use a newer release")


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration]) -> int:
    """Bring a database up to the last of the migrations, and give its version. A crash leaves the version reached before."""
    newest = migrations[-1].version
    check_version(schema_version(connection), newest)
    for migration in migrations:
        _apply(connection, migration)
    return newest


def _apply(connection: sqlite3.Connection, migration: Migration) -> None:
    if schema_version(connection) >= migration.version:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        _apply_in_transaction(connection, migration)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _apply_in_transaction(connection: sqlite3.Connection, migration: Migration) -> None:
    if schema_version(connection) >= migration.version:  # another process was faster
        return
    for statement in _statements(migration.sql):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {migration.version}")


def _statements(sql: str) -> Iterator[str]:
    """Statement by statement, since `executescript` would commit first."""
    pending = ""
    for line in sql.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    value: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return value
