"""What the tests of the agent SDKs' adapters share: a person who speaks to a child, and a database that answers nobody."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from kizuki.actors import Gateway
from tests.hosting.cast import CHILD, MAIN

LINE = (
    f'Session "{CHILD}" was changed by another actor. Reconcile before acting: session_status sessionKey "{CHILD}" changesSince {{since}}.'
)


async def spoken_to(gateway: Gateway) -> str:
    """The manager has a child, and a person has spoken to it; the line that the manager is to be shown."""
    await gateway.open_session(MAIN)
    spawned = await gateway.spawn(MAIN, CHILD, run_id="r0")
    assert spawned is not None
    await gateway.human_message(CHILD, channel="telegram")
    return LINE.format(since=spawned.sequence)


async def returned(gateway: Gateway) -> int:
    """How many notices went back."""
    return (await gateway.statistics()).notices_returned


@contextmanager
def locked(database: Path) -> Iterator[None]:
    """Another process writes and does not end: whatever needs the database's lock waits."""
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            other.execute("ROLLBACK")
