"""What happens in a scenario, drawn from a seed before anything is played: so it is the same whatever the agents know. Pure."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from .scenario import Agent, Does, Person, Scenario, Step


@dataclass(frozen=True, slots=True)
class PlannedAct:
    """What an agent does at a moment of a turn."""

    at_s: float
    step: Step
    assumes: tuple[str, ...]
    """What it believes something about; those that were picked, where some are picked."""
    checks: tuple[str, ...]
    """Whom it asks for their state, by itself."""


@dataclass(frozen=True, slots=True)
class PlannedTurn:
    """One turn of an agent's plan, from its start to its last act."""

    begins_s: float
    acts: tuple[PlannedAct, ...]
    fails: bool
    """Whether it fails at its end when it is tried first."""

    @property
    def ends_s(self) -> float:
        """When it is over."""
        return self.acts[-1].at_s


@dataclass(frozen=True, slots=True)
class Visit:
    """A person steps into a session."""

    at_s: float
    person: str
    channel: str
    does: Does
    target: str
    number: int
    """Of the person's visits."""


@dataclass(frozen=True, slots=True)
class Life:
    """Everything that happens, in absolute times."""

    turns: Mapping[str, tuple[PlannedTurn, ...]]
    """By agent."""
    finished: frozenset[str]
    """The agents whose plans come to their end."""
    visits: tuple[Visit, ...]


def draw_life(scenario: Scenario, seed: int) -> Life:
    """The life that this seed gives. Each agent and person draws from a source of its own, so that one more changes nobody else's."""
    turns, finished = {}, set()
    for agent in scenario.agents:
        turns[agent.name], finishes = _turns(scenario, agent, random.Random(f"{seed}/agent/{agent.name}"))
        finished |= {agent.name} if finishes else set()
    visits = [visit for person in scenario.people for visit in _visits(scenario, person, random.Random(f"{seed}/person/{person.name}"))]
    return Life(
        MappingProxyType(turns), frozenset(finished), tuple(sorted(visits, key=lambda visit: (visit.at_s, visit.person, visit.number)))
    )


def _turns(scenario: Scenario, agent: Agent, rng: random.Random) -> tuple[tuple[PlannedTurn, ...], bool]:
    """As many as end before the scenario does, and whether those are all."""
    turns: list[PlannedTurn] = []
    now_s = agent.starts_s
    for _ in range(agent.rounds if agent.steps else 0):
        for steps in _by_turn([step for step in agent.steps if rng.random() < step.likely]):
            turn = _turn(steps, round(now_s + steps[0].after.draw(rng), 3), rng)
            if turn.ends_s >= scenario.lasts_s:
                return tuple(turns), False
            turns.append(turn)
            now_s = turn.ends_s
    return tuple(turns), bool(turns)


def _by_turn(steps: list[Step]) -> Iterator[list[Step]]:
    """The steps of each turn."""
    group: list[Step] = []
    for step in steps:
        if group and not step.same_turn:
            yield group
            group = []
        group.append(step)
    if group:
        yield group


def _turn(steps: list[Step], begins_s: float, rng: random.Random) -> PlannedTurn:
    acts: list[PlannedAct] = []
    now_s = begins_s
    for index, step in enumerate(steps):
        now_s = round(now_s + (step.after.draw(rng) if index else 0.0) + step.takes.draw(rng), 3)
        acts.append(PlannedAct(now_s, step, _picked(step, rng), step.checks))
    dice = [rng.random() for _ in steps]  # each step draws, so that none decides what the next draws
    return PlannedTurn(begins_s, tuple(acts), any(each < step.fails for each, step in zip(dice, steps, strict=True)))


def _picked(step: Step, rng: random.Random) -> tuple[str, ...]:
    if step.picks is None or step.picks >= len(step.assumes):
        return step.assumes
    chosen = set(rng.sample(range(len(step.assumes)), step.picks))
    return tuple(name for index, name in enumerate(step.assumes) if index in chosen)


def _visits(scenario: Scenario, person: Person, rng: random.Random) -> Iterator[Visit]:
    number = 0
    for begins_s in _occasions(scenario, person, rng):
        target = rng.choice(person.into)
        for at_s in sorted(round(begins_s + rng.uniform(0, person.within_s), 3) for _ in range(person.burst)):
            if at_s < scenario.lasts_s:
                number += 1
                yield Visit(at_s, person.name, person.channel, person.does, target, number)


def _occasions(scenario: Scenario, person: Person, rng: random.Random) -> Iterator[float]:
    yield from person.at_s
    now_s = 0.0
    while person.per_hour:
        now_s += rng.expovariate(person.per_hour / 3_600)
        if now_s >= scenario.lasts_s:
            return
        yield round(now_s, 3)
