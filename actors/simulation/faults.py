"""What can go wrong in a simulated world: one frozen value per kind of fault, saying where it strikes.

Faults are values with their place in them (`the 7th commit of gateway a`), not dice that are thrown on the way. So a run is replayed from
its list of faults, and a list that fails is shrunk by leaving faults out. `draw_faults` in `plan` makes such lists from a seed; who
strikes is the `Injector`, and what happens then is where the fault says it strikes. Numbers count from 1, over all lives of a gateway's
name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..errors import InvalidArgument

Point = Literal["commit", "read", "look", "hints", "wake", "dispatch", "call"]
"""Occasions that are counted for each gateway: a write transaction, a read, a look at its neighbours, a taking of hints, a wake callback, a
dispatch, a call from the host."""


@dataclass(frozen=True, slots=True)
class CrashAtCommit:
    """The process dies at its n-th write transaction: with `committed` after the commit and before anybody is answered, else just before
    it."""

    gateway: str
    number: int
    committed: bool


@dataclass(frozen=True, slots=True)
class CrashAtStep:
    """The process dies before the n-th step of its event loop: at any await boundary whatever."""

    gateway: str
    number: int


@dataclass(frozen=True, slots=True)
class CrashAtTime:
    """The process dies at this moment of virtual time, in seconds since the run began."""

    gateway: str
    at_s: float


@dataclass(frozen=True, slots=True)
class CommitFails:
    """The n-th write transaction fails.

    `disk`: its statement with this number (from 1; beyond the last one: COMMIT) raises an I/O error and does nothing. `locked`: another
    process holds the lock for the whole busy timeout. `committed`, `rolled_back`: COMMIT raises, its outcome is unknown, and was this
    one.
    """

    gateway: str
    number: int
    how: Literal["disk", "locked", "committed", "rolled_back"]
    statement: int = 1


@dataclass(frozen=True, slots=True)
class ReadFails:
    """The n-th read fails with an I/O error."""

    gateway: str
    number: int


@dataclass(frozen=True, slots=True)
class CommitSlow:
    """The n-th write transaction begins late, and answers late: others see what it did for `after_s` before its own process knows."""

    gateway: str
    number: int
    before_s: float
    after_s: float


@dataclass(frozen=True, slots=True)
class HintsLost:
    """The n-th time that the gateway takes hints it gets none of them, though they are gone."""

    gateway: str
    number: int


@dataclass(frozen=True, slots=True)
class HintsDelayed:
    """From its n-th look at its neighbours on the gateway sees no hints, for so many looks."""

    gateway: str
    number: int
    looks: int


@dataclass(frozen=True, slots=True)
class WakeFails:
    """The n-th wake callback hangs for ever, raises, says that it is busy (False), or is cancelled from inside; the host's own is not
    called."""

    gateway: str
    number: int
    how: Literal["hang", "raise", "busy", "cancel"]


@dataclass(frozen=True, slots=True)
class DispatchFails:
    """The n-th dispatch hangs, raises, refuses, or is cancelled from inside; `reply`: it delivers, and its reply never comes."""

    gateway: str
    number: int
    how: Literal["hang", "raise", "refuse", "cancel", "reply"]


@dataclass(frozen=True, slots=True)
class CallCancelled:
    """The n-th call of the host, be it a turn or any other, is cancelled: `after_s` of virtual time and so many turns of the loop after
    it began."""

    gateway: str
    number: int
    after_turns: int
    after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class WallJump:
    """The machine's wall clock is set forward, or back, at this moment."""

    at_s: float
    by_ms: int


@dataclass(frozen=True, slots=True)
class Stall:
    """The process stands still for a while, as one does whose machine is overloaded: its timers ring late, and all at once."""

    gateway: str
    at_s: float
    for_s: float


@dataclass(frozen=True, slots=True)
class SmallInboxes:
    """Every actor's inbox but the log's takes so few mails, in the whole world."""

    size: int

    def __post_init__(self) -> None:
        if self.size < 1:
            raise InvalidArgument("size", self.size, "it must be at least 1")


Fault = (
    CrashAtCommit
    | CrashAtStep
    | CrashAtTime
    | CommitFails
    | ReadFails
    | CommitSlow
    | HintsLost
    | HintsDelayed
    | WakeFails
    | DispatchFails
    | CallCancelled
    | WallJump
    | Stall
    | SmallInboxes
)
Counted = CrashAtCommit | CommitFails | CommitSlow | ReadFails | HintsLost | HintsDelayed | WakeFails | DispatchFails | CallCancelled
"""Those that strike at a numbered occasion."""
Timed = CrashAtTime | WallJump | Stall
"""Those that strike at a moment."""

POINTS: dict[type[Counted], Point] = {
    CrashAtCommit: "commit",
    CommitFails: "commit",
    CommitSlow: "commit",
    ReadFails: "read",
    HintsLost: "hints",
    HintsDelayed: "look",
    WakeFails: "wake",
    DispatchFails: "dispatch",
    CallCancelled: "call",
}
