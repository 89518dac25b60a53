"""The backends on which the contract of the store is tested. Another one is another entry in `BACKENDS`."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from kizuki.storage import Store, open_store
from tests.postgres import PostgresServer


class Backend:
    """Databases of one kind, and the one that is in use."""

    url: str

    _ids: Iterator[int]

    def renew(self) -> None:
        """From here on another, empty database."""
        raise NotImplementedError

    def open(self, *, read_only: bool = False) -> AbstractAsyncContextManager[Store]:
        """Open the database, again if it was opened before."""
        return open_store(self.url, read_only=read_only, new_session_id=lambda: f"session-{next(self._ids)}")


class SqliteBackend(Backend):
    """Databases that are files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files = itertools.count()
        self._ids = itertools.count()
        self.renew()

    def renew(self) -> None:
        self.url = str(self._folder / f"state{next(self._files)}.db")


class PostgresBackend(Backend):
    """Databases that are schemas of one server."""

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self.schema = server.new_schema()
        self.url = server.url(self.schema)
        self._prepare: Callable[[str], Awaitable[None]] | None = server.make
        self._ids = itertools.count()

    def renew(self) -> None:
        self._prepare = self._prepare or self.server.empty  # The tables are kept, since making them takes longer than any test.

    @asynccontextmanager
    async def open(self, *, read_only: bool = False) -> AsyncIterator[Store]:
        prepare, self._prepare = self._prepare, None
        if prepare is not None:
            await prepare(self.schema)
        async with super().open(read_only=read_only) as store:
            yield store


BACKENDS: dict[str, Callable[[pytest.FixtureRequest], Backend]] = {
    "sqlite": lambda request: SqliteBackend(request.getfixturevalue("tmp_path")),
    "postgres": lambda request: PostgresBackend(request.getfixturevalue("postgres")),
}


@pytest.fixture(params=list(BACKENDS))
def backend(request: pytest.FixtureRequest) -> Backend:
    """Where the test's databases are."""
    return BACKENDS[request.param](request)


@pytest_asyncio.fixture
async def store(backend: Backend) -> AsyncIterator[Store]:
    """An open store on an empty database."""
    async with backend.open() as opened:
        yield opened
