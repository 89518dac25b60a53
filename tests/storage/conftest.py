"""The backends on which the contract of the store is tested. Another one is another entry in `BACKENDS`."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
import pytest_asyncio

from kizuki.storage import Store, open_store


class SqliteBackend:
    """Databases that are files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files = itertools.count()
        self._ids = itertools.count()
        self.url = ""
        self.renew()

    def renew(self) -> None:
        """From here on another, empty database."""
        self.url = str(self._folder / f"state{next(self._files)}.db")

    def open(self, *, read_only: bool = False) -> AbstractAsyncContextManager[Store]:
        """Open the database, again if it was opened before."""
        return open_store(self.url, read_only=read_only, new_session_id=lambda: f"session-{next(self._ids)}")


BACKENDS: dict[str, Callable[[Path], SqliteBackend]] = {"sqlite": SqliteBackend}


@pytest.fixture(params=list(BACKENDS))
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> SqliteBackend:
    """Where the test's databases are."""
    return BACKENDS[request.param](tmp_path)


@pytest_asyncio.fixture
async def store(backend: SqliteBackend) -> AsyncIterator[Store]:
    """An open store on an empty database."""
    async with backend.open() as opened:
        yield opened
