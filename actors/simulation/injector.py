"""Which fault strikes now: counts the occasions, and remembers what has struck."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import get_args

from .faults import POINTS, Counted, CrashAtStep, Fault, Point, SmallInboxes, Timed


class Injector:
    """The faults of one run. Policy is in the list, mechanism with those who ask."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        self.is_armed = True
        self.struck: list[Fault] = []
        """In the order in which they did; one that never came to its occasion is not here."""
        self.occasions: Counter[tuple[Point, str]] = Counter()
        self._counted: dict[tuple[Point, str, int], list[Counted]] = {}
        for fault in self.faults:
            if isinstance(fault, get_args(Counted)):
                self._counted.setdefault((POINTS[type(fault)], fault.gateway, fault.number), []).append(fault)

    def due(self, point: Point, gateway: str) -> Sequence[Counted]:
        """Count this occasion, and give what strikes at it."""
        occasion = point, gateway
        self.occasions[occasion] += 1
        return self._counted.get((point, gateway, self.occasions[occasion]), ()) if self._counted else ()

    def disarm(self) -> None:
        """Let nothing strike any more."""
        self.faults = ()
        self._counted = {}
        self.is_armed = False

    def timed(self) -> list[Timed]:
        """What strikes by the clock."""
        return [fault for fault in self.faults if isinstance(fault, get_args(Timed))]

    def next_crash_step(self, gateway: str) -> CrashAtStep | None:
        """The earliest step of its loop at which the gateway is yet to die."""
        due = [fault for fault in self.faults if isinstance(fault, CrashAtStep) and fault.gateway == gateway and fault not in self.struck]
        return min(due, key=lambda fault: fault.number, default=None)

    def inboxes(self) -> list[SmallInboxes]:
        """What makes inboxes small, from the beginning."""
        return [fault for fault in self.faults if isinstance(fault, SmallInboxes)]

    def inbox_size(self) -> int | None:
        """How small every inbox is."""
        return min((fault.size for fault in self.inboxes()), default=None)
