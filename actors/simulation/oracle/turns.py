"""Which notices are in open turns, and whether what a turn, a drain or `pending` shows is what there was to show (rules 4.7, 4.8, 8.3).

A notice is certainly in a turn from the moment at which its host has it until the body ends. Around that it may be: while a turn is being
opened, and for a while after its end as other gateways see it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from .durable import Address, Cursor, Snapshot
from .effects import Shown
from .operations import Asked
from .violations import Violation

if TYPE_CHECKING:
    from ..process import Process

GIVEN_BACK_MS: Final = 40_000
"""How long a claim may stay in the store after its turn, as other gateways see it: as long as its gateway cannot write."""


@dataclass(slots=True, eq=False)
class Held:
    """A turn that has its notices."""

    asked: Asked
    watcher: str
    shown: tuple[Shown, ...]
    """What it still holds; acknowledged notices are in it no more."""
    opened_at: int
    """When it had them, in ticks of the oracle."""
    had: frozenset[Shown] = field(init=False)
    """All that it ever held: whoever asked for notices meanwhile saw it so."""
    ended_at: tuple[int, int] | None = None
    """When it ended: in ticks, and in milliseconds of virtual time."""

    def __post_init__(self) -> None:
        self.had = frozenset(self.shown)

    @property
    def process(self) -> Process:
        """Whose turn it is."""
        return self.asked.process


@dataclass(frozen=True, slots=True)
class Claimed:
    """What other turns have, as one who asks for notices may see it."""

    certainly: frozenset[Shown]
    perhaps: frozenset[Shown]
    anything: bool
    """Whether any notice may be in a turn that is being opened."""


class Turns:
    """All turns of a world."""

    def __init__(self) -> None:
        self._turns: list[Held] = []
        self._takes: list[Asked] = []
        """Calls that may take notices right now, and those that were cancelled while they did."""

    def takes(self, asked: Asked) -> None:
        """The call may take notices from now on."""
        self._takes.append(asked)

    def took(self, asked: Asked) -> None:
        """The call has taken what it takes, or gave up."""
        self._takes.remove(asked)

    def opened(self, asked: Asked, watcher: str, shown: Iterable[Shown], tick: int) -> Held:
        """The turn has these notices."""
        held = Held(asked, watcher, tuple(shown), tick)
        self._turns.append(held)
        return held

    def crashed(self, process: Process) -> None:
        """A claim dies with its gateway (rule 8.3)."""
        self._turns = [held for held in self._turns if held.process is not process]
        self._takes = [asked for asked in self._takes if asked.process is not process]

    def left(self, name: str, tick: int, now_ms: int) -> None:
        """The gateway is being left, and its open turns hold nothing for certain any more."""
        for held in self._turns:
            if held.process.name == name and held.ended_at is None:
                held.ended_at = (tick, now_ms)

    def clear_away(self, oldest_tick: int, now_ms: int) -> None:
        """Forget turns that ended so long ago that nobody can see them any more."""
        self._turns = [
            held
            for held in self._turns
            if held.ended_at is None or held.ended_at[0] >= oldest_tick or now_ms - held.ended_at[1] < GIVEN_BACK_MS
        ]
        self._takes = [asked for asked in self._takes if not asked.over or now_ms - asked.at_ms < GIVEN_BACK_MS]

    def open_notices(self) -> Iterator[tuple[str, Shown]]:
        """The notices in all open turns."""
        for held in self._turns:
            if held.ended_at is None:
                yield from ((held.watcher, shown) for shown in held.shown)

    def is_busy(self, watcher: str) -> bool:
        """Whether a turn of the watcher is open, or being opened."""
        return any(held.watcher == watcher and held.ended_at is None for held in self._turns) or any(
            asked.watcher == watcher and not asked.over for asked in self._takes
        )

    def claimed(self, asked: Asked, watcher: str, *, takes: bool) -> Claimed:
        """What others have; one who only looks may have looked before they had it."""
        turns = [held for held in self._turns if held.watcher == watcher]
        has = [held for held in turns if held.ended_at is None and (takes or held.opened_at < asked.tick)]
        certainly = frozenset(shown for held in has for shown in held.shown)
        perhaps = frozenset(shown for held in turns for shown in held.had if self._may_see(asked, held))
        anything = any(other.watcher == watcher and other is not asked for other in self._takes)
        return Claimed(certainly, perhaps, anything)

    def _may_see(self, asked: Asked, held: Held) -> bool:
        if held.ended_at is None or held.process is not asked.process:
            return True
        return held.ended_at[0] >= asked.tick


def check_shown(
    what: str,
    shown: tuple[Shown, ...],
    claimed: Claimed,
    states: Iterable[Snapshot],
    watcher: str,
    limit: int | None,
    remaining: int | None,
) -> None:
    """Raise `Violation` unless this is what there was to show under one of the states."""
    twice = claimed.certainly.intersection(shown)
    if twice:
        raise Violation("8.3", f"{what} shows {sorted(twice)}, which an open turn has")
    if limit is not None and len(shown) > limit:
        raise Violation("4.7", f"{what} shows {len(shown)} notices, more than {limit}")
    if list(shown) != sorted(shown, key=_order):
        raise Violation("4.7", f"{what} shows notices out of order: {shown}")
    reasons = []
    for state in states:
        problem = _wrong(shown, claimed, state.pending(watcher), limit, remaining)
        if problem is None:
            return
        reasons.append(problem)
    if not reasons:
        raise Violation("1.10", f"{what} shows {shown}, before what was owed when it was asked for is opened")
    rule, text = min(reasons, key=lambda reason: reason[0] == "4.8")
    raise Violation(rule, f"{what} shows {shown}: {text}")


def _wrong(
    shown: tuple[Shown, ...], claimed: Claimed, pending: dict[Address, Cursor], limit: int | None, remaining: int | None
) -> tuple[str, str] | None:
    there = {Shown(target, cursor.last_seen, cursor.notified) for target, cursor in pending.items()}
    unknown = [notice for notice in shown if notice not in there]
    if unknown:
        return "4.8", f"{unknown} are not pending, {sorted(there)} are"
    free = set() if claimed.anything else there.difference(shown, claimed.perhaps)
    missing = free if limit is None or len(shown) < limit else {notice for notice in free if _order(notice) < _order(shown[-1])}
    if missing:
        return "4.7", f"{sorted(missing)} are pending before, and are not shown"
    if remaining is not None and not len(free) <= remaining <= len(there) - len(shown):
        return "4.7", f"{remaining} are said to remain, of {sorted(there)}"
    return None


def _order(notice: Shown) -> tuple[int, Address]:
    """Rule 4.7."""
    return notice.notified, notice.target
