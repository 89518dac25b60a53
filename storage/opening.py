"""Opening a store by its URL."""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Literal

from .errors import StoreError
from .protocol import Store
from .sqlite.store import open_sqlite
from .urls import is_postgres


def _random_session_id() -> str:
    return str(uuid.uuid4())


@asynccontextmanager
async def open_store(
    url: str | os.PathLike[str],
    *,
    synchronous: Literal["full", "normal"] = "full",
    read_only: bool = False,
    new_session_id: Callable[[], str] = _random_session_id,
) -> AsyncIterator[Store]:
    """Open the store at `url`: a path, `sqlite:///path` or `postgresql://...`. `StoreError` if that is not possible, saying why.

    On PostgreSQL the database must be there, and the tables are made in the first schema of its search path (which the URL may set:
    `?search_path=name`). `"normal"` there survives the end of this process, but not a power cut of the server.

    A file that is not there is created, a folder that is not there is an error. `synchronous="full"` survives a power cut,
    `"normal"` a killed process only.

    With `read_only` nothing is created, migrated or written, and `commit` raises `StoreError`. It works beside a gateway,
    and on what a killed one left behind, whose last commits are read from the write-ahead log beside the file. SQLite keeps
    a shared index (`-shm`, and an empty `-wal`) there while it reads, so that in a folder in which this process may
    not create files a database can be read only while these files are there, as they are while a gateway runs.
    """
    if synchronous not in ("full", "normal"):
        raise StoreError(f"synchronous must be 'full' or 'normal', not {synchronous!r}")
    opening = _postgres if is_postgres(os.fspath(url)) else _sqlite
    async with opening(os.fspath(url), synchronous=synchronous, read_only=read_only, new_session_id=new_session_id) as store:
        yield store


def _sqlite(url: str, *, synchronous: str, read_only: bool, new_session_id: Callable[[], str]) -> AbstractAsyncContextManager[Store]:
    return open_sqlite(_sqlite_path(url), synchronous=synchronous, read_only=read_only, new_session_id=new_session_id)


def _postgres(url: str, *, synchronous: str, read_only: bool, new_session_id: Callable[[], str]) -> AbstractAsyncContextManager[Store]:
    try:
        from .postgres.store import open_postgres
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        raise StoreError("postgresql:// needs the package asyncpg: pip install 'kizuki[postgres]'") from error
    return open_postgres(url, synchronous=synchronous, read_only=read_only, new_session_id=new_session_id)


def _sqlite_path(url: str) -> Path:
    scheme, separator, rest = url.partition("://")
    if separator and (scheme != "sqlite" or not rest.startswith("/")):
        raise StoreError(f"cannot open {url!r}: use a path, sqlite:///path or postgresql://user@host/database")
    path = rest[1:] if separator else url
    if not path or path == ":memory:":
        raise StoreError(f"cannot open {url!r}: a database must be a file, since several connections share it")
    # A path out of a settings file or a variable has met no shell that would have known the home folder.
    return Path(path).expanduser() if path.startswith("~/") else Path(path)
