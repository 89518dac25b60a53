"""Random histories: what the hosts of some gateways ask, and what goes wrong. A pure function of the seed.

A history is a value, so that it can be played again, and shrunk by leaving things out.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Literal

from ....storage.sqlite.transaction import OPENINGS_MAX
from ..faults import CrashAtCommit, CrashAtStep, CrashAtTime, Fault
from ..plan import FAULT_KINDS, Extent, FaultKind, draw_faults

Kind = Literal[
    "human", "goal", "run_ended", "compacted", "spawn", "watch", "unwatch", "open", "reset", "delete", "send",
    "turn", "turn_raises", "turn_acknowledges", "drain", "acknowledge", "pending", "watches", "status", "list", "prune",
    "restart", "later",
]  # fmt: skip

SHORT_WEIGHTS: Final[dict[Kind, int]] = {
    "human": 18, "goal": 18, "run_ended": 3, "compacted": 2, "spawn": 8, "watch": 9, "unwatch": 2, "open": 4, "reset": 1, "delete": 2,
    "send": 2, "turn": 12, "turn_raises": 4, "turn_acknowledges": 3, "drain": 3, "acknowledge": 3, "pending": 3, "watches": 2,
    "status": 4, "list": 1, "prune": 2, "restart": 2, "later": 1,
}  # fmt: skip
HOUR_S: Final = 3600.0

Address = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that a host does."""

    number: int
    client: int
    """Those of one client follow one another; clients do not wait for each other."""
    delay_s: float
    """After the client's last one."""
    gateway: str
    kind: Kind
    key: str
    """The session, or the watcher."""
    agent: str
    other: Address = ("", "")
    """The target, the parent, or the actor's session."""
    detail: str = ""
    limit: int = 0
    """Of notices or events; 0: the default."""
    lasts_s: float = 0.0
    """A turn's body."""

    @property
    def address(self) -> Address:
        """The session."""
        return self.key, self.agent


@dataclass(frozen=True, slots=True)
class History:
    """What is played."""

    seed: int
    gateways: tuple[str, ...]
    notices_max: int
    retention_rows: int
    openings_max: int
    """How many notices a commit opens; what is beyond that is owed (rule 1.10)."""
    japanese: frozenset[str]
    """The gateways whose language that is."""
    poll_interval_s: float
    reacts: bool
    """Whether a host runs a turn when it is woken."""
    operations: tuple[Operation, ...]
    faults: tuple[Fault, ...]


@dataclass(frozen=True, slots=True)
class Cast:
    """Which sessions there are."""

    watchers: tuple[str, ...]
    targets: tuple[Address, ...]

    @property
    def addresses(self) -> tuple[Address, ...]:
        """All of them."""
        return tuple(dict.fromkeys([*((key, agent_of(key)) for key in self.watchers), *self.targets]))


def agent_of(key: str) -> str:
    """The agent that a qualified key names (rule 2.1)."""
    return key.split(":")[1]


MAIN, OPS = "agent:main:main", "agent:ops:main"
SHORT_CAST: Final = Cast(
    (MAIN, OPS, "agent:main:subagent:a"),
    (("agent:main:subagent:a", "main"), ("agent:main:subagent:b", "main"), (OPS, "ops"), ("global", "main"), ("global", "ops")),
)


def long_cast(size: int = 30) -> Cast:
    """A manager for each ten sub-agents, and each manager watches whom it likes."""
    managers = [f"agent:main:manager-{number}" for number in range(max(2, size // 10))]
    workers = [f"agent:main:subagent:worker-{number}" for number in range(size - len(managers) - 2)]
    targets = [*((key, "main") for key in (*workers, *managers)), ("global", "main"), ("global", "ops")]
    return Cast((*managers, *workers[:4]), tuple(targets))


def short_history(seed: int, kinds: Sequence[FaultKind] = FAULT_KINDS) -> History:
    """Some thirty operations on at most three gateways."""
    rng = random.Random(f"{seed}/history")
    return _history(rng, seed, SHORT_CAST, rng.randint(20, 40), rng.choice((1, 2, 2, 3)), kinds, crashes_max=2, others_max=4)


def long_history(seed: int, kinds: Sequence[FaultKind] = FAULT_KINDS) -> History:
    """Hundreds of operations on three gateways, and up to forty crashes."""
    rng = random.Random(f"{seed}/long history")
    return _history(rng, seed, long_cast(), rng.randint(400, 800), 3, kinds, crashes_max=40, others_max=80)


def _history(
    rng: random.Random,
    seed: int,
    cast: Cast,
    size: int,
    gateways: int,
    kinds: Sequence[FaultKind],
    *,
    crashes_max: int,
    others_max: int,
) -> History:
    names = tuple("abc"[:gateways])
    clients = rng.choice((1, 2, 3))
    operations = tuple(_operation(rng, number, cast, names, clients) for number in range(1, size + 1))
    return History(
        seed,
        names,
        notices_max=rng.choice((1, 2, 20)),
        retention_rows=rng.choice((6, 15, 50_000)) if size < 100 else rng.choice((300, 50_000)),
        openings_max=random.Random(f"{seed}/openings").choice((1, 1, 2, OPENINGS_MAX)),
        japanese=frozenset(name for name in names if rng.random() < 0.2),
        poll_interval_s=rng.choice((0.5, 1.0, 5.0)),
        reacts=rng.random() < 0.5,
        operations=operations,
        faults=_faults(rng, names, operations, clients, kinds, crashes_max, others_max),
    )


def _faults(
    rng: random.Random,
    names: Sequence[str],
    operations: Sequence[Operation],
    clients: int,
    kinds: Sequence[FaultKind],
    crashes_max: int,
    others_max: int,
) -> tuple[Fault, ...]:
    if not kinds:
        return ()
    extent = _extent(names, operations, clients)
    crashes = [_crash(rng, extent) for _ in range(rng.randint(1, crashes_max))] if "crash" in kinds else []
    others = [kind for kind in kinds if kind != "crash"]
    drawn = draw_faults(rng, extent, kinds=others, others_max=others_max) if others else ()
    return tuple(dict.fromkeys((*crashes, *drawn)))


def _crash(rng: random.Random, extent: Extent) -> Fault:
    """Most land between commit and reply, where a host that is not answered has to ask again."""
    gateway, dice = rng.choice(extent.gateways), rng.random()
    if dice < 0.9:
        return CrashAtCommit(gateway, rng.randint(1, extent.count("commit", gateway)), committed=dice < 0.75)
    if dice < 0.97:
        return CrashAtStep(gateway, rng.randint(1, extent.steps[gateway]))
    return CrashAtTime(gateway, rng.uniform(0, extent.duration_s))


def _extent(names: Sequence[str], operations: Sequence[Operation], clients: int) -> Extent:
    """About what such a history comes to, as a few hundred of them did; playing it once without faults would cost as much as the search."""
    duration_s = sum(operation.delay_s + operation.lasts_s for operation in operations if operation.kind != "later") / clients
    each = len(operations) / len(names)
    looks = max(3, int(duration_s))
    counts = {"commit": 5 + 1.3 * each, "read": 3 + each, "look": looks, "hints": 1 + each / 20, "wake": 1 + each / 8,
              "dispatch": 1 + each / 40, "call": each}  # fmt: skip
    occasions = {(point, name): max(1, int(count)) for name in names for point, count in counts.items()}
    return Extent(duration_s, MappingProxyType(occasions), MappingProxyType({name: int(30 * each) for name in names}))  # type: ignore[arg-type]


def _operation(rng: random.Random, number: int, cast: Cast, names: Sequence[str], clients: int) -> Operation:
    kind: Kind = rng.choices(list(SHORT_WEIGHTS), list(SHORT_WEIGHTS.values()))[0] if number > 6 else _FIRST[number - 1]
    delay_s = 0.0 if rng.random() < 0.3 else rng.uniform(0, 0.5)
    client = rng.randrange(clients) if number > 6 else 0
    made = Operation(number, client, delay_s, rng.choice(names), kind, *rng.choice(cast.targets))
    return _DRAWS.get(kind, _as_it_is)(rng, made, cast)


_FIRST: Final[tuple[Kind, ...]] = ("open", "spawn", "spawn", "watch", "watch", "human")
"""Most histories begin with somebody watching somebody."""


def _changed(operation: Operation, **changes: object) -> Operation:
    return replace(operation, **changes)  # type: ignore[arg-type]


def _as_it_is(_rng: random.Random, operation: Operation, _cast: Cast) -> Operation:
    return operation


def _human(rng: random.Random, operation: Operation, _cast: Cast) -> Operation:
    """Half of the people's messages have an id that can be told again; some ids come twice."""
    dedupe = rng.choice(("", f"message-{operation.number}", rng.choice(("x", "y"))))
    return _changed(operation, detail=dedupe)


def _goal(rng: random.Random, operation: Operation, cast: Cast) -> Operation:
    actor = rng.choice(("human", "human", "system", "agent", "agent"))
    watcher = rng.choice(cast.watchers)
    return _changed(operation, detail=f"{actor} {rng.choice(('created', 'updated', 'cleared'))}", other=(watcher, agent_of(watcher)))


def _run_ended(rng: random.Random, operation: Operation, _cast: Cast) -> Operation:
    run = rng.choice((f"run-{operation.number}", "run"))
    return _changed(operation, detail=f"{rng.choice(('ok', 'error', 'timeout', 'cancelled'))} {run}")


def _compacted(rng: random.Random, operation: Operation, _cast: Cast) -> Operation:
    return _changed(operation, detail=rng.choice((f"operation-{operation.number}", "operation")))


def _spawn(rng: random.Random, operation: Operation, cast: Cast) -> Operation:
    parent = rng.choice([key for key in cast.watchers if key != operation.key])
    return _changed(operation, other=(parent, agent_of(parent)), detail=rng.choice((f"run-{operation.number}", "run")))


def _pair(rng: random.Random, operation: Operation, cast: Cast) -> Operation:
    watcher = rng.choice(cast.watchers)
    return _changed(operation, key=watcher, agent=agent_of(watcher), other=operation.address)


def _send(rng: random.Random, operation: Operation, cast: Cast) -> Operation:
    made = _pair(rng, operation, cast)
    qualified = [target for target in cast.targets if target[0].startswith("agent:")]
    return _changed(made, other=rng.choice(qualified))


def _open(rng: random.Random, operation: Operation, cast: Cast) -> Operation:
    key, agent = rng.choice(cast.addresses)
    parent = rng.choice(("", "", cast.watchers[0]))
    return _changed(operation, key=key, agent=agent, other=(parent, "") if parent != key else ("", ""))


def _any_session(rng: random.Random, operation: Operation, cast: Cast) -> Operation:
    key, agent = rng.choice(cast.addresses)
    return _changed(operation, key=key, agent=agent)


def _turn(rng: random.Random, operation: Operation, cast: Cast) -> Operation:
    watcher = rng.choice(cast.watchers)
    lasts_s = rng.choice((0.0, rng.uniform(0, 1), rng.uniform(0, 3)))
    return _changed(operation, key=watcher, agent=agent_of(watcher), lasts_s=lasts_s, limit=rng.choice((0, 0, 0, 1, 3)))


def _status(rng: random.Random, operation: Operation, cast: Cast) -> Operation:
    made = _any_session(rng, operation, cast)
    return _changed(made, limit=rng.choice((1, 3, 200)), detail=str(rng.choice((0, rng.randint(0, 2 * operation.number), ""))))


def _later(rng: random.Random, operation: Operation, _cast: Cast) -> Operation:
    return _changed(operation, lasts_s=rng.choice((1.0, 20.0, 70.0)))


_DRAWS: Final[dict[Kind, Callable[[random.Random, Operation, Cast], Operation]]] = {
    "human": _human, "goal": _goal, "run_ended": _run_ended, "compacted": _compacted, "spawn": _spawn, "watch": _pair, "unwatch": _pair,
    "open": _open, "reset": _any_session, "delete": _any_session, "send": _send, "turn": _turn, "turn_raises": _turn,
    "turn_acknowledges": _turn, "drain": _turn, "acknowledge": _turn, "pending": _turn, "watches": _turn, "status": _status,
    "later": _later,
}  # fmt: skip
