"""The replay at a start: every pair that is pending in the store gets its one notice, and its watcher a wake (rule 4.11).

It goes through the pairs in slices, so that the gateway serves meanwhile; a watcher that is served before its slice has come is replayed
first. What it has done outlives the actor, for a pair must not be pinned anew once it may have been shown.

Expired cursors go before (rule 3.5): the first slice of that sweep is all of it in most databases, and comes before anything is told of. In
a large one the rest of the sweep, which looks at every cursor, comes behind the first slice of the replay, which passes over what has
expired: so the first wakes do not wait for it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

from pykka import ActorDeadError

from ..storage.errors import StoreError
from ..storage.retention import SLICE_ROWS_FIRST
from ..storage.writes import ExpireCursors, Replay, Replayed, Swept
from .clock import Clock
from .config import GatewayConfig
from .log import LogState
from .logs import logger
from .messages import BeginReplay, BeginSweep, ReplayNext, ReplayWatcher, Tick
from .retention import retained_from_ms
from .runtime import AsyncioActor, AsyncioActorRef
from .sweeps import sweep
from .timer import Timer

SLICE_PAIRS: Final = 1_000
RETRY_S: Final = 1.0


@dataclass(slots=True)
class ReplayProgress:
    """How far the replay has come."""

    asked_for: bool = False
    """Whether the start has asked for it: from then on it goes on by itself."""
    begun: bool = False
    sweep: ExpireCursors | None = None
    """The next slice of what has expired, if there is more than the first one."""
    swept: bool = False
    """Whether this start has removed what had expired."""
    after: tuple[int, int] | None = None
    """The last pair replayed, in the store's order."""
    finished: bool = False
    served: set[str] = field(default_factory=set)
    """Watchers replayed ahead of their slice; emptied at the end."""

    @property
    def over(self) -> bool:
        """Whether nothing is left of the start."""
        return self.finished and self.swept

    def serves(self, watcher: str) -> bool:
        """Whether the watcher's pending pairs are certain to have been replayed, and its expired ones to be gone."""
        return self.over or watcher in self.served

    def restart(self, served: set[str]) -> None:
        """Begin again, but for watchers that must keep what they have been shown."""
        self.begun = False
        self.after = None
        self.finished = False
        self.served = served


class ReplayActor(AsyncioActor):
    """Replays slice after slice by mail to itself, with watchers that cannot wait in between."""

    inbox_size: ClassVar[int] = sys.maxsize
    """The bound would refuse only its own next slice, behind a crowd of watchers that ask."""

    def __init__(
        self, log: Callable[[], AsyncioActorRef[Any]], clock: Clock, config: GatewayConfig, progress: ReplayProgress, log_state: LogState
    ) -> None:
        super().__init__()
        self._log = log
        self._clock = clock
        self._config = config
        self._progress = progress
        self._log_state = log_state
        self._timer = Timer(clock, self.actor_ref)

    def on_start(self) -> None:
        if self._progress.asked_for and not self._progress.over:
            self.actor_ref.tell(ReplayNext())

    async def on_receive(self, message: BeginSweep | BeginReplay | ReplayNext | ReplayWatcher | Tick) -> None:
        match message:
            case BeginSweep():
                await self._begin_sweep()
            case BeginReplay():
                self._progress.asked_for = True
                await self._begin()
            case ReplayWatcher():
                await self._replay_watcher(message.watcher)
            case _ if self._progress.asked_for:  # until then, what dead gateways hosted is not this one's yet
                await self._go_on()

    def on_stop(self) -> None:
        self._timer.cancel()

    def on_failure(self, *_exc_info: object) -> None:
        self._timer.cancel()

    async def _begin(self) -> None:
        """The first slice, which also settles what is owed from before; nobody is served before what has expired is gone."""
        if self._progress.begun:
            return
        await self._begin_sweep()
        if self._progress.after is None and not self._progress.finished:
            await self._replay_slice()
        if self._progress.sweep is not None:
            await sweep(self._log().ask, self._clock, self._progress.sweep)
            self._swept()
        self._progress.begun = True

    async def _begin_sweep(self) -> None:
        if self._progress.swept or self._progress.sweep is not None:
            return
        first = ExpireCursors(retained_from_ms(self._clock.now_ms(), self._config), SLICE_ROWS_FIRST)
        swept: Swept = await self._log().ask(first)
        if isinstance(swept.after, tuple):
            self._progress.sweep = replace(first, after=swept.after)
        else:
            self._swept()

    def _swept(self) -> None:
        """From now on what is owed may be opened."""
        self._progress.sweep = None
        self._progress.swept = True
        self._log_state.owed_waits = False
        if self._log_state.owed:
            self._log().tell(Tick())

    async def _replay_watcher(self, watcher: str) -> None:
        await self._begin()
        if not self._progress.serves(watcher):
            await self._log().ask(Replay(limit=0, watcher=watcher))
            self._progress.served.add(watcher)

    async def _go_on(self) -> None:
        try:
            await self._begin()
            if not self._progress.finished:
                await self._replay_slice()
        except (StoreError, ActorDeadError) as error:
            logger().warning("replay waits for the store", error=str(error))
            self._timer.set(RETRY_S)

    async def _replay_slice(self) -> None:
        renewed_from_ms = self._progress.sweep.before_ms if self._progress.sweep is not None else 0
        done = frozenset(self._progress.served)
        result: Replayed = await self._log().ask(Replay(SLICE_PAIRS, self._progress.after, done=done, renewed_from_ms=renewed_from_ms))
        self._progress.after = result.after
        if result.after is None:
            self._progress.finished = True
            self._progress.served.clear()
        else:
            self.actor_ref.tell(ReplayNext())
