"""One agent: goes through its plan, turn by turn, acts on what it believes, and forgets what it was told in a turn that came to nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol, TypeVar

from ...errors import KizukiError
from ...gateway import Gateway
from ...identity import Actor
from ..life import PlannedAct, PlannedTurn
from ..process import Process, ProcessCrashed
from ..scenario import Agent
from .minds import Mind, Told
from .record import ActSeen, Ended, Learned, Record, Sent, TurnKind, TurnSeen, Woken
from .truth import Truth

T = TypeVar("T")

RETRY_S: Final = 10.0
"""How long after a failed turn it is tried again."""
READS_S: Final = 8.0
"""How long a turn takes in which an agent does nothing but read what changed."""
LATE_S: Final = 1.0
"""From what delay on a turn counts as late, and its acts with it."""


class TurnFailed(Exception):
    """The model's turn fails, as the scenario says."""


@dataclass(slots=True)
class OpenTurn:
    """A turn that is under way."""

    seen: TurnSeen
    loop: asyncio.AbstractEventLoop
    """Of the process that it runs in, and dies with."""
    told: Told = field(default_factory=Told)
    told_at_s: float = 0.0


class Scene(Protocol):
    """The run as its agents know it: the others, the time, the gateways, what happens and what is seen of it."""

    record: Record
    truth: Truth
    lasts_s: float

    @property
    def players(self) -> Mapping[str, Player]:
        """Everybody, by name."""
        ...

    def now_s(self) -> float:
        """Seconds since the run began."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let virtual time pass."""
        ...

    async def until(self, at_s: float) -> None:
        """Wait for a moment."""
        ...

    async def running(self, agent: Agent) -> Process:
        """The process that runs the agent now."""
        ...

    async def call(self, agent: Agent, work: Callable[[Gateway], Awaitable[T]]) -> T:
        """Have it done where the agent runs, and again if the process dies before it answers."""
        ...

    async def adopt(self, agent: Agent) -> None:
        """Link the agent's session to its thread."""
        ...

    def note(self, gateway: str, what: str) -> None:
        """Add a line to the trace."""
        ...


class Player:
    """Plays one agent in one run."""

    def __init__(self, agent: Agent, mind: Mind, stage: Scene) -> None:
        self.agent = agent
        self.mind = mind
        self.appeared = asyncio.Event()
        self.known: dict[str, int] = {}
        """The version of each target's state that the agent last reconciled with."""
        self._stage = stage
        self._open: list[OpenTurn] = []
        self._next_s = stage.lasts_s
        self._heed = asyncio.Event()
        self._reading: set[asyncio.Task[None]] = set()

    # -- on the stage's loop ---------------------------------------------------------------------------------------------------

    async def live(self, turns: tuple[PlannedTurn, ...], *, finishes: bool) -> None:
        """Appear, and go through the plan; `finishes` is whether it comes to its end."""
        await self._stage.until(self.agent.starts_s)
        await self._appear()
        begins_s = [planned.begins_s for planned in turns]
        self._next_s, *later_s = [*begins_s, self._stage.lasts_s]
        for planned, next_s in zip(turns, later_s, strict=True):
            await self._stage.until(planned.begins_s)
            self._next_s = next_s
            await self._do(planned)
        if self.agent.parent is not None and finishes:
            await self._stage.call(self.agent, self._end)

    async def poll(self, every_s: float) -> None:
        """Ask by the clock."""
        await self.appeared.wait()
        while True:
            await self._stage.sleep(every_s)
            await self._stage.call(self.agent, lambda gateway: self.read(gateway, "poll"))

    async def heed(self) -> None:
        """Have a turn whenever something waits that was told without a gateway."""
        while True:
            await self._heed.wait()
            self._heed.clear()
            if self.mind.waiting() and not self._is_busy():
                self._stage.record.woken.append(Woken(self._stage.now_s(), self.agent.name))
                await self._stage.call(self.agent, lambda gateway: self.read(gateway, "wake"))

    def rouse(self) -> None:
        """Something waits."""
        self._heed.set()

    def knows(self, target: str, version: int) -> None:
        """The agent has seen the target's state."""
        self.known[target] = max(version, self.known.get(target, 0))
        self._stage.record.learned.append(Learned(self._stage.now_s(), self.agent.name, target, version))

    def process_died(self, process: Process) -> None:
        """What the agent had open there is gone with it."""
        here = [turn for turn in self._open if turn.loop is process.loop]
        for turn in here:
            self._close(turn, "died")
        if here or self.agent.gateway == process.name:
            self.mind.died()

    def finish(self) -> None:
        """The run is over; what the agent was told in a turn that is still open it has been told."""
        for turn in self._open:
            self._learn(turn)
        self._open.clear()

    async def _appear(self) -> None:
        stage = self._stage
        if self.agent.parent is not None:
            parent = stage.players[self.agent.parent]
            await parent.appeared.wait()
            parent.knows(self.agent.name, await stage.call(parent.agent, partial(_spawned, parent.agent.key, self.agent)))
        if self.agent.external is not None:
            await stage.adopt(self.agent)
        else:
            await stage.call(self.agent, self.open_session)
        self.appeared.set()
        for target in self.agent.watches:
            other = stage.players[target]
            if other.agent.starts_s <= self.agent.starts_s:
                await other.appeared.wait()
            self.knows(target, await stage.call(self.agent, partial(self._watch, other.agent.key)))

    async def open_session(self, gateway: Gateway) -> None:
        """Have this gateway host the session."""
        await gateway.open_session(self.agent.key, label=self.agent.role)

    async def _do(self, planned: PlannedTurn) -> None:
        """Have a turn; again, if it fails or its process dies."""
        done: set[int] = set()
        fails = planned.fails
        while True:
            process = await self._stage.running(self.agent)
            try:
                await process.call(partial(self._plan_turn, planned, fails, done))
                return
            except ProcessCrashed:
                await self._stage.sleep(LATE_S)
            except (TurnFailed, KizukiError):
                fails = False
                await self._stage.sleep(RETRY_S)

    # -- in a process ------------------------------------------------------------------------------------------------------------

    def wake(self, gateway: Gateway) -> bool:
        """The gateway wakes the agent, which is busy in a turn, or has one."""
        if self._is_busy():
            return False
        reading = asyncio.get_running_loop().create_task(self.read(gateway, "wake"), name=f"wake of {self.agent.name}")
        self._reading.add(reading)
        reading.add_done_callback(self._reading.discard)
        return True

    async def read(self, gateway: Gateway, kind: TurnKind) -> None:
        """A turn in which the agent does nothing but read what it is told."""
        try:
            async with self._turn(gateway, kind) as turn:
                # What the plan says next is not put off by it.
                await self._until(min(turn.seen.begins_s + READS_S, self._next_s - LATE_S))
        except KizukiError as error:
            self._stage.note(self.agent.gateway, f"{kind} of {self.agent.name}: {error}")

    async def _plan_turn(self, planned: PlannedTurn, fails: bool, done: set[int], gateway: Gateway) -> None:
        """Catch up with all that has no room in one prompt, then act. `done` are the acts that need not be done again."""
        while True:
            async with self._turn(gateway, "plan") as turn:
                if turn.told.remaining:
                    turn.seen.kind = "catch-up"
                    continue
                late_s = turn.seen.begins_s - planned.begins_s
                for index, act in enumerate(planned.acts):
                    if index not in done:
                        await self._until(act.at_s + (late_s if late_s > LATE_S else 0.0))
                        if fails and index == len(planned.acts) - 1:
                            raise TurnFailed
                        done.add(index)
                        self._judge(act, turn)
                        await self._act(gateway, act)
                return

    @asynccontextmanager
    async def _turn(self, gateway: Gateway, kind: TurnKind) -> AsyncIterator[OpenTurn]:
        turn = OpenTurn(TurnSeen(self.agent.name, kind, self._stage.now_s()), asyncio.get_running_loop())
        self._stage.record.turns.append(turn.seen)
        self._open.append(turn)
        try:
            async with self.mind.opened(gateway, self.known, polls=kind == "poll") as turn.told:
                turn.told_at_s = self._stage.now_s()
                turn.seen.lines = turn.told.lines
                yield turn
        except BaseException:
            # A dead process's turn was closed at its death, and one at the run's end then; what runs here is only their burial.
            if turn in self._open:
                self._close(turn, "failed")
                self.mind.failed()
            raise
        self._learn(turn)
        self._close(turn, "well")

    async def _act(self, gateway: Gateway, act: PlannedAct) -> None:
        step, players = act.step, self._stage.players
        for target in act.checks:
            since = self.known.get(target)
            if since is not None:
                self.knows(target, await self.mind.ask(gateway, target, since))
        if step.changes_goal_of is not None:
            await gateway.goal_changed(players[step.changes_goal_of].agent.key, "updated", actor=Actor.agent(self.agent.key))
        if step.sends_to is not None:
            key = players[step.sends_to].agent.key
            await gateway.sessions_send(self.agent.key, key, step.does, watch=True, timeout_s=0)
            self._stage.record.sent.append(Sent(self._stage.now_s(), self.agent.name, step.sends_to))
            if step.sends_to not in self.known:
                self.knows(step.sends_to, (await gateway.session_status(key))["stateVersion"])

    def _is_busy(self) -> bool:
        """Whether it is in a turn, or about to be."""
        return bool(self._open) or self._next_s - self._stage.now_s() <= LATE_S

    def _judge(self, act: PlannedAct, turn: OpenTurn) -> None:
        """What the agent believes at the moment at which it acts, against what is true."""
        stale, preventable, informed = [], [], []
        name, truth = self.agent.name, self._stage.truth
        for target in act.assumes:
            version = max(self.known.get(target, -1), turn.told.versions.get(target, -1))
            unknown = truth.unknown(name, target, version) if target in self.known else []
            if unknown:
                stale.append(target)
            elif truth.has_changed(name, target, version):
                informed.append(target)
            if any(event.at_s < turn.seen.begins_s for event in unknown):
                preventable.append(target)
        seen = ActSeen(self._stage.now_s(), name, act.step.does, act.assumes, tuple(stale), tuple(preventable), tuple(informed))
        self._stage.record.acts.append(seen)

    def _learn(self, turn: OpenTurn) -> None:
        for target, version in turn.told.versions.items():
            self.known[target] = max(version, self.known.get(target, 0))
            self._stage.record.learned.append(Learned(turn.told_at_s, self.agent.name, target, version))

    def _close(self, turn: OpenTurn, ended: Ended) -> None:
        turn.seen.ends_s, turn.seen.ended = self._stage.now_s(), ended
        self._open.remove(turn)
        if self.mind.waiting():
            self.rouse()

    async def _watch(self, key: str, gateway: Gateway) -> int:
        await gateway.watch(self.agent.key, key)
        version: int = (await gateway.session_status(key))["stateVersion"]
        return version

    async def _end(self, gateway: Gateway) -> None:
        await gateway.run_ended(self.agent.key, run_id=_run_of(self.agent), outcome=self.agent.ends)

    async def _until(self, at_s: float) -> None:
        await asyncio.sleep(max(0.0, at_s - self._stage.now_s()))


async def _spawned(parent_key: str, child: Agent, gateway: Gateway) -> int:
    """The version of a child that its parent knows from its birth."""
    event = await gateway.spawn(parent_key, child.key, run_id=_run_of(child))
    return 0 if event is None else event.sequence


def _run_of(agent: Agent) -> str:
    return f"run of {agent.name}"
