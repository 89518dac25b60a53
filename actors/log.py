"""The log actor: the only writer of the store.

Group commit without a timer. The first write that arrives makes the actor mail itself a flush; all that is queued before it goes into one
transaction, one hop to the database, and the replies are resolved after the commit. While the commit is under way the mail waits in
the inbox, so the group grows with the load by itself.

A failed commit is final for what was in it: recordings are answered with None and counted as lost, everything else with the
store's error. What may have been committed all the same is found in the store, never guessed from memory: openings left over
are kept there as owed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from ..storage.errors import CommitUnknownError, StoreError, WriteRefusedError
from ..storage.protocol import Store
from ..storage.records import Opened
from ..storage.writes import Acknowledged, Append, Commit, OpenOwed, Write
from .clock import Clock
from .counters import Counters
from .logs import logger
from .messages import Flush, Tick
from .observing import Observers
from .runtime import AsyncioActor, AsyncioFuture
from .timer import Timer

GROUP_MAX: Final = 2_048
OPENINGS_PER_COMMIT: Final = 256
RETRY_S: Final = 1.0


@dataclass(slots=True)
class LogState:
    """What of the log outlives its actor. It tells the truth after each commit."""

    owed: bool = False
    """Whether openings are owed in the store."""
    owed_waits: bool = False
    """Whether they stay owed for now: at a start what has expired goes before anything is opened (rule 3.5)."""

    @property
    def opens_owed(self) -> bool:
        """Whether the next commit is to open a slice of what is owed."""
        return self.owed and not self.owed_waits


class Queued:
    """One write, whom to answer, and since when it waits."""

    __slots__ = ("reply", "since", "write")

    def __init__(self, write: Write, reply: AsyncioFuture[Any] | None, since: float) -> None:
        self.write = write
        self.reply = reply
        self.since = since

    @property
    def is_answered(self) -> bool:
        return self.reply is None or self.reply.done()

    def fail(self, error: StoreError) -> None:
        """A recording is best effort and answered with None (rule 1.9); whoever asked for anything else is told."""
        if self.reply is None:
            return
        if isinstance(self.write, Append):
            self.reply.resolve(None)
        else:
            self.reply.fail(error)


class LogActor(AsyncioActor):
    """Queues writes, commits them in groups, and tells of the notices that each commit opened."""

    inbox_size: ClassVar[int] = sys.maxsize
    """Its writes are asked, and bounded by who waits for them; the bound would refuse only its own flush, behind a crowd of them."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        counters: Counters,
        observers: Observers,
        state: LogState,
        *,
        busy_timeout_s: float,
        on_opened: Callable[[Sequence[Opened]], None],
        on_unknown: Callable[[], None],
    ) -> None:
        super().__init__()
        self._store = store
        self._clock = clock
        self._counters = counters
        self._observers = observers
        self._state = state
        self._busy_timeout_s = busy_timeout_s
        self._on_opened = on_opened
        self._on_unknown = on_unknown
        self._queue: list[Queued] = []
        self._in_hand: list[Queued] = []
        """What the commit under way is to write."""
        self._flush_mailed = False
        self._retry = Timer(clock, self.actor_ref)

    def on_receive(self, message: Write | Flush | Tick) -> Any:
        if isinstance(message, Flush):
            return self._flush()
        if not isinstance(message, Tick):
            self._queue.append(Queued(message, self.take_reply(), self._clock.monotonic()))
        if not self._flush_mailed:
            self._mail_flush()
        return None

    def on_stop(self) -> None:
        self._retry.cancel()
        self._abandon(StoreError("the log has stopped"))

    def on_failure(self, *_exc_info: object) -> None:
        """Whoever waits is answered; whether the commit under way takes effect is for the store to tell."""
        self._retry.cancel()
        error = StoreError("the log has failed")
        if self._in_hand:
            self._give_up([item for item in self._in_hand if not item.is_answered], error)
            self._on_unknown()
        self._abandon(error)

    def _mail_flush(self) -> None:
        self._flush_mailed = True
        self.actor_ref.tell(Flush())

    async def _flush(self) -> None:
        self._flush_mailed = False
        group, self._queue = self._queue[:GROUP_MAX], self._queue[GROUP_MAX:]
        if self._state.opens_owed:
            group.append(Queued(OpenOwed(self._clock.now_ms(), OPENINGS_PER_COMMIT), None, self._clock.monotonic()))
        if group:
            self._in_hand = group
            await self._commit(group)
            self._in_hand = []
        if self._queue or (self._state.opens_owed and not self._retry.is_set):
            self._mail_flush()

    async def _commit(self, group: list[Queued]) -> None:
        try:
            with self._observers.commit(len(group)):
                commit = await self._store.commit([item.write for item in group], busy_timeout_s=self._time_left_s(group))
        except WriteRefusedError as error:
            await self._refused(group, error)
        except StoreError as error:
            self._failed(group, error)
        else:
            self._committed(group, commit)

    def _time_left_s(self, group: list[Queued]) -> float:
        """No recording waits for locks longer than `busy_timeout_s`, the time it queued behind another commit included."""
        oldest = min(item.since for item in group)
        return max(0.0, self._busy_timeout_s - (self._clock.monotonic() - oldest))

    async def _refused(self, group: list[Queued], error: WriteRefusedError) -> None:
        """One bad row harms no other: a group that the store refused is tried again, each write by itself."""
        if len(group) == 1:
            self._give_up(group, error)
            return
        for item in group:
            await self._commit([item])

    def _failed(self, group: list[Queued], error: StoreError) -> None:
        self._give_up(group, error)
        self._abandon(error)
        if isinstance(error, CommitUnknownError):
            self._on_unknown()
        if self._state.opens_owed:
            self._retry.set(RETRY_S)

    def _give_up(self, group: list[Queued], error: StoreError) -> None:
        lost = sum(isinstance(item.write, Append) for item in group)
        self._counters.recordings_lost += lost
        logger().error("commit failed", error=str(error), writes=len(group), recordings_lost=lost)
        for item in group:
            item.fail(error)

    def _abandon(self, error: StoreError) -> None:
        """What queued behind a failure fails with it, so that nobody waits out one lock after another."""
        queue, self._queue = self._queue, []
        if queue:
            self._give_up(queue, error)

    def _committed(self, group: list[Queued], commit: Commit) -> None:
        self._retry.cancel()
        self._state.owed = commit.owed
        self._counters.events_recorded += commit.recorded
        self._counters.notices_opened += len(commit.opened)
        for item, result in zip(group, commit.results, strict=True):
            if isinstance(result, Acknowledged):
                self._counters.notices_acknowledged += len(result.applied)
            if item.reply is not None:
                item.reply.resolve(result)
        if commit.opened:
            self._on_opened(commit.opened)
