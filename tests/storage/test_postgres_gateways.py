"""Gateways on PostgreSQL: who is alive while connections come and go, and word between them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from kizuki.storage import Store, open_store
from kizuki.storage.records import Address, Hint, Opened
from kizuki.storage.writes import PutSession, TakeHints
from tests.postgres import PostgresServer
from tests.storage.writing import CHILD, DRAFT, MAIN, NOW, OTHER, SECOND, commit, event, watch

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


async def waiting(postgres: PostgresServer, count: int = 1) -> None:
    """Until so many transactions wait for a lock."""
    async with asyncio.timeout(WAIT_S):
        while await postgres.value("SELECT count(*) FROM pg_locks WHERE NOT granted") < count:  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0)


def cursor_on(schema: str, target: Address) -> str:
    """The statement that locks the cursors on a target."""
    head = f"SELECT head_id FROM {schema}.heads WHERE session_key = '{target.session_key}'"
    return f"SELECT 1 FROM {schema}.cursors WHERE target_id = ({head}) FOR UPDATE"


async def test_the_host_changes_under_an_opening(here: Store, there: Store, postgres: PostgresServer, schema: str) -> None:
    """Rule 8.2: an opening that is committed after another gateway has become the host, but began before, is told there."""
    await commit(here, watch(), PutSession(MAIN, DRAFT, NOW, hosts=True))
    async with postgres.holding(cursor_on(schema, CHILD)):
        opening = asyncio.create_task(here.commit([event()], busy_timeout_s=WAIT_S))
        await waiting(postgres)
        assert (await commit(there, PutSession(MAIN, DRAFT, NOW, hosts=True))).opened == ()
    assert (await opening).opened == ()
    assert (await commit(there, TakeHints(NOW))).results == ((Hint(MAIN.session_key, CHILD, 0),),)


async def test_an_opening_under_a_change_of_host(here: Store, there: Store, postgres: PostgresServer, schema: str) -> None:
    """Rule 8.2: an opening that was committed while another gateway was becoming the host is told by the change of host."""
    await commit(here, watch(), watch(OTHER, SECOND), PutSession(MAIN, DRAFT, NOW, hosts=True))
    async with postgres.holding(cursor_on(schema, SECOND)):
        moving = asyncio.create_task(there.commit([PutSession(MAIN, DRAFT, NOW, hosts=True), event(SECOND)], busy_timeout_s=WAIT_S))
        await waiting(postgres)
        assert (await commit(here, event())).opened == (Opened(MAIN.session_key, CHILD),)
    assert set((await moving).opened) == {Opened(MAIN.session_key, CHILD), Opened(OTHER.session_key, SECOND)}
