"""Opening the database file. Everything here blocks, and runs on the connection's thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec

from ..errors import StoreError
from ..migrate import check_version, load_migrations, migrate, schema_version
from .transaction import store_error

P = ParamSpec("P")

CACHED_STATEMENTS = 512
"""Multi-row statements exist once per number of rows, up to 64 each."""

OPEN_TIMEOUT_MS = 5000
_PRAGMAS = (f"busy_timeout = {OPEN_TIMEOUT_MS}", "cache_size = -16000", "temp_store = memory")
_WRITING = ("journal_mode = wal", "journal_size_limit = 67108864")


def _explained(
    open_: Callable[Concatenate[Path, P], sqlite3.Connection],
) -> Callable[Concatenate[Path, P], sqlite3.Connection]:
    """Have every error say which file it was."""

    @wraps(open_)
    def explained(path: Path, /, *args: P.args, **kwargs: P.kwargs) -> sqlite3.Connection:
        try:
            return open_(path, *args, **kwargs)
        except (sqlite3.Error, StoreError) as error:
            known = error if isinstance(error, StoreError) else store_error(error)
            raise type(known)(f"cannot open {path}: {known}") from error

    return explained


@_explained
def open_for_writing(path: Path, /, synchronous: str) -> sqlite3.Connection:
    """Open the file, creating it if need be, and bring it up to the newest schema."""
    _check_place(path)
    connection = _connect(path, "rwc")
    return _prepared(connection, lambda: _prepare_for_writing(connection, synchronous))


@_explained
def open_for_reading(path: Path, /) -> sqlite3.Connection:
    """Open a file that is there and has the newest schema; nothing is ever written to it."""
    _check_place(path)
    if not path.exists():
        raise StoreError("there is no such database")
    connection = _connect(path, "ro")
    return _prepared(connection, lambda: _prepare_for_reading(connection))


def _check_place(path: Path) -> None:
    if path.is_dir():
        raise StoreError("this is a folder, not a database")
    if not path.absolute().parent.is_dir():
        raise StoreError(f"the folder {path.absolute().parent} does not exist")


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    """Transactions are begun by hand. The last owner closes a connection from another thread if its own is gone."""
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(uri, uri=True, isolation_level=None, cached_statements=CACHED_STATEMENTS, check_same_thread=False)


def _prepared(connection: sqlite3.Connection, prepare: Callable[[], None]) -> sqlite3.Connection:
    try:
        prepare()
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare_for_writing(connection: sqlite3.Connection, synchronous: str) -> None:
    _set(connection, *_PRAGMAS)
    migrations = load_migrations()
    # Neither somebody else's database nor one of a newer release is turned to write-ahead logging.
    check_version(schema_version(connection), migrations[-1].version)
    _set(connection, *_WRITING, f"synchronous = {synchronous}")
    migrate(connection, migrations)


def _prepare_for_reading(connection: sqlite3.Connection) -> None:
    _set(connection, *_PRAGMAS)
    version, newest = schema_version(connection), load_migrations()[-1].version
    check_version(version, newest)
    if version < newest:
        raise StoreError(f"the database has schema version {version}, {newest} is needed: open it once for writing")


def _set(connection: sqlite3.Connection, *pragmas: str) -> None:
    for pragma in pragmas:
        connection.execute(f"PRAGMA {pragma}")
