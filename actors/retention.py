"""Retention: expired cursors go at a start and hourly, old events and the heads of sessions long deleted likewise (rules 3.5, 6.1).

The cursors of a start are swept by the replay, which has to come after it; what is pruned here at a start is the rest. All of it is slices
that the log actor commits between other writes, each sized by the time that the last one took.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pykka import ActorDeadError

from ..storage.errors import StoreError
from ..storage.retention import SLICE_ROWS_FIRST
from ..storage.writes import ExpireCursors, ExpireHeads, PruneEvents, Swept
from .clock import Clock
from .config import GatewayConfig
from .drafts import DAY_MS
from .logs import logger
from .messages import Prune, Tick
from .runtime import AsyncioActor, AsyncioActorRef
from .sweeps import CommitSlice, Sweep, sweep
from .timer import Timer


def retained_from_ms(now_ms: int, config: GatewayConfig) -> int:
    """What was recorded or renewed before this moment has outlived the retention time."""
    return now_ms - int(config.retention_days * DAY_MS)


async def prune(commit: CommitSlice, clock: Clock, config: GatewayConfig) -> int:
    """Expire cursors, prune events and forget deleted sessions, slice by slice; returns how many events went. Raises `StoreError`."""
    await sweep(commit, clock, ExpireCursors(retained_from_ms(clock.now_ms(), config), SLICE_ROWS_FIRST))
    return await prune_log(commit, clock, config)


async def prune_log(commit: CommitSlice, clock: Clock, config: GatewayConfig) -> int:
    """`prune` without the cursors."""
    before_ms = retained_from_ms(clock.now_ms(), config)
    removed = await sweep(commit, clock, PruneEvents(before_ms, config.retention_rows, SLICE_ROWS_FIRST))
    await sweep(commit, clock, ExpireHeads(before_ms, SLICE_ROWS_FIRST))
    return removed


class RetentionActor(AsyncioActor):
    """Prunes when its timer rings and when it is asked to, one prune at a time."""

    def __init__(self, log: Callable[[], AsyncioActorRef[Any]], clock: Clock, config: GatewayConfig) -> None:
        super().__init__()
        self._log = log
        self._clock = clock
        self._config = config
        self._timer = Timer(clock, self.actor_ref)
        self._prune_next = prune_log
        """What the clock asks for next."""

    async def on_receive(self, message: Prune | Tick) -> Any:
        if isinstance(message, Prune):
            return await prune(self._commit, self._clock, self._config)
        await self._prune_by_the_clock()
        return None

    def on_start(self) -> None:
        self._timer.set(0)

    def on_stop(self) -> None:
        self._timer.cancel()

    def on_failure(self, *_exc_info: object) -> None:
        self._timer.cancel()

    async def _prune_by_the_clock(self) -> None:
        try:
            removed = await self._prune_next(self._commit, self._clock, self._config)
        except (StoreError, ActorDeadError) as error:
            logger().warning("pruning failed, it is tried again at the next interval", error=str(error))
        else:
            if removed:
                logger().info("events pruned", removed=removed)
        self._prune_next = prune
        self._timer.set(self._config.prune_interval_s)

    async def _commit(self, slice_: Sweep) -> Swept:
        swept: Swept = await self._log().ask(slice_)
        return swept
