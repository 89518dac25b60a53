"""Gateways with something to tell: the main session watches its child."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from kizuki.actors import Gateway, open_gateway
from tests.hosting.cast import CHILD, MAIN


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Where the database is."""
    return tmp_path / "state.db"


@pytest_asyncio.fixture
async def recorder(state: Path) -> AsyncIterator[Gateway]:
    """Where people are heard: another gateway than the server's, and another process than a server process."""
    async with open_gateway(state) as gateway:
        await gateway.open_session(MAIN)
        await gateway.spawn(MAIN, CHILD, run_id="r1")
        yield gateway


@pytest_asyncio.fixture
async def gateway(state: Path, recorder: Gateway) -> AsyncIterator[Gateway]:
    """The server's own gateway on the same database."""
    async with open_gateway(state) as gateway:
        await gateway.open_session(MAIN)
        yield gateway
