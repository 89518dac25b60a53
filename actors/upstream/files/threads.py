"""Work that blocks, away from the loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def in_thread(work: Callable[[threading.Event], T]) -> T:
    """What the work gives, done in a thread of its own. The event is set when nobody waits for it any more.

    The thread keeps no interpreter alive, which those of asyncio's own pool do: a file system that hangs shall not keep the host
    from ending.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    abandoned = threading.Event()
    threading.Thread(target=_run, args=(work, abandoned, loop, future), name="kizuki-upstream", daemon=True).start()
    try:
        return await future
    finally:
        abandoned.set()


def _run(
    work: Callable[[threading.Event], T], abandoned: threading.Event, loop: asyncio.AbstractEventLoop, future: asyncio.Future[T]
) -> None:
    try:
        result = work(abandoned)
    except Exception as error:  # noqa: BLE001 - it is raised where the result is awaited
        _tell(loop, _fail, future, error)
    else:
        _tell(loop, _succeed, future, result)


def _tell(loop: asyncio.AbstractEventLoop, settle: Callable[..., None], future: asyncio.Future[T], outcome: object) -> None:
    with suppress(RuntimeError):  # the loop is closed, and nobody waits
        loop.call_soon_threadsafe(settle, future, outcome)


def _succeed(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[T], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
