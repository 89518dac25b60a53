"""Which notices are in an open turn of this gateway.

The store keeps the claims of all gateways; this is the truth about our own, and the store's follows it. Where the store may have more of
them, since a turn's end or a take could not be told to it yet, the watcher is stale.

The claims outlive the watcher actors that make them, so that a restarted actor does not show a taken notice again (rule 4.8),
and they are given back by plain calls, so that a cancelled turn needs no await for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..storage.records import Shown


@dataclass(slots=True)
class Claims:
    """What each open turn holds, by watcher and the turn's number."""

    _turns: dict[str, dict[int, tuple[Shown, ...]]] = field(default_factory=dict)
    _last_turn: int = 0
    stale: set[str] = field(default_factory=set)
    """Watchers of whose notices the store may hold claims that no open turn has."""

    def open(self, watcher: str) -> int:
        """Open a turn that holds nothing yet; returns its number."""
        self._last_turn += 1
        self._turns.setdefault(watcher, {})[self._last_turn] = ()
        return self._last_turn

    def taken(self, watcher: str) -> frozenset[Shown]:
        """The notices that are in some open turn of this watcher."""
        return frozenset(notice for shown in self._turns.get(watcher, {}).values() for notice in shown)

    def watchers(self) -> set[str]:
        """The watchers that have an open turn."""
        return set(self._turns)

    def take(self, watcher: str, turn: int, shown: tuple[Shown, ...]) -> bool:
        """Let the turn hold these notices; False if it has ended meanwhile, since its caller was cancelled."""
        turns = self._turns.get(watcher, {})
        if turn not in turns:
            return False
        turns[turn] += shown
        return True

    def held(self, watcher: str, turn: int) -> tuple[Shown, ...]:
        """What the turn holds; nothing once it has ended."""
        return self._turns.get(watcher, {}).get(turn, ())

    def settle(self, watcher: str, acknowledged: Iterable[Shown]) -> None:
        """Take acknowledged notices out of whichever turn of the watcher holds them."""
        settled = frozenset(acknowledged)
        turns = self._turns.get(watcher, {})
        for turn, shown in turns.items():
            turns[turn] = tuple(notice for notice in shown if notice not in settled)

    def release(self, watcher: str, turn: int) -> tuple[Shown, ...]:
        """End the turn; what it still held is free again and is returned."""
        turns = self._turns.get(watcher, {})
        shown = turns.pop(turn, ())
        if shown:
            self.stale.add(watcher)
        if not turns:
            self._turns.pop(watcher, None)
        return shown

    def forget(self, watcher: str) -> None:
        """Empty the open turns of a watcher that was reset or deleted: its notices are gone."""
        turns = self._turns.get(watcher, {})
        for turn in turns:
            turns[turn] = ()
