"""Real processes on one PostgreSQL database, whose connections are cut and whose server is restarted meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.postgres import PostgresServer
from tests.processes.several import Fleet, several


def test_four_processes(postgres: PostgresServer, schema: str, tmp_path: Path) -> None:
    """Rules 8.1 to 8.3: nobody skips an event, every change is seen, no notice is in two turns or returns, though processes are killed."""
    figures = several(postgres.url(schema), tmp_path, events=200, seed=2, disturbances=2)
    assert figures.problems == ()
    assert figures.kills == 2
    assert figures.events >= 200
    assert figures.shown_by_several > 0


def test_connections_are_cut(postgres: PostgresServer, schema: str, tmp_path: Path) -> None:
    """Rules 8.1 to 8.3: the same while all connections that hold locks are cut, of all processes at once."""

    def cut(_fleet: Fleet) -> None:
        asyncio.run(postgres.cut(schema))

    figures = several(postgres.url(schema), tmp_path, events=200, seed=2, disturbances=4, disturb=cut)
    assert figures.problems == ()
    assert figures.events >= 200


def test_the_server_restarts(postgres: PostgresServer, schema: str, tmp_path: Path) -> None:
    """Rules 8.1 to 8.3: the same while the server is stopped and started again."""
    if postgres.own is None:
        pytest.skip("fixtures: a server that is not ours is not restarted")

    def restart(_fleet: Fleet) -> None:
        postgres.restart()

    figures = several(postgres.url(schema), tmp_path, events=200, seed=3, disturbances=2, disturb=restart)
    assert figures.problems == ()
    assert figures.events >= 200
