"""Which watchers are to be woken, and when (rule 4.9).

The book outlives the heartbeat that works it off, so that a restarted heartbeat forgets nobody. Whether and how long a request waits is
decided in `wake_policy`; here is only who and in what order.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

from .wake_policy import WakeRequest, busy, request


@dataclass(slots=True)
class WakeBook:
    """Wake requests by watcher. `notify` tells whoever works them off that the earliest due time may have changed."""

    coalesce_s: float
    notify: Callable[[], None] = lambda: None
    _requests: dict[str, WakeRequest] = field(default_factory=dict)
    _due: list[tuple[float, str]] = field(default_factory=list)
    """A heap; an entry counts only while the watcher's request still has that due time."""
    _failed_turns: dict[str, int] = field(default_factory=dict)

    def opened(self, watcher: str, reasons: tuple[str, ...], now: float) -> None:
        """Notices on these targets were opened, or are left over: merged with what is requested already."""
        self._put(watcher, request(self._requests.get(watcher), now, reasons, self.coalesce_s))

    def answered_busy(self, watcher: str, asked: WakeRequest, now: float) -> None:
        """The host was busy: ask again later, together with what was requested meanwhile."""
        meanwhile = self._requests.get(watcher)
        reasons = asked.reasons + (meanwhile.reasons if meanwhile else ())
        self._put(watcher, busy(WakeRequest(now, tuple(dict.fromkeys(reasons)), asked.failures), now))

    def turn_failed(self, watcher: str, reasons: tuple[str, ...], now: float) -> None:
        """A turn gave its notices back: wake again with the busy delays, which grow while turn after turn fails."""
        failures = self._failed_turns.get(watcher, 0)
        self._failed_turns[watcher] = failures + 1
        if watcher in self._requests:
            self.opened(watcher, reasons, now)
        else:
            self._put(watcher, busy(WakeRequest(now, reasons, failures), now))

    def turn_ended_well(self, watcher: str) -> None:
        """The host is not busy any more: what waited for it is over, and the next failed turn begins with the shortest delay again."""
        self._failed_turns.pop(watcher, None)
        if self.waits_for_host(watcher):
            del self._requests[watcher]

    def waits_for_host(self, watcher: str) -> bool:
        """Whether the watcher's request is put off, since the host was busy or a turn failed."""
        waiting = self._requests.get(watcher)
        return waiting is not None and waiting.failures > 0

    def forget(self, watcher: str) -> None:
        """Drop what is requested for a watcher that was reset or deleted."""
        self._requests.pop(watcher, None)
        self._failed_turns.pop(watcher, None)

    def next_due(self) -> float | None:
        """When the earliest request is due, on the monotonic clock; None if there is none."""
        while self._due and not self._is_current(*self._due[0]):
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None

    def take_due(self, now: float) -> tuple[str, WakeRequest] | None:
        """Take out the earliest request that is due by now."""
        due = self.next_due()
        if due is None or due > now:
            return None
        _, watcher = heapq.heappop(self._due)
        return watcher, self._requests.pop(watcher)

    def _put(self, watcher: str, wake: WakeRequest) -> None:
        before = self._requests.get(watcher)
        self._requests[watcher] = wake
        if before is None or before.due != wake.due:
            heapq.heappush(self._due, (wake.due, watcher))
            self.notify()

    def _is_current(self, due: float, watcher: str) -> bool:
        wake = self._requests.get(watcher)
        return wake is not None and wake.due == due
