"""What an agent is told at the start of a turn, in each mode. This, and who is woken, is all that differs between the modes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

from ...gateway import Gateway
from ..scenario import Agent, Polling
from .modes import Mode
from .record import EventSeen, Forgot, NoticeSeen, Record


@dataclass(slots=True)
class Told:
    """What an agent was told in a turn. It stays so if the turn ends well."""

    versions: dict[str, int] = field(default_factory=dict)
    """The version of each target that it knows now."""
    lines: int = 0
    """Prompt lines that this took."""
    remaining: int = 0
    """Notices that had no room."""


class Mind(Protocol):
    """How one agent learns of changes."""

    def opened(self, gateway: Gateway, known: Mapping[str, int], *, polls: bool) -> AbstractAsyncContextManager[Told]:
        """One turn. `known` is what the agent knows of each target; `polls` is whether this turn exists to ask."""
        ...

    async def ask(self, gateway: Gateway, target: str, since: int) -> int:
        """Read what changed after a version, to its end; the version that is known now."""
        ...

    def hears(self, event: EventSeen) -> None:
        """An event was committed on a target of the agent's."""
        ...

    def failed(self) -> None:
        """The agent's turn failed: what it was told in it is not remembered."""
        ...

    def died(self) -> None:
        """The agent's process died, and its memory with it."""
        ...

    def waiting(self) -> bool:
        """Whether something waits to be told."""
        ...


class Asking:
    """What all modes share: asking for a status, and being counted."""

    def __init__(self, agent: Agent, agents: Mapping[str, Agent], record: Record) -> None:
        self.agent = agent
        self.agents = agents
        self.names = {each.key: name for name, each in agents.items()}
        self.record = record

    def hears(self, event: EventSeen) -> None:
        """Nothing comes to mind."""

    def failed(self) -> None:
        """There is nothing to lose."""

    def died(self) -> None:
        """As above."""

    def waiting(self) -> bool:
        return False

    async def ask(self, gateway: Gateway, target: str, since: int) -> int:
        """Read what changed after a version, to its end; the version that is known now."""
        while True:
            status = await gateway.session_status(self.agents[target].key, changes_since=since)
            changes = status["stateChanges"]
            self.record.status_calls += 1
            self.record.rows_read += len(changes["events"])
            if not changes["truncated"]:
                version: int = status["stateVersion"]
                return version
            since = changes["nextChangesSince"]


class Kizuki(Asking):
    """Reads its notices, and asks what changed."""

    @asynccontextmanager
    async def opened(self, gateway: Gateway, known: Mapping[str, int], *, polls: bool) -> AsyncIterator[Told]:  # noqa: ARG002
        async with gateway.turn(self.agent.key) as turn:
            told = Told(lines=len(turn.notices), remaining=turn.remaining)
            for notice in turn.notices:
                target = self.names[notice.target]
                self.record.notices.append(NoticeSeen(_now(), self.agent.name, target))
                told.versions[target] = await self.ask(gateway, target, notice.changes_since)
            yield told


class Off(Asking):
    """Is told nothing."""

    @asynccontextmanager
    async def opened(self, gateway: Gateway, known: Mapping[str, int], *, polls: bool) -> AsyncIterator[Told]:  # noqa: ARG002
        yield Told()


class Polls(Asking):
    """Asks all its targets, whatever they do, in every n-th turn."""

    def __init__(self, agent: Agent, agents: Mapping[str, Agent], record: Record, polling: Polling) -> None:
        super().__init__(agent, agents, record)
        self._every = polling.every_turns
        self._turns = 0

    @asynccontextmanager
    async def opened(self, gateway: Gateway, known: Mapping[str, int], *, polls: bool) -> AsyncIterator[Told]:
        told = Told()
        self._turns += not polls
        if polls or self._turns % self._every == 0:
            for target, version in known.items():
                told.versions[target] = await self.ask(gateway, target, version)
                told.lines += 1
        yield told


class Every(Asking):
    """Has a line in its prompt for each event: of anybody, of any kind. The lines wait in its process's memory."""

    def __init__(self, agent: Agent, agents: Mapping[str, Agent], record: Record) -> None:
        super().__init__(agent, agents, record)
        self._lines: list[EventSeen] = []
        self._shown = False

    def hears(self, event: EventSeen) -> None:
        self._lines.append(event)

    def failed(self) -> None:
        if self._shown:
            self.record.forgot.append(Forgot(_now(), self.agent.name))
        self._shown = False

    def died(self) -> None:
        self._shown = self._shown or bool(self._lines)
        self._lines.clear()
        self.failed()

    def waiting(self) -> bool:
        return bool(self._lines)

    @asynccontextmanager
    async def opened(self, gateway: Gateway, known: Mapping[str, int], *, polls: bool) -> AsyncIterator[Told]:  # noqa: ARG002
        lines, self._lines = self._lines, []
        self._shown = bool(lines)
        for line in lines:
            self.record.notices.append(NoticeSeen(_now(), self.agent.name, line.target))
        yield Told({line.target: line.sequence for line in lines}, len(lines))
        self._shown = False


def _now() -> float:
    """Seconds since the run began, on whichever loop this is."""
    return asyncio.get_running_loop().time()


def make_mind(mode: Mode, agent: Agent, agents: Mapping[str, Agent], record: Record, polling: Polling) -> Mind:
    """The mind of an agent in this mode."""
    match mode:
        case "kizuki":
            return Kizuki(agent, agents, record)
        case "off":
            return Off(agent, agents, record)
        case "polling":
            return Polls(agent, agents, record, polling)
        case "every":
            return Every(agent, agents, record)
