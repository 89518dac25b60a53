"""A real gateway on a real file, on a clock that stands still until it is advanced."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from kizuki.actors import Gateway, ManualClock, open_gateway
from tests.system.cast import NOW

Opening = Callable[..., AbstractAsyncContextManager[Gateway]]
"""Opens a gateway on the test's database and clock; takes what `open_gateway` takes."""


@pytest.fixture
def clock() -> ManualClock:
    """The test's time."""
    return ManualClock(NOW)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """The test's database file."""
    return tmp_path / "state.db"


@pytest.fixture
def opening(database: Path, clock: ManualClock) -> Opening:
    """Opens a gateway on the test's database; leaving it and opening again is a restart."""

    def open_(**options: Any) -> AbstractAsyncContextManager[Gateway]:
        return open_gateway(database, clock=clock, **options)

    return open_


@pytest_asyncio.fixture
async def gateway(opening: Opening) -> AsyncIterator[Gateway]:
    """A gateway with the default configuration and no callbacks."""
    async with opening() as opened:
        yield opened
