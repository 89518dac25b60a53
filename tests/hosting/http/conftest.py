"""A gateway on time that tests move, and the HTTP application over it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from kizuki.actors import Dispatched, DispatchRefused, Gateway, ManualClock, open_gateway

pytest.importorskip("starlette", reason="starlette is not installed")

from kizuki.actors.hosting.http.app import http_app
from tests.hosting.http.asking import Api, asking

NOON_MS = 1_793_620_800_000


def deliver(_sender: str, key: str, message: str) -> Dispatched:
    """A host that answers at once, and refuses what is rude."""
    if message == "rude":
        raise DispatchRefused("no")
    return Dispatched(key, "r9", "done")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOON_MS)


@pytest_asyncio.fixture
async def gateway(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Gateway]:
    async with open_gateway(tmp_path / "state.db", clock=clock, dispatch=deliver) as gateway:
        yield gateway


@pytest_asyncio.fixture
async def api(gateway: Gateway, clock: ManualClock) -> AsyncIterator[Api]:
    """The application, without a token."""
    async with asking(http_app(gateway, send=True, clock=clock)) as api:
        yield api
