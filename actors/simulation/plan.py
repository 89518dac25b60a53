"""Which faults a run gets: drawn from a seed, or one after the other.

Faults are placed by numbers, so whoever places them must know about how much happens: `Extent.of` counts it in a run without faults. What a
fault changes moves what comes after it, so that a later fault may never come to its occasion; `world.injector.struck` tells which did.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from .faults import (
    CallCancelled,
    CommitFails,
    CommitSlow,
    CrashAtCommit,
    CrashAtStep,
    CrashAtTime,
    DispatchFails,
    Fault,
    HintsDelayed,
    HintsLost,
    Point,
    ReadFails,
    SmallInboxes,
    Stall,
    WakeFails,
    WallJump,
)

if TYPE_CHECKING:
    from .world import World

FaultKind = Literal["crash", "commit", "read", "slow", "hints", "wake", "dispatch", "cancel", "clock", "stall", "inbox"]
FAULT_KINDS: Final[tuple[FaultKind, ...]] = (
    "crash", "commit", "read", "slow", "hints", "wake", "dispatch", "cancel", "clock", "stall", "inbox",
)  # fmt: skip
DAY_MS: Final = 86_400_000


@dataclass(frozen=True, slots=True)
class Extent:
    """About how much happens in a history, by gateway."""

    duration_s: float
    occasions: Mapping[tuple[Point, str], int]
    steps: Mapping[str, int]

    @classmethod
    def of(cls, world: World) -> Extent:
        """What has happened in this world."""
        names = dict.fromkeys(process.name for process in world.processes)
        steps = MappingProxyType({name: world.steps_before(name) for name in names})
        return cls(world.clock.monotonic(), MappingProxyType(dict(world.injector.occasions)), steps)

    @property
    def gateways(self) -> tuple[str, ...]:
        """The names of those that ran, in the order of their first starts."""
        return tuple(self.steps)

    def count(self, point: Point, gateway: str) -> int:
        """How often the gateway came to this point; at least 1, so that there is a number to draw."""
        return max(1, self.occasions.get((point, gateway), 0))


def every_crash(extent: Extent, *, steps: bool = False) -> Iterator[Fault]:
    """Each crash by itself: before and after each commit of each gateway, and with `steps` before each step of each loop."""
    for gateway in extent.gateways:
        for number in range(1, extent.occasions.get(("commit", gateway), 0) + 1):
            yield CrashAtCommit(gateway, number, committed=False)
            yield CrashAtCommit(gateway, number, committed=True)
        if steps:
            for number in range(1, extent.steps[gateway] + 1):
                yield CrashAtStep(gateway, number)


def draw_faults(
    rng: random.Random, extent: Extent, *, kinds: Sequence[FaultKind] = FAULT_KINDS, crashes_max: int = 2, others_max: int = 4
) -> tuple[Fault, ...]:
    """Draw a list of faults of these kinds: one crash at least, if crashes are among them, and up to `others_max` others."""
    others = [kind for kind in kinds if kind != "crash"]
    drawn: list[Fault] = []
    if "crash" in kinds:
        drawn.extend(_crash(rng, extent, rng.choice(extent.gateways)) for _ in range(rng.randint(1, crashes_max)))
    if others:
        drawn.extend(_DRAWS[rng.choice(others)](rng, extent, rng.choice(extent.gateways)) for _ in range(rng.randint(0, others_max)))
    return tuple(dict.fromkeys(drawn))


def _number(rng: random.Random, extent: Extent, point: Point, gateway: str) -> int:
    return rng.randint(1, extent.count(point, gateway))


def _crash(rng: random.Random, extent: Extent, gateway: str) -> Fault:
    """More than half land between commit and reply, where a host that is not answered has to ask again."""
    dice = rng.random()
    if dice < 0.75:
        return CrashAtCommit(gateway, _number(rng, extent, "commit", gateway), committed=dice < 0.6)
    if dice < 0.9:
        return CrashAtStep(gateway, rng.randint(1, max(1, extent.steps[gateway])))
    return CrashAtTime(gateway, rng.uniform(0, extent.duration_s))


def _commit(rng: random.Random, extent: Extent, gateway: str) -> Fault:
    number = _number(rng, extent, "commit", gateway)
    return CommitFails(gateway, number, rng.choice(("disk", "locked", "committed", "rolled_back")), rng.randint(1, 12))


def _read(rng: random.Random, extent: Extent, gateway: str) -> Fault:
    return ReadFails(gateway, _number(rng, extent, "read", gateway))


def _slow(rng: random.Random, extent: Extent, gateway: str) -> Fault:
    return CommitSlow(gateway, _number(rng, extent, "commit", gateway), rng.uniform(0, 3), rng.uniform(0, 3))


def _hints(rng: random.Random, extent: Extent, gateway: str) -> Fault:
    if rng.random() < 0.5:
        return HintsLost(gateway, _number(rng, extent, "hints", gateway))
    return HintsDelayed(gateway, _number(rng, extent, "look", gateway), rng.randint(1, 20))


def _wake(rng: random.Random, extent: Extent, gateway: str) -> Fault:
    return WakeFails(gateway, _number(rng, extent, "wake", gateway), rng.choice(("hang", "raise", "busy", "cancel")))


def _dispatch(rng: random.Random, extent: Extent, gateway: str) -> Fault:
    return DispatchFails(gateway, _number(rng, extent, "dispatch", gateway), rng.choice(("hang", "raise", "refuse", "cancel", "reply")))


def _cancel(rng: random.Random, extent: Extent, gateway: str) -> Fault:
    after_s = rng.choice((0.0, rng.uniform(0, 0.01), rng.uniform(0, 1)))
    return CallCancelled(gateway, _number(rng, extent, "call", gateway), rng.randint(0, 12), after_s)


def _clock(rng: random.Random, extent: Extent, gateway: str) -> Fault:  # noqa: ARG001 - all gateways are on one machine
    most_ms = rng.choice((1_000, 3_600_000, 40 * DAY_MS))
    return WallJump(rng.uniform(0, extent.duration_s), rng.randint(-most_ms, most_ms))


def _stall(rng: random.Random, extent: Extent, gateway: str) -> Fault:
    return Stall(gateway, rng.uniform(0, extent.duration_s), rng.uniform(0.01, 5))


def _inbox(rng: random.Random, extent: Extent, gateway: str) -> Fault:  # noqa: ARG001 - it is so everywhere
    return SmallInboxes(rng.randint(1, 4))


_DRAWS: Final[Mapping[FaultKind, Callable[[random.Random, Extent, str], Fault]]] = {
    "commit": _commit,
    "read": _read,
    "slow": _slow,
    "hints": _hints,
    "wake": _wake,
    "dispatch": _dispatch,
    "cancel": _cancel,
    "clock": _clock,
    "stall": _stall,
    "inbox": _inbox,
}
