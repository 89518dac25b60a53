"""The heartbeat: calls the host's wake callback for watchers that have notices (rule 4.9).

It works off the wake book: one alarm for the earliest request, at most eight calls at once, and a call that finds the host
busy goes back into the book.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from ..storage.errors import StoreError
from ..storage.protocol import Store
from .callbacks import Callbacks, within
from .claims import Claims
from .clock import Clock
from .counters import Counters
from .logs import logger
from .messages import Tick, WakeEnded
from .observing import Observers
from .runtime import AsyncioActor
from .timer import Timer
from .wake_policy import WakeRequest
from .wakes import WakeBook

Wake = Callable[[str, tuple[str, ...]], Awaitable[bool | None] | bool | None]

WAKES_AT_ONCE: Final = 8
ANSWER_TIMEOUT_S: Final = 30.0


class HeartbeatActor(AsyncioActor):
    """Wakes watchers, each of them once at a time."""

    def __init__(
        self,
        wake: Wake,
        store: Store,
        clock: Clock,
        counters: Counters,
        observers: Observers,
        claims: Claims,
        book: WakeBook,
        callbacks: Callbacks,
    ) -> None:
        super().__init__()
        self._wake = wake
        self._store = store
        self._clock = clock
        self._counters = counters
        self._observers = observers
        self._claims = claims
        self._book = book
        self._callbacks = callbacks
        self._timer = Timer(clock, self.actor_ref)
        self._hinted = False
        self._under_way: dict[str, WakeRequest] = {}
        self._calls: dict[asyncio.Task[None], None] = {}
        self._again: dict[str, WakeRequest] = {}
        """Requests that came due while the watcher's call was still under way."""

    def on_start(self) -> None:
        self._book.notify = self._hint
        self._hint()

    async def on_receive(self, message: Tick | WakeEnded) -> None:
        if isinstance(message, WakeEnded):
            await self._ended(message)
        else:
            self._hinted = False
        await self._work_off()

    def on_stop(self) -> None:
        self._end()

    def on_failure(self, *_exc_info: object) -> None:
        """What was under way is asked again by the next heartbeat: once too often rather than never."""
        self._end()
        for requests in (self._under_way, self._again):
            for watcher, wake in requests.items():
                self._book.opened(watcher, wake.reasons, self._clock.monotonic())

    def _end(self) -> None:
        self._timer.cancel()
        for call in self._calls:
            call.cancel()

    def _hint(self) -> None:
        if not self._hinted and self.actor_ref.is_alive():
            self._hinted = True
            self.actor_ref.tell(Tick())

    async def _work_off(self) -> None:
        while len(self._under_way) < WAKES_AT_ONCE:
            due = self._book.take_due(self._clock.monotonic())
            if due is None:
                break
            await self._wake_if_pending(*due)
        self._set_timer()

    def _set_timer(self) -> None:
        due = self._book.next_due()
        if due is None or len(self._under_way) >= WAKES_AT_ONCE:
            self._timer.cancel()
        else:
            self._timer.set(max(0.0, due - self._clock.monotonic()))

    async def _wake_if_pending(self, watcher: str, wake: WakeRequest) -> None:
        if watcher in self._under_way:
            earlier = self._again.get(watcher)
            self._again[watcher] = wake if earlier is None else replace(wake, reasons=earlier.reasons + wake.reasons)
            return
        self._under_way[watcher] = wake  # from here on, so that a failure of the look forgets nobody either
        if await self._is_pending(watcher):
            self._counters.wakes += 1
            if not wake.failures:
                self._observers.woken(self._clock.monotonic() - wake.due + self._book.coalesce_s)
            call = asyncio.create_task(self._call(watcher, wake), name="kizuki wake")
            self._calls[call] = None
            call.add_done_callback(self._calls.pop)
        else:
            del self._under_way[watcher]

    async def _is_pending(self, watcher: str) -> bool:
        """Whether there is still something to wake for, and no other gateway that does it; where the store cannot say, there is."""
        try:
            read = await self._store.pending(watcher, limit=1, excluding=self._claims.taken(watcher), with_total=False)
        except StoreError:
            return True
        return bool(read.cursors) and not read.elsewhere

    async def _call(self, watcher: str, wake: WakeRequest) -> None:
        """Ask the host; an exception or no answer in time counts as busy (rule 4.9)."""
        busy = True
        try:
            with self._observers.operation("wake"):
                answer = await within(self._clock, ANSWER_TIMEOUT_S, self._callbacks.start(self._wake, watcher, wake.reasons))
            busy = answer is False
        except TimeoutError:
            logger(watcher=watcher).warning("wake callback did not answer", timeout_s=ANSWER_TIMEOUT_S)
        except Exception as error:  # noqa: BLE001 - the host's own code: whatever it raises must not harm the other watchers
            logger(watcher=watcher).warning("wake callback failed", error=repr(error))
        if self.actor_ref.is_alive():
            self.actor_ref.tell(WakeEnded(watcher, busy))

    async def _ended(self, message: WakeEnded) -> None:
        busy = message.busy and await self._is_pending(message.watcher)
        wake = self._under_way.pop(message.watcher)
        again = self._again.pop(message.watcher, None)
        now = self._clock.monotonic()
        if again is not None:
            self._book.opened(message.watcher, again.reasons, now)
        if busy:
            self._book.answered_busy(message.watcher, wake, now)
