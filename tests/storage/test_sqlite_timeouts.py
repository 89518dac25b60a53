"""How long a connection waits for another's locks, and how seldom that is set."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from kizuki.storage.sqlite.transaction import BusyTimeout


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    """Some connection."""
    with closing(sqlite3.connect(":memory:")) as opened:
        yield opened


def set_ms(connection: sqlite3.Connection) -> int:
    """For how long the connection would wait."""
    found: int = connection.execute("PRAGMA busy_timeout").fetchone()[0]
    return found


@pytest.mark.parametrize("timeouts_s", [(5.0, 4.999, 5.0), (0.0, 5.0, 0.0), (5.0, 4.6, 4.4, 0.001, 0.0), (-1.0, 0.01, 5.0)])
def test_nobody_waits_for_longer_than_asked(connection: sqlite3.Connection, timeouts_s: tuple[float, ...]) -> None:
    """Rule 1.9: whatever was set before, the wait is never longer than asked, and a tenth less at most."""
    timeout = BusyTimeout()
    for asked_s in timeouts_s:
        timeout.set(connection, asked_s)
        asked_ms = max(0, asked_s * 1000)
        assert 0.9 * asked_ms <= set_ms(connection) <= asked_ms


def test_what_will_do_stays(connection: sqlite3.Connection) -> None:
    """A wait that is a little shorter than asked costs no statement."""
    timeout = BusyTimeout()
    timeout.set(connection, 4.9)
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    for asked_s in (4.9, 5.0, 4.95):
        timeout.set(connection, asked_s)
    assert statements == []
