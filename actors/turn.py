"""A turn: what a host holds while a session's model runs (rules 4.7, 4.8)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from .notices import Notice
from .runtime import AsyncioFuture

T = TypeVar("T")


class Turn:
    """The notices that one turn shows. What is taken is what is shown is what is acknowledged."""

    def __init__(self, notices: tuple[Notice, ...], remaining: int, acknowledge: Callable[[], Awaitable[None]]) -> None:
        self.notices = notices
        self.remaining = remaining
        """Notices left pending for later turns."""
        self._acknowledge = acknowledge

    def prompt_lines(self) -> list[str]:
        """The notices as lines for the prompt, one each."""
        return [notice.text for notice in self.notices]

    async def acknowledge(self) -> None:
        """Acknowledge before the turn ends, when the model has certainly been shown the notices; doing it twice changes nothing.

        Raises `StoreUnavailable`; the turn's end then tries again.
        """
        await self._acknowledge()


async def carried_through(future: AsyncioFuture[T]) -> T:
    """The future's result, waited for even if the caller is cancelled meanwhile; the cancellation then follows it."""
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await future
        except asyncio.CancelledError as error:
            cancelled = error
        except Exception:  # noqa: BLE001 - whatever it is, it is the future's, and raised from there
            break
    if cancelled is not None:
        raise cancelled
    return future.get()
