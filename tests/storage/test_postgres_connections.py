"""Connections to PostgreSQL that are cut, at the worst moments, and what the store makes of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import pytest_asyncio

from kizuki.storage import CommitUnknownError, Store, StoreBusyError, StoreError, open_store
from kizuki.storage.writes import PutSession
from tests.postgres import PostgresServer
from tests.storage.writing import CHILD, DRAFT, MAIN, NOW, OTHER, SECOND, commit, event, positions, record, sequences, watch


@pytest_asyncio.fixture
async def store(postgres: PostgresServer, schema: str) -> AsyncIterator[Store]:
    """A registered store, all of whose connections can be found by their locks."""
    async with open_store(postgres.url(schema)) as opened:
        await opened.register(now_ms=NOW, busy_timeout_s=5)
        yield opened


async def patient(store: Store, *appends: object) -> None:
    """Commit, with time for a connection to be made anew."""
    await store.commit(appends, busy_timeout_s=30)  # type: ignore[arg-type]


async def test_after_a_cut(store: Store, postgres: PostgresServer, schema: str) -> None:
    """Reads and commits work again after every connection was cut, and find all that was committed before."""
    await record(store, event())
    for number in range(2, 5):
        await postgres.cut(schema)
        await patient(store, event())
        assert await sequences(store) == list(range(1, number + 1))


async def test_cut_while_committing(store: Store, postgres: PostgresServer, schema: str) -> None:
    """Whatever a transaction was about when it was cut, it is there whole or not at all, and what `commit` returned is there once."""

    async def cut_later(turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        await postgres.cut(schema)

    for turns in range(15):
        await asyncio.gather(cut_later(turns), patient(store, *[event()] * 3, event(SECOND)))
    assert (len(await sequences(store)), len(await sequences(store, SECOND))) == (45, 15)


async def test_a_lock_is_waited_for(store: Store, postgres: PostgresServer, schema: str) -> None:
    """Another gateway's lock is waited for as long as is allowed, and then is a `StoreBusyError` that leaves nothing behind."""
    await record(store, event())
    async with postgres.holding(f"SELECT 1 FROM {schema}.heads FOR UPDATE"):
        with pytest.raises(StoreBusyError):
            await store.commit([event(), event(SECOND)], busy_timeout_s=0.05)
    assert await sequences(store) == [1]
    assert not await store.session_exists(SECOND.session_key)


class Proxy:
    """Stands between a store and the server, and can cut the way at a commit."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._writers: set[asyncio.StreamWriter] = set()
        self.cut_at_commit: str | None = None
        """`before` the server hears of it, or `after` it has answered; once."""
        self.closes_then = False
        self.is_open = True

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        if not self.is_open:
            writer.close()
            return
        above, up = await self._upstream()
        self._writers |= {writer, up}
        tasks = [asyncio.create_task(self._forward(reader, up, writer)), asyncio.create_task(self._back(above, writer))]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for closing in (writer, up):
            closing.close()
        await asyncio.wait(tasks)
        self._writers -= {writer, up}

    def close(self) -> None:
        """Cut all."""
        for writer in self._writers:
            writer.close()

    async def _upstream(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        parts = urlsplit(self._server.dsn)
        socket = parse_qs(parts.query).get("host")
        if socket:
            return await asyncio.open_unix_connection(f"{socket[0]}/.s.PGSQL.{parts.port or 5432}")
        return await asyncio.open_connection(parts.hostname, parts.port or 5432)

    async def _forward(self, reader: asyncio.StreamReader, up: asyncio.StreamWriter, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            if b"COMMIT" in data and self.cut_at_commit is not None:
                when, self.cut_at_commit = self.cut_at_commit, None
                self.is_open = not self.closes_then
                if when == "before":
                    return
                writer.transport.abort()  # The answer finds nobody.
            up.write(data)
            await up.drain()

    async def _back(self, above: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await above.read(1 << 16):
            writer.write(data)


@asynccontextmanager
async def proxy_to(server: PostgresServer, folder: Path) -> AsyncIterator[Proxy]:
    """A proxy that listens in the folder."""
    proxy = Proxy(server)
    listener = await asyncio.start_unix_server(proxy.serve, folder / ".s.PGSQL.5432")
    async with listener:
        yield proxy
        proxy.close()


@pytest_asyncio.fixture
async def proxied(postgres: PostgresServer, schema: str, tmp_path: Path) -> AsyncIterator[tuple[Store, Proxy]]:
    """A store that has recorded one event through a proxy."""
    parts = urlsplit(postgres.dsn)
    user = parts.netloc.rpartition("@")[0]
    async with proxy_to(postgres, tmp_path) as proxy:
        async with open_store(f"postgresql://{user}@{parts.path}?host={tmp_path}&search_path={schema}") as store:
            await commit(store, watch(), event())
            yield store, proxy
        await asyncio.sleep(0)


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_commit_whose_answer_is_lost_is_looked_up(proxied: tuple[Store, Proxy], when: str) -> None:
    """If it was committed that is its result, and if not it is done again: either way it is there exactly once."""
    store, proxy = proxied
    proxy.cut_at_commit = when
    await patient(store, event(), event(SECOND))
    assert (len(await sequences(store)), len(await sequences(store, SECOND))) == (2, 1)
    assert [cursor.watcher for cursor in await store.cursors(None)] == [MAIN.session_key]


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_commit_of_which_nothing_can_be_learnt(proxied: tuple[Store, Proxy], when: str) -> None:
    """With the server out of reach it is a `CommitUnknownError`, never a guess; looked at later it is whole or not there."""
    store, proxy = proxied
    proxy.cut_at_commit, proxy.closes_then = when, True
    with pytest.raises(CommitUnknownError):
        await store.commit([event(), event(SECOND)], busy_timeout_s=0.1)
    proxy.is_open = True
    there = when == "after"
    assert len(await sequences(store, SECOND)) == int(there)
    assert len(await sequences(store)) == 1 + there
    await patient(store, event())


async def test_out_of_reach(proxied: tuple[Store, Proxy]) -> None:
    """A server that is away is a `StoreError` that says so, from reads and commits, after the time that was allowed."""
    store, proxy = proxied
    proxy.is_open = False
    proxy.close()
    with pytest.raises(StoreError, match="cannot be reached"):
        await store.commit([event()], busy_timeout_s=0.1)
    proxy.is_open = True
    await patient(store, event())
    assert await positions(store) is not None


async def test_batches_in_any_order(postgres: PostgresServer, schema: str) -> None:
    """Two gateways that write to the same sessions in opposite orders never wait for each other: heads are locked in the order of keys."""
    addresses = (CHILD, SECOND, MAIN, OTHER)
    async with open_store(postgres.url(schema)) as one, open_store(postgres.url(schema)) as two:
        await asyncio.gather(
            *(patient(one, *map(event, addresses), PutSession(CHILD, DRAFT, NOW)) for _ in range(20)),
            *(patient(two, PutSession(OTHER, DRAFT, NOW), *map(event, reversed(addresses))) for _ in range(20)),
        )
        for address in addresses:
            assert len(await sequences(one, address)) == 40


async def test_restarted(store: Store, postgres: PostgresServer) -> None:
    """Commits and reads wait for a server that is restarted."""
    if postgres.own is None:
        pytest.skip("fixtures: a server that is not ours is not restarted")
    await record(store, event())
    restarting = asyncio.create_task(asyncio.to_thread(postgres.restart))
    while not restarting.done():
        await patient(store, event())
    await restarting
    await patient(store, event())
    got = await sequences(store)
    assert got == sorted(set(got))
    assert len(got) >= 3
