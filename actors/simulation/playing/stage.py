"""One run of a scenario in one mode: starts the gateways, lets agents and people live, and has processes die when they are to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Final, TypeVar

from ...config import GatewayConfig
from ...gateway import Gateway
from ...identity import Actor
from ..life import Life, Visit
from ..process import Host, Process, ProcessCrashed
from ..scenario import Agent, GatewayProcess, Scenario
from ..world import World
from .external import ExternalSessions
from .minds import make_mind
from .modes import Mode
from .player import Player
from .record import EventSeen, GatewaySeen, Record, VisitSeen, Woken
from .truth import Truth, now_s

T = TypeVar("T")

LOOK_S: Final = 2.0
"""How often gateways look at each other, which takes most of the time of a simulation, and how often whoever waits for one looks again."""
LOOK_ALONE_S: Final = 60.0


class Stage:
    """Plays one run; made for one world."""

    def __init__(self, world: World, scenario: Scenario, life: Life, record: Record, truth: Truth) -> None:
        self.world = world
        self.record = record
        self.truth = truth
        self.players: dict[str, Player] = {}
        self.lasts_s = scenario.lasts_s
        self._scenario = scenario
        self._life = life
        self._open: dict[str, Process] = {}
        self._external = _external_sessions(scenario)

    async def play(self) -> None:
        """The world's story."""
        self._cast(self.record.mode)
        self.truth.told.append(self._hear)
        lives: list[asyncio.Task[None]] = []
        for gateway in self._scenario.gateways:
            await self._start(gateway.name)
        for work in self._works():
            lives.append(asyncio.create_task(work))  # noqa: PERF401 - they begin in their order, and not all at once
        await self._watched(lives)
        for player in self.players.values():
            player.finish()
        for task in lives:
            task.cancel()
        await asyncio.gather(*lives, return_exceptions=True)

    def now_s(self) -> float:
        """Seconds since the run began."""
        return now_s(self.world)

    async def sleep(self, seconds: float) -> None:
        """Let virtual time pass."""
        await self.world.sleep(seconds)

    def note(self, gateway: str, what: str) -> None:
        """Add a line to the trace."""
        self.world.note(gateway, what)

    async def until(self, at_s: float) -> None:
        """Wait for a moment."""
        await self.world.sleep(max(0.0, at_s - self.now_s()))

    async def running(self, agent: Agent) -> Process:
        """The process that runs the agent now: its own, or any other while that is down."""
        while True:
            process = self._open.get(agent.gateway) or next(iter(self._open.values()), None)
            if process is not None:
                return process
            await self.world.sleep(LOOK_S)

    async def call(self, agent: Agent, work: Callable[[Gateway], Awaitable[T]]) -> T:
        """Have it done where the agent runs, and again if the process dies before it answers."""
        while True:
            process = await self.running(agent)
            try:
                return await process.call(work)
            except ProcessCrashed:
                await self.world.sleep(LOOK_S)

    async def adopt(self, agent: Agent) -> None:
        """Link the agent's session to its thread."""
        catalog = str(agent.external)
        await self.call(agent, lambda gateway: gateway.adopt(catalog, agent.name, key=agent.key))

    # -- inside ----------------------------------------------------------------------------------------------------------------

    def _cast(self, mode: Mode) -> None:
        by_name = self._scenario.by_name
        for name, agent in by_name.items():
            self.players[name] = Player(agent, make_mind(mode, agent, by_name, self.record, self._scenario.polling), self)

    def _works(self) -> list[Coroutine[Any, Any, None]]:
        works: list[Coroutine[Any, Any, None]] = [
            player.live(self._life.turns[name], finishes=name in self._life.finished) for name, player in self.players.items()
        ]
        works += [self._visit(visit) for visit in self._life.visits]
        works += [self._kill(gateway) for gateway in self._scenario.gateways if gateway.dies_s]
        for agent in self._scenario.agents:
            works += [self._compact(agent, at_s) for at_s in agent.compacts_s]
            if agent.vanishes_s is not None:
                works.append(self._vanish(agent, agent.vanishes_s))
        return works + self._further_works(self.record.mode)

    def _further_works(self, mode: Mode) -> list[Coroutine[Any, Any, None]]:
        every_s = self._scenario.polling.every_s
        running = [player for player in self.players.values() if player.agent.runs and player.agent.external is None]
        if mode == "polling" and every_s is not None:
            return [player.poll(every_s) for player in running if self._scenario.targets_of(player.agent)]
        return [player.heed() for player in running if player.agent.is_woken] if mode == "every" else []

    async def _watched(self, lives: list[asyncio.Task[None]]) -> None:
        """Until the scenario is over; what fails in it before is an error of the run."""
        over = asyncio.create_task(self.until(self._scenario.lasts_s))
        waiting = {over, *lives}
        while not over.done():
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()

    async def _start(self, name: str) -> None:
        """Start a process; with it the agents that it hosts."""
        process = await self.world.start(name, self._host(name))
        self._open[name] = process
        self.record.gateways.append(GatewaySeen(self.now_s(), name, up=True))
        for player in self.players.values():
            if player.agent.gateway == name and player.appeared.is_set() and player.agent.external is None:
                await self.call(player.agent, player.open_session)

    async def _kill(self, gateway: GatewayProcess) -> None:
        for at_s in gateway.dies_s:
            await self.until(at_s)
            process = self._open.pop(gateway.name, None)
            if process is None:
                continue
            process.crash("as the scenario says")
            self.record.gateways.append(GatewaySeen(self.now_s(), gateway.name, up=False))
            for player in self.players.values():
                player.process_died(process)
            if gateway.down_s is not None:
                await self.world.sleep(gateway.down_s)
                await self._start(gateway.name)

    async def _visit(self, visit: Visit) -> None:
        await self.until(visit.at_s)
        self.record.visits.append(VisitSeen(self.now_s(), visit.person, visit.target, visit.does))
        agent = self.players[visit.target].agent
        if agent.external is not None:
            self._external[agent.external].typed(agent.name, self.world.clock.now_ms())
        else:
            await self.call(agent, partial(_step_in, visit, agent.key))

    async def _compact(self, agent: Agent, at_s: float) -> None:
        await self.until(at_s)
        await self.call(agent, lambda gateway: gateway.compacted(agent.key, operation_id=f"compaction at {at_s:g}"))

    async def _vanish(self, agent: Agent, at_s: float) -> None:
        await self.until(at_s)
        self._external[str(agent.external)].vanish(agent.name)

    def _host(self, name: str) -> Host:
        """One gateway alone checks the catalogs, as it should be."""
        gateways = self._scenario.gateways
        config = GatewayConfig(poll_interval_s=LOOK_S if len(gateways) > 1 else LOOK_ALONE_S)
        catalogs = tuple(self._external.values()) if name == gateways[0].name else ()
        return Host(config=config, wake=self._wake, catalogs=catalogs)

    def _wake(self, process: Process, session_key: str, _reasons: tuple[str, ...]) -> bool | None:
        """Rings for everybody; who is shown no notices is not woken, and nobody is who never runs."""
        player = next((player for player in self.players.values() if player.agent.key == session_key), None)
        if self.record.mode != "kizuki" or player is None or not player.agent.is_woken:
            return None
        woken = player.wake(process.gateway)
        if woken:
            self.record.woken.append(Woken(self.now_s(), player.agent.name))
        return woken

    def _hear(self, event: EventSeen) -> None:
        for player in self.players.values():
            if event.target in player.known:
                player.mind.hears(event)
                player.rouse()


def _external_sessions(scenario: Scenario) -> dict[str, ExternalSessions]:
    names = dict.fromkeys(agent.external for agent in scenario.agents if agent.external is not None)
    return {name: ExternalSessions(name, [agent.name for agent in scenario.agents if agent.external == name]) for name in names}


async def _step_in(visit: Visit, key: str, gateway: Gateway) -> None:
    if visit.does == "goal":
        await gateway.goal_changed(key, "updated", actor=Actor.human(visit.person))
    else:
        repeat = f"{visit.person}/{visit.number}"
        await gateway.human_message(key, channel=visit.channel, actor_id=visit.person, dedupe_key=repeat)
