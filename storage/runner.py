"""Where a store's functions run: on one database connection, each whole, in the order in which they were handed over.

A store's own thread is one such place (`connection`); a simulation has another, on virtual time.
"""

from __future__ import annotations

import asyncio
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Concatenate, ParamSpec, TypeVar

from .whole import ended

P = ParamSpec("P")
T = TypeVar("T")


class Runner(ABC):
    """Runs whole functions on its connection. Raises `ValueError` once it is closed."""

    @abstractmethod
    def hand_over(self, function: Callable[[sqlite3.Connection], T]) -> asyncio.Future[T]:
        """Take the function into the line. Cancelling the future does not stop the function."""

    @abstractmethod
    def waiting(self) -> AbstractContextManager[object]:
        """What is entered while somebody waits for a function."""

    async def run(self, function: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the function. Cancelling the caller does not stop it."""
        with self.waiting():
            return await self.hand_over(partial(_called, function, args, kwargs))

    async def run_whole(self, function: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same, but a cancelled caller is held until the function has ended: it never goes on beside it."""
        hop = self.hand_over(partial(_called, function, args, kwargs))
        try:
            with self.waiting():
                return await asyncio.shield(hop)
        except asyncio.CancelledError:
            await ended(hop)
            raise


def _called(function: Callable[..., T], args: tuple[object, ...], kwargs: dict[str, object], connection: sqlite3.Connection) -> T:
    return function(connection, *args, **kwargs)
