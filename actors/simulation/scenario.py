"""Scenarios: teams of agents, what they plan, and what happens to them, as frozen values. `scenario_file` explains each field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

from ..keys import is_subagent
from .durations import Span

Does = Literal["message", "goal"]
Ends = Literal["ok", "error", "timeout", "cancelled"]

NO_TIME: Final = Span(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a plan."""

    does: str
    takes: Span
    after: Span = NO_TIME
    assumes: tuple[str, ...] = ()
    picks: int | None = None
    checks: tuple[str, ...] = ()
    changes_goal_of: str | None = None
    sends_to: str | None = None
    same_turn: bool = False
    likely: float = 1.0
    fails: float = 0.0


@dataclass(frozen=True, slots=True)
class Agent:
    """One agent; one of `count`, where there are several."""

    name: str
    role: str
    key: str
    """Of its session; canonical."""
    gateway: str
    parent: str | None = None
    starts_s: float = 0.0
    watches: tuple[str, ...] = ()
    external: str | None = None
    """The catalog that it is adopted from."""
    vanishes_s: float | None = None
    runs: bool = True
    rounds: int = 1
    ends: Ends = "ok"
    compacts_s: tuple[float, ...] = ()
    steps: tuple[Step, ...] = ()

    @property
    def is_woken(self) -> bool:
        """Whether there is somebody to be woken: sub-agents see what there is on their next turn (rule 4.9)."""
        return self.runs and self.external is None and not is_subagent(self.key)


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who steps in."""

    name: str
    channel: str
    into: tuple[str, ...]
    does: Does = "message"
    per_hour: float = 0.0
    at_s: tuple[float, ...] = ()
    burst: int = 1
    within_s: float = 0.0


@dataclass(frozen=True, slots=True)
class GatewayProcess:
    """A process with its gateway."""

    name: str
    dies_s: tuple[float, ...] = ()
    down_s: float | None = None


@dataclass(frozen=True, slots=True)
class Polling:
    """What naive polling is."""

    every_turns: int = 3
    every_s: float | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """A team and its life. Groups are written out: every name in it is one agent's."""

    name: str
    title: str
    about: str
    lasts_s: float
    agents: tuple[Agent, ...]
    people: tuple[Person, ...]
    gateways: tuple[GatewayProcess, ...]
    polling: Polling
    text: str = field(repr=False)
    """As it was written."""

    def agent(self, name: str) -> Agent:
        """The agent of this name. Raises `KeyError`."""
        return self.by_name[name]

    @property
    def by_name(self) -> Mapping[str, Agent]:
        """The agents by their names, in their order."""
        return MappingProxyType({agent.name: agent for agent in self.agents})

    def targets_of(self, agent: Agent) -> tuple[str, ...]:
        """Whom the agent watches, sooner or later, in the order of the file."""
        sent = (step.sends_to for step in agent.steps if step.sends_to is not None)
        wanted = {*agent.watches, *sent}
        return tuple(other.name for other in self.agents if other.name in wanted or other.parent == agent.name)
