"""What hosts ask of their gateways, as the oracle keeps it: when, under which state, and what it may still do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .durable import Address

if TYPE_CHECKING:
    from ..process import Process
    from .effects import Effect


@dataclass(slots=True, eq=False)
class Asked:
    """One call of a host, from the moment before it to the moment after it."""

    process: Process
    what: str
    """For people who read of a violation."""
    tick: int
    """Which of all that the oracle was told this is."""
    since: int
    """The number of the state under which it was asked."""
    at_ms: int
    """Of virtual time."""
    earliest_ms: int
    latest_ms: int
    """What the wall clock has shown since."""
    effects: Sequence[Effect] = ()
    mentions: tuple[Address, ...] = ()
    """Sessions whose rows it creates if need be."""
    watcher: str | None = None
    """Whose notices it takes."""
    hosts: str | None = None
    """Whose host its gateway becomes."""
    over: bool = field(default=False)
    has_rival: bool = field(default=False)
    """Whether another call about the same sessions was under way at some moment."""

    def sees(self, wall_ms: int) -> None:
        """The wall clock shows this while it is under way."""
        self.earliest_ms = min(self.earliest_ms, wall_ms)
        self.latest_ms = max(self.latest_ms, wall_ms)
