"""Who must be woken, and who must not (rules 4.9, 4.11, 8.2).

A watcher that is no sub-agent is owed a wake from the moment at which a notice opens for it, a turn of it ends with notices left, its wake
was answered busy, or its gateway starts or goes. The debt is paid by a wake, and void when nothing is pending any more or a turn has taken
all. Whether it is paid in time is asked at the end of a history, when nothing fails any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from .durable import Snapshot
from .violations import Violation

if TYPE_CHECKING:
    from ..process import Process

MERGED_MS: Final = 240
"""Requests are merged over 250 ms from the first; the look before the call takes a little."""
SETTLED_MS: Final = 10_000
"""How long ago a session must have come to its host, so that a wake under way from the one before is none of its."""
HANDED_ON_MS: Final = 10_000
"""How long ago a notice may have gone, so that a wake under way for it is not for nothing."""


def is_subagent(key: str) -> bool:
    """Rule 2.1."""
    return key.split(":")[2] == "subagent"


class Waking:
    """The debts, and the hosts."""

    def __init__(self) -> None:
        self._owed_since: dict[str, int] = {}
        self._hosts: dict[str, tuple[Process | None, int]] = {}
        """The gateway that is certainly the host, or None while that is open, and since when."""
        self._beside: dict[str, tuple[Process, ...]] = {}
        """Who was alive when a gateway began to start."""
        self._last: dict[str, tuple[Process, int]] = {}
        self._last_pending: dict[str, int] = {}
        self.hints_get_lost = False
        """Whether a hint was lost: then a wake may never come (rule 8.2)."""
        self.wakes = 0

    def owe(self, watcher: str, now_ms: int) -> None:
        """The watcher is to be woken."""
        if not is_subagent(watcher):
            self._owed_since.setdefault(watcher, now_ms)

    def settle(self, watcher: str) -> None:
        """The watcher need not be woken any more."""
        self._owed_since.pop(watcher, None)

    def looked(self, before: Snapshot, now_ms: int) -> None:
        """These were pending until now."""
        for (watcher, _), cursor in before.cursors.items():
            if cursor.is_open:
                self._last_pending[watcher] = now_ms

    def woken(self, process: Process, watcher: str, state: Snapshot, now_ms: int, *, may_be_for_nothing: bool) -> None:
        """A wake has come. Raises `Violation`."""
        self.wakes += 1
        name = f"{process.name} wakes {watcher}"
        if is_subagent(watcher):
            raise Violation("4.9", f"{name}, a sub-agent")
        lately = now_ms - self._last_pending.get(watcher, -HANDED_ON_MS) < HANDED_ON_MS
        if not state.pending(watcher) and not lately and not may_be_for_nothing:
            raise Violation("4.9", f"{name}, and nothing is pending")
        host, since_ms = self._hosts.get(watcher, (None, 0))
        if host is not None and host is not process and host.alive and now_ms - since_ms > SETTLED_MS:
            raise Violation("8.2", f"{name}, and {host.name} has hosted it since {since_ms} ms")
        self._check_merged(process, watcher, name, now_ms)
        self.settle(watcher)

    def busy(self, watcher: str, now_ms: int) -> None:
        """The host could not take the wake: again."""
        self.owe(watcher, now_ms)

    def hosted(self, watcher: str, process: Process | None, now_ms: int) -> None:
        """The process is the host from now on; None: that is open."""
        self._hosts[watcher] = (process, now_ms)

    def is_hosted_by(self, process: Process, watcher: str) -> bool:
        """Whether this gateway certainly hosts the watcher."""
        return watcher in self._hosts and self._hosts[watcher][0] is process

    def starts(self, name: str, living: Iterable[Process]) -> None:
        """A gateway begins to start beside these."""
        self._beside[name] = tuple(living)

    def is_left_to(self, process: Process, watcher: str) -> bool:
        """Whether certainly no other living gateway hosts the watcher, nor one that died while the process started: a start looks once
        who is dead, and what becomes free after that is taken over like any other time, as it is pinned."""
        if watcher not in self._hosts or not (_others(process) or self._beside.get(process.name)):
            return True
        return self._hosts[watcher][0] is process

    def overdue(self, state: Snapshot, is_busy: Callable[[str], bool]) -> Iterable[str]:
        """Watchers that are still to be woken; debts of those that have nothing pending, or a turn, are void."""
        if self.hints_get_lost:
            return ()
        return [watcher for watcher in self._owed_since if state.pending(watcher) and not is_busy(watcher)]

    def _check_merged(self, process: Process, watcher: str, name: str, now_ms: int) -> None:
        before = self._last.get(watcher)
        self._last[watcher] = (process, now_ms)
        alone = all(other.name == process.name for other in process.world.processes)  # a hint's request is as old as the notice
        if alone and before is not None and before[0] is process and now_ms - before[1] < MERGED_MS:
            raise Violation("4.9", f"{name} after {now_ms - before[1]} ms again")


def _others(process: Process) -> bool:
    return any(other.alive and other is not process for other in process.world.processes)
