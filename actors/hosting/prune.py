"""`kizuki prune`: what a gateway's own pruning does, on a database that may be in use by one.

Between two slices the database is left alone for as long as the slice took, so that a gateway's commits find their turn.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import nullcontext
from typing import cast

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from ...storage import open_store
from ...storage.errors import StoreError
from ...storage.protocol import Store
from ...storage.writes import PruneEvents, Swept
from ..clock import SystemClock
from ..retention import prune
from ..sweeps import Sweep
from .documents import reading
from .exits import CommandFailed, ExitCode
from .output import console, write_json
from .settings import Settings


def run_prune(settings: Settings, *, as_json: bool) -> ExitCode:
    """Prune, and print how many events went."""
    removed = asyncio.run(_prune_database(settings))
    if as_json:
        write_json({"removed": removed, "retentionDays": settings.config.retention_days, "retentionRows": settings.config.retention_rows})
    else:
        print(f"{removed} events removed")  # noqa: T201, the result
    return ExitCode.OK


async def _prune_database(settings: Settings) -> int:
    async with reading(settings.db) as store:  # a database that is not there is not to be created
        statistics = await store.statistics()
    try:
        async with open_store(settings.db, synchronous=settings.config.synchronous) as store:
            with _progress() or nullcontext() as progress:
                slices = _Slices(store, settings.config.busy_timeout_s, progress, statistics.events)
                return await prune(slices, SystemClock(), settings.config)
    except StoreError as error:
        raise CommandFailed(str(error)) from error


def _progress() -> Progress | None:
    if not sys.stderr.isatty():
        return None
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console(sys.stderr), transient=True)


class _Slices:
    """Commits slice after slice, with a pause before each but the first as long as the one before took."""

    def __init__(self, store: Store, busy_timeout_s: float, progress: Progress | None, events: int) -> None:
        self._store = store
        self._busy_timeout_s = busy_timeout_s
        self._progress = progress
        self._task = progress.add_task("pruning", total=events) if progress else None
        self._pause_s = 0.0

    async def __call__(self, slice_: Sweep) -> Swept:
        await asyncio.sleep(self._pause_s)
        loop = asyncio.get_running_loop()
        began = loop.time()
        commit = await self._store.commit([slice_], busy_timeout_s=self._busy_timeout_s)
        self._pause_s = loop.time() - began
        swept = cast("Swept", commit.results[0])
        if self._progress is not None and self._task is not None and isinstance(slice_, PruneEvents):
            self._progress.advance(self._task, slice_.limit)
        return swept
