"""A host's run waits only so long for us, and never fails because of us."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final, TypeVar

from ...logs import logger

T = TypeVar("T")

BOUND_S: Final = 0.25
"""How long a host waits for one hook."""


async def attempt(what: str, session_key: str, wanted: Awaitable[T], otherwise: T, *, bound_s: float = BOUND_S) -> T:
    """The awaited value; `otherwise` if it fails or takes longer than `bound_s` seconds. A cancellation of the host's passes through."""
    try:
        async with asyncio.timeout(bound_s):
            return await wanted
    except Exception as error:  # noqa: BLE001 - whatever goes wrong here is no concern of the host's run
        logger(session_key=session_key).warning(f"{what} failed, the run goes on without", error=str(error) or repr(error))
        return otherwise
