"""Numbered migrations on PostgreSQL: all that are missing in one transaction, one gateway at a time."""

from __future__ import annotations

from typing import Final

import asyncpg

from ..errors import StoreError
from ..migrate import Migration, check_version, load_migrations
from .line import Database

_LOCK = 0x6B697A75  # "kizu" in ASCII; two gateways may find the same empty database
MIGRATIONS: Final = load_migrations("postgres")
"""Read once, with the code: the loop reads no files."""
NEWEST: Final = MIGRATIONS[-1].version

_VERSION = "SELECT version FROM kizuki_schema"


async def schema_version(connection: Database) -> int:
    """The version that the database is at; 0 where nothing of ours is."""
    if await connection.fetchval("SELECT to_regclass('kizuki_schema') IS NULL"):
        return 0
    version: int = await connection.fetchval(_VERSION)
    return version


async def migrate(connection: Database) -> None:
    """Bring the database up to the newest version."""
    if await _checked(connection) == NEWEST:
        return
    # Locked before the transaction begins, or the server would answer from what it knew of the tables then.
    await connection.execute("SELECT pg_advisory_lock($1)", _LOCK)
    try:
        async with connection.transaction():
            version = await _checked(connection)
            for migration in MIGRATIONS:
                if migration.version > version:
                    await _apply(connection, migration)
    finally:
        await connection.execute("SELECT pg_advisory_unlock($1)", _LOCK)


async def require_newest(connection: Database) -> None:
    """`StoreError` unless the database can be read as it is."""
    version = await _checked(connection)
    if not version:
        raise StoreError("there is no such database: it holds nothing of kizuki's")
    if version < NEWEST:
        raise StoreError(f"the database has schema version {version}, {NEWEST} is needed: open it once for writing")


async def _checked(connection: Database) -> int:
    version = await schema_version(connection)
    check_version(version, NEWEST)
    return version


async def _apply(connection: Database, migration: Migration) -> None:
    try:
        await connection.execute(migration.sql)
    except (asyncpg.DuplicateTableError, asyncpg.DuplicateObjectError) as error:
        raise StoreError(f"another application's tables are in the way: {error}") from error
    await connection.execute("UPDATE kizuki_schema SET version = $1", migration.version)
