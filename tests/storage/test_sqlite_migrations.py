"""Migrations: each applied once, whole, and with the same outcome whatever the way there."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kizuki.storage.errors import StoreError
from kizuki.storage.migrate import Migration, load_migrations, migrate, schema_version

FILES = load_migrations()
LATER = Migration(FILES[-1].version + 1, "CREATE TABLE later (x);\nINSERT INTO later VALUES (';');\nALTER TABLE later ADD COLUMN y;\n")
BROKEN = Migration(LATER.version, "CREATE TABLE later (x);\nCREATE TABLE later (x);\n")


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A database that is empty."""
    with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as opened:
        yield opened


def schema(connection: sqlite3.Connection) -> list[tuple[str, str, str]]:
    """All that is defined."""
    return connection.execute("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name").fetchall()


def test_the_files_are_numbered_without_a_gap() -> None:
    """The numbers are 1, 2, 3, ..."""
    assert [file.version for file in FILES] == list(range(1, len(FILES) + 1))


def test_an_upgraded_database_equals_a_fresh_one(connection: sqlite3.Connection, tmp_path: Path) -> None:
    """Step by step or all at once, the schema is the same."""
    for last in range(1, len(FILES) + 1):
        migrate(connection, FILES[:last])
    migrate(connection, [*FILES, LATER])
    with closing(sqlite3.connect(tmp_path / "fresh.db", isolation_level=None)) as fresh:
        migrate(fresh, [*FILES, LATER])
        assert schema(connection) == schema(fresh)
        assert schema_version(connection) == schema_version(fresh) == LATER.version


def test_each_file_is_applied_once(connection: sqlite3.Connection) -> None:
    """Migrating again changes nothing."""
    migrate(connection, [*FILES, LATER])
    migrate(connection, [*FILES, LATER])
    assert connection.execute("SELECT x, y FROM later").fetchall() == [(";", None)]


def test_a_broken_file_leaves_the_version_before_it(connection: sqlite3.Connection) -> None:
    """A migration that ends in the middle is undone whole, and the next attempt goes on from there."""
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, [*FILES, BROKEN])
    assert schema_version(connection) == FILES[-1].version
    assert not connection.in_transaction
    assert migrate(connection, [*FILES, LATER]) == LATER.version


def test_two_processes_migrate_one_database(connection: sqlite3.Connection, tmp_path: Path) -> None:
    """Who comes second finds the work done."""
    with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as second:
        assert schema_version(second) == 0
        migrate(connection, FILES)
        assert migrate(second, FILES) == FILES[-1].version


def test_a_newer_database_is_left_alone(connection: sqlite3.Connection) -> None:
    """A version above the last file is a `StoreError`."""
    migrate(connection, [*FILES, LATER])
    with pytest.raises(StoreError, match="use a newer release"):
        migrate(connection, FILES)
