"""Where a store's functions run: on one database connection, each whole, in the order in which they were handed over.

A store's own thread is one such place (`connection`); a simulation has another, on virtual time.
"""

from __future__ import annotations

import asyncio
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Hop(asyncio.Future[T]):
    """What runs somewhere else. It cannot be cancelled: a task that is cancelled while it awaits one learns so when the hop has ended."""

    def cancel(self, msg: object = None) -> bool:  # noqa: ARG002, the name is asyncio's
        return False


class Runner(ABC):
    """Runs whole functions on its connection. Raises `ValueError` once it is closed."""

    @abstractmethod
    def hand_over(self, function: Callable[[sqlite3.Connection], T], answer: asyncio.Future[T]) -> None:
        """Take the function into the line; `answer` is given its result or its error. Cancelling that does not stop the function."""

    @abstractmethod
    def waiting(self) -> AbstractContextManager[object]:
        """What is entered while somebody waits for a function."""

    def run(self, function: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
        """Run the function. Cancelling the caller does not stop it."""
        return self._answered(partial(_called, function, args, kwargs), asyncio.get_running_loop().create_future())

    def run_whole(
        self, function: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, T]:
        """The same, but a cancelled caller is held until the function has ended: it never goes on beside it."""
        return self._answered(partial(_called, function, args, kwargs), Hop(loop=asyncio.get_running_loop()))

    async def _answered(self, function: Callable[[sqlite3.Connection], T], answer: asyncio.Future[T]) -> T:
        with self.waiting():
            self.hand_over(function, answer)
            return await answer


def _called(function: Callable[..., T], args: tuple[object, ...], kwargs: dict[str, object], connection: sqlite3.Connection) -> T:
    return function(connection, *args, **kwargs)
