"""The command line on a PostgreSQL database."""

from __future__ import annotations

import asyncio

import pytest

from kizuki.actors import open_gateway
from kizuki.storage.urls import without_password
from tests.hosting.cast import CHILD, MAIN
from tests.hosting.conftest import Kizuki, fill
from tests.postgres import PostgresServer


@pytest.fixture
def url(postgres: PostgresServer, schema: str) -> str:
    """A database in which things have happened, left by a gateway that is gone."""
    there = postgres.url(schema)

    async def make() -> None:
        async with open_gateway(there) as gateway:
            await fill(gateway)

    asyncio.run(make())
    return there


def test_reading_commands(kizuki: Kizuki, url: str) -> None:
    """Rule 8.4: every reading command takes the address of a server, and changes nothing there."""
    before = kizuki("doctor", "--json", "--db", url).document["counts"]
    status = kizuki("status", CHILD, "--since", 1, "--json", "--db", url)
    assert (status.code, [event["sequence"] for event in status.document["stateChanges"]["events"]]) == (0, [2, 3, 4])
    assert kizuki("status", "agent:main:nobody", "--db", url).code == 3
    for command in (("list",), ("events",), ("events", CHILD), ("watches", MAIN), ("notices", MAIN)):
        ended = kizuki(*command, "--json", "--db", url)
        assert (ended.code, bool(ended.out)) == (0, True)
    assert kizuki("doctor", "--json", "--db", url).document["counts"] == before


def test_prune(kizuki: Kizuki, url: str) -> None:
    """`prune` does there what it does in a file."""
    pruned = kizuki("prune", "--rows", 1, "--json", "--db", url)
    assert (pruned.code, pruned.document["removed"] > 0) == (0, True)
    assert kizuki("doctor", "--json", "--db", url).document["counts"]["events"] == 1


def test_no_database(kizuki: Kizuki, postgres: PostgresServer, schema: str) -> None:
    """An empty database is an error that is told, for every reading command."""
    ended = kizuki("list", "--db", postgres.url(schema))
    assert ended.code == 1
    assert "holds nothing of kizuki's" in ended.err
    assert kizuki("doctor", "--db", postgres.url(schema)).code == 1


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("state.db", "state.db"),
        ("postgresql://ada:secret@host:5433/state?sslmode=require", "postgresql://ada@host:5433/state"),
        ("postgres://host/state", "postgresql://host/state"),
    ],
)
def test_passwords_are_not_shown(url: str, shown: str) -> None:
    """What is printed of an address has no password in it."""
    assert without_password(url) == shown
