"""Gateways on PostgreSQL: who is alive while connections come and go, and word between them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from kizuki.storage import Store, open_store
from kizuki.storage.records import Hint
from kizuki.storage.writes import PutSession, TakeHints
from tests.postgres import PostgresServer
from tests.storage.writing import CHILD, DRAFT, MAIN, NOW, commit, event, watch

presence = pytest.importorskip("kizuki.storage.postgres.presence", reason="asyncpg is not installed", exc_type=ModuleNotFoundError)

WAIT_S = 20.0


@pytest_asyncio.fixture
async def here(postgres: PostgresServer, schema: str) -> AsyncIterator[Store]:
    """A registered store."""
    async with open_store(postgres.url(schema)) as store:
        await store.register(now_ms=NOW, busy_timeout_s=5)
        yield store


@pytest_asyncio.fixture
async def there(here: Store, postgres: PostgresServer, schema: str) -> AsyncIterator[Store]:
    """Another one on the same database, registered later."""
    async with open_store(postgres.url(schema)) as store:
        await store.register(now_ms=NOW, busy_timeout_s=5)
        yield store


async def told(store: Store) -> None:
    """Wait until the store says that something has changed."""
    async with asyncio.timeout(WAIT_S):
        while not await store.changed():  # noqa: ASYNC110 - it is asked, as its user asks it
            await asyncio.sleep(0)


async def test_cut_and_back(here: Store, there: Store, postgres: PostgresServer, schema: str) -> None:
    """A gateway whose connections were all cut comes back under its number, and nobody takes it for dead meanwhile."""
    for _ in range(3):
        await postgres.cut(schema)
        seen = await here.neighbours()
        assert (seen.registered, seen.living, seen.dead) == (True, (2,), ())


async def test_gone_without_a_word(here: Store, postgres: PostgresServer, schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway that holds no lock and has not said goodbye is dead when it does not come back, and has longer after a server's start."""
    monkeypatch.setattr(presence, "RECONNECT_S", 0.0)
    await postgres.execute(f"INSERT INTO {schema}.gateways DEFAULT VALUES")
    monkeypatch.setattr(presence, "SERVER_START_S", 1e9)
    assert (await here.neighbours()).living == (2,)
    monkeypatch.setattr(presence, "SERVER_START_S", 0.0)
    assert (await here.neighbours()).dead == (2,)


async def test_word_comes_at_once(here: Store, there: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hint is told by a NOTIFY, without waiting for the next look."""
    await commit(here, watch(), PutSession(MAIN, DRAFT, NOW, hosts=True))
    monkeypatch.setattr(presence, "SIGN_OF_LIFE_S", 1e9)
    while await here.changed():
        pass
    await commit(there, event())
    await told(here)
    assert (await commit(here, TakeHints(NOW))).results == ((Hint(MAIN.session_key, CHILD, 0),),)


async def test_word_may_have_been_missed(here: Store, postgres: PostgresServer, schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a cut the store says that something may have changed."""
    monkeypatch.setattr(presence, "SIGN_OF_LIFE_S", 1e9)
    while await here.changed():
        pass
    await postgres.cut(schema)
    await told(here)
