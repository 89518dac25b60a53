"""Opening databases on a PostgreSQL server."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import AsyncExitStack

import pytest

from kizuki.storage import StoreError, open_store
from tests.postgres import PostgresServer
from tests.storage.writing import commit, event, record, sequences


async def test_openings_at_once(postgres: PostgresServer, schema: str) -> None:
    """Several gateways may find the same empty database: one makes the tables."""
    async with AsyncExitStack() as stack:
        stores = await asyncio.gather(*(stack.enter_async_context(open_store(postgres.url(schema))) for _ in range(4)))
        for number, store in enumerate(stores, 1):
            assert await record(store, event()) == [number]


async def test_read_only_creates_nothing(postgres: PostgresServer, schema: str) -> None:
    """Rule 8.4: opened for reading, an empty database stays empty, and the opening says why it fails."""
    with pytest.raises(StoreError, match="holds nothing of kizuki's"):
        async with open_store(postgres.url(schema), read_only=True):
            pass
    async with open_store(postgres.url(schema)) as store:
        await commit(store, event())
    async with open_store(postgres.url(schema), read_only=True) as reader:
        assert await sequences(reader) == [1]


async def test_a_newer_release_was_here(postgres: PostgresServer, schema: str) -> None:
    """A database that a newer release has written is neither read nor written."""
    async with open_store(postgres.url(schema)):
        pass
    await postgres.execute(f"UPDATE {schema}.kizuki_schema SET version = 99")
    for read_only in (False, True):
        with pytest.raises(StoreError, match="use a newer release"):
            async with open_store(postgres.url(schema), read_only=read_only):
                pass


async def test_somebody_elses_tables(postgres: PostgresServer, schema: str) -> None:
    """Where another application has a table of a name that is needed, nothing is changed."""
    await postgres.execute(f"CREATE TABLE {schema}.heads (name text)")
    with pytest.raises(StoreError, match="another application's"):
        async with open_store(postgres.url(schema)):
            pass
    with pytest.raises(StoreError, match="holds nothing of kizuki's"):
        async with open_store(postgres.url(schema), read_only=True):
            pass


@pytest.mark.usefixtures("postgres")
async def test_no_password_is_told() -> None:
    """The error of an opening names the server, and not the password."""
    with pytest.raises(StoreError, match=r"postgresql://kizuki@127\.0\.0\.1:1/there") as caught:
        async with open_store("postgresql://kizuki:secret@127.0.0.1:1/there"):
            pass
    assert "secret" not in str(caught.value)


def test_without_asyncpg() -> None:
    """Where the extra is not installed, opening a server's database says what to install."""
    program = (
        "import asyncio, sys\n"
        "sys.modules['asyncpg'] = None\n"
        "from kizuki.storage import open_store\n"
        "asyncio.run(open_store('postgresql://host/x').__aenter__())\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60)
    assert ended.returncode != 0
    assert "pip install 'kizuki[postgres]'" in ended.stderr


@pytest.mark.usefixtures("postgres")
async def test_a_broken_url() -> None:
    """A URL that cannot be read is a `StoreError`, too."""
    with pytest.raises(StoreError, match="broken"):
        async with open_store("postgresql://host:port/x"):
            pass
