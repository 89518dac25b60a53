"""Calls that an adapter makes inside somebody else's run: bounded in time, and never an error of that run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final, TypeVar

from ...logs import logger

T = TypeVar("T")

TIMEOUT_S: Final = 0.25
"""How long a run waits for its notices, or for a record of what it does, unless its host says otherwise."""


async def fail_open(doing: str, call: Awaitable[T], timeout_s: float, **bound: object) -> T | None:
    """The call's result; None, and a line in the log, if it raised or took longer. A cancellation is the caller's and goes on."""
    try:
        async with asyncio.timeout(timeout_s):
            return await call
    except Exception as error:  # noqa: BLE001 - whatever it is, the run that it would end is not ours
        logger(**bound).warning(f"{doing} failed", error=str(error) or repr(error))
        return None
