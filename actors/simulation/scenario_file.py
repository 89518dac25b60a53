"""The file of a scenario, in TOML: every field of it, and how it is read into frozen values. Pure.

    title = "A person takes over a sub-agent"       # one line; for --list and the report
    about = "..."                                   # optional: what to look for
    lasts = "1h"                                    # how much of their life is simulated

    [polling]                                       # optional: what the mode "naive polling" does
    every_turns = 3                                 # asks for each target's status in every n-th turn
    every = "10m"                                   # and by the clock, in turns of its own

    [[gateways]]                                    # optional: processes on one database; one called "a" by default
    name = "a"
    dies = ["12m"]                                  # killed at these times,
    down = "20s"                                    # and started again after so long; without it, never

    [[agents]]
    name = "manager"                                # no white space, colon or quote; names its session
    role = "manager"                                # any word
    parent = "..."                                  # spawned by that agent, which watches it from then on; else a main session
    count = 200                                     # so many of them: worker-001, worker-002, ...; "worker" means all of them
    gateway = "a"                                   # where it runs; while that is down, at any other
    starts = "0s"                                   # when it is opened, or spawned
    watches = ["worker"]                            # watches these from its start
    external = "claude"                             # a session in an agent's own tool, adopted at the start; has no plan
    vanishes = "20m"                                # an external one: when its source goes
    runs = true                                     # false: nobody ever runs a turn of it
    rounds = 10                                     # how often the plan is gone through, as far as `lasts` reaches
    ends = "ok"                                     # a child with a plan: how its run ends; ok, error, timeout or cancelled
    compacts = ["30m"]                              # its history is compacted at these times

    [[agents.steps]]                                # each is a turn, at the end of which the agent acts
    does = "merges the branch"
    takes = "2m..4m"                                # from the start of the turn to the act
    after = "1m"                                    # rests before it
    assumes = ["worker"]                            # acts on what it believes about these
    picks = 3                                       # of them, so many each time
    checks = ["worker"]                             # the act: asks for their state by itself, whatever it was told
    changes_goal_of = "worker"                      # the act: sets another session's goal
    sends_to = "worker"                             # the act: sessions_send, and watches the receiver from then on
    same_turn = true                                # goes on in the turn of the step before: no notices in between
    likely = 0.2                                    # how likely this step is taken at all in a round
    fails = 0.1                                     # how likely the turn fails at its end, and is tried once more

    [[people]]
    name = "Ana"
    channel = "telegram"
    into = ["worker"]                               # whose sessions they step into
    does = "message"                                # or "goal": changes the goal
    per_hour = 4                                    # at random, so many an hour,
    at = ["10m", "12m 30s"]                         # or at these times
    burst = 20                                      # each time so many of them,
    within = "2m"                                   # in so long

What happens at a given time happens before the end: a time from `lasts` on is refused.
An agent may only assume something about, or check, sessions that it watches: its children, what it `watches`, and whom it `sends_to`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, cast

from ..errors import InvalidSessionKey, shown
from ..keys import canonical_key
from .durations import ALLOWED, duration_text
from .places import Place, ScenarioError
from .scenario import NO_TIME, Agent, Does, Ends, GatewayProcess, Person, Polling, Scenario, Step

AGENTS_MAX: Final = 2_000
BYTES_MAX: Final = 1 << 20
NAME_MAX: Final = 64
_NAME: Final = f"write a name of 1 to {NAME_MAX} printable characters, without white space, colon or double quote"
ENDS: Final = ("ok", "error", "timeout", "cancelled")


def parse_scenario(name: str, text: str) -> Scenario:
    """Read a scenario. Raises `ScenarioError`, which says what is wrong where, with which value, and what is allowed."""
    if len(text) > BYTES_MAX:
        raise ScenarioError("the file", f"it has {len(text):,} characters: at most {BYTES_MAX:,} are read")
    try:
        top = Place(tomllib.loads(text), "")
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError("the file", f"it is no TOML: {error}") from error
    except RecursionError:
        raise ScenarioError("the file", "it is nested too deeply") from None
    except ValueError:  # of `int`, which reads no more than 4,300 digits
        raise ScenarioError("the file", "it is no TOML that can be read: a number has too many digits") from None
    return _Reader(name, text, top).scenario()


class _Reader:
    """Reads the top of the document; what refers to names is checked when all of them are known."""

    def __init__(self, name: str, text: str, top: Place) -> None:
        self._name = name
        self._text = text
        self._top = top
        self._agents: dict[str, Agent] = {}
        self._groups: dict[str, tuple[str, ...]] = {}
        self._keys: set[str] = set()
        self._lasts_s = 0.0

    def scenario(self) -> Scenario:
        top = self._top
        title, about = top.text("title"), top.text("about", "")
        self._lasts_s = lasts_s = float(top.duration("lasts"))
        if not lasts_s:
            top.wrong("lasts", f"nothing happens in no time; {ALLOWED}")
        gateways = tuple(self._gateway(place) for place in top.tables("gateways")) or (GatewayProcess("a"),)
        _check_unique(gateways, "gateways")
        agents = self._read_agents([gateway.name for gateway in gateways])
        people = tuple(self._person(place) for place in top.tables("people"))
        _check_unique(people, "people")
        polling = _polling(top.table("polling"))
        top.close()
        return Scenario(self._name, title, about, lasts_s, agents, people, gateways, polling, self._text)

    def _gateway(self, place: Place) -> GatewayProcess:
        gateway = _gateway(place)
        self._check_within(place, "dies", gateway.dies_s)
        return gateway

    def _read_agents(self, gateways: Sequence[str]) -> tuple[Agent, ...]:
        places = list(self._top.tables("agents"))
        if not places:
            self._top.wrong("agents", "write at least one [[agents]]")
        drafts = [draft for place in places for draft in self._draft(place, gateways)]
        for place, agent in drafts:
            checked = self._resolved(place, agent)
            self._check_assumptions(place, checked)
            self._agents[agent.name] = checked
        for place in places:
            place.close()
        return tuple(self._agents.values())

    def _draft(self, place: Place, gateways: Sequence[str]) -> Iterator[tuple[Place, Agent]]:
        name = _name(place)
        place.named(name)
        count = place.count("count", AGENTS_MAX, 1) if "count" in place else None
        if name in self._groups or name in self._agents:
            place.wrong("name", "each agent needs a name of its own")
        names = (name,) if count is None else tuple(f"{name}-{number:0{len(str(count))}}" for number in range(1, count + 1))
        self._groups[name] = names
        steps = tuple(_step(each) for each in place.tables("steps"))
        agent = _agent(place, gateways, steps, self._parent(place))
        self._check_within(place, "starts", [agent.starts_s])
        self._check_within(place, "compacts", agent.compacts_s)
        self._check_within(place, "vanishes", [] if agent.vanishes_s is None else [agent.vanishes_s])
        place.count("count", AGENTS_MAX, 1)
        for each in names:
            member = replace(agent, name=each, key=_key(place, each, agent, self._agents))
            if each in self._agents or member.key in self._keys:
                place.wrong("name", f"there is another agent with the session {member.key}")
            self._agents[each] = member
            self._keys.add(member.key)
            yield place, member
        if len(self._agents) > AGENTS_MAX:
            place.wrong("count", f"there may be {AGENTS_MAX:,} agents in all")

    def _parent(self, place: Place) -> str | None:
        parent = place.text("parent", "") or None
        if parent is not None and parent not in self._agents:
            place.wrong("parent", f"name one agent that stands above it in the file: {_some(self._agents)}")
        if parent is not None and self._agents[parent].external is not None:
            place.wrong("parent", "an external session spawns nobody here")
        return parent

    def _members(self, place: Place, key: str, names: Iterable[str]) -> tuple[str, ...]:
        """The agents that are meant by these names of agents and groups."""
        found: dict[str, None] = {}
        for name in names:
            members = self._groups.get(name) or ((name,) if name in self._agents else None)
            if members is None:
                place.wrong(key, f"there is no agent {shown(name)}: there are {_some(self._groups)}")
            found |= dict.fromkeys(members)
        return tuple(found)

    def _resolved(self, place: Place, agent: Agent) -> Agent:
        steps = []
        for index, step in enumerate(agent.steps):
            named = {"assumes": list(step.assumes), "checks": list(step.checks)}
            at = Place(named | {"sends_to": step.sends_to, "changes_goal_of": step.changes_goal_of}, f"{place.where}.steps[{index + 1}]")
            self._check_one(at, "sends_to", step.sends_to, agent)
            self._check_one(at, "changes_goal_of", step.changes_goal_of, agent)
            steps.append(replace(step, assumes=self._members(at, "assumes", step.assumes), checks=self._members(at, "checks", step.checks)))
        watches = self._members(place, "watches", agent.watches)
        if agent.name in watches:
            place.wrong("watches", "nobody watches itself")
        return replace(agent, watches=watches, steps=tuple(steps))

    def _check_one(self, at: Place, key: str, name: str | None, agent: Agent) -> None:
        if name is not None and (name not in self._agents or name == agent.name):
            at.wrong(key, f"name one other agent: {_some(other for other in self._agents if other != agent.name)}")

    def _check_assumptions(self, place: Place, agent: Agent) -> None:
        children = {other.name for other in self._agents.values() if other.parent == agent.name}
        watched = children.union(agent.watches)
        for index, step in enumerate(agent.steps):
            if step.sends_to is not None:
                watched.add(step.sends_to)
            for key, names in (("assumes", step.assumes), ("checks", step.checks)):
                strange = next((name for name in names if name not in watched), None)
                if strange is None:
                    continue
                at = Place({key: list(names)}, f"{place.where}.steps[{index + 1}]")
                at.wrong(key, f"{agent.name} does not watch {strange}: be its parent, put it into watches, or send to it before")

    def _check_within(self, place: Place, key: str, times_s: Iterable[float]) -> None:
        """What is never to happen was not meant."""
        if any(at_s >= self._lasts_s for at_s in times_s):
            place.wrong(key, f"each time must be before the end of the scenario, which lasts {duration_text(self._lasts_s)}")

    def _person(self, place: Place) -> Person:
        name = place.text("name")
        place.named(name)
        person = Person(
            name,
            place.text("channel", "telegram"),
            self._members(place, "into", place.texts("into")),
            cast("Does", place.choice("does", ("message", "goal"), "message")),
            place.number("per_hour", 3_600, 0.0),
            place.durations("at"),
            place.count("burst", 10_000, 1),
            place.duration("within", 0.0),
        )
        if not person.into:
            place.wrong("into", f"say whose sessions {name} steps into: {_some(self._groups)}")
        if not person.per_hour and not person.at_s:
            place.wrong("at", "say when: at these times, or per_hour")
        self._check_within(place, "at", person.at_s)
        if person.does == "goal" and any(self._agents[into].external for into in person.into):
            place.wrong("does", "in an external session people only write messages")
        place.close()
        return person


def _agent(place: Place, gateways: Sequence[str], steps: tuple[Step, ...], parent: str | None) -> Agent:
    external = place.text("external", "") or None
    agent = Agent(
        "",
        place.text("role", "agent"),
        "",
        place.choice("gateway", gateways, gateways[0]),
        parent,
        place.duration("starts", 0.0),
        place.texts("watches"),
        external,
        place.duration("vanishes", None),
        place.flag("runs", default=True),
        place.count("rounds", 100_000, 1),
        cast("Ends", place.choice("ends", ENDS, "ok")),
        place.durations("compacts"),
        steps,
    )
    if external is None and agent.vanishes_s is not None:
        place.wrong("vanishes", 'only an external session vanishes: write external = "claude" too')
    if external is not None and (steps or parent or agent.watches):
        place.wrong("external", "an external session has neither steps, nor a parent, nor watches: it lives elsewhere")
    if steps and not agent.runs:
        place.wrong("runs", "an agent that never runs has no steps")
    return agent


def _key(place: Place, name: str, agent: Agent, others: Mapping[str, Agent]) -> str:
    if agent.external is not None:
        key = f"agent:main:catalog:{agent.external}:{name}"
    elif agent.parent is None:
        key = f"agent:{name}:main"
    else:
        parent = others[agent.parent].key
        key = f"{parent.removesuffix(':main')}:subagent:{name}"
    try:
        return canonical_key(key)
    except InvalidSessionKey as error:
        place.wrong("external" if agent.external else "name", f"{_NAME} ({error})")


def _step(place: Place) -> Step:
    step = Step(
        place.text("does"),
        place.span("takes"),
        place.span("after", NO_TIME),
        place.texts("assumes"),
        place.count("picks", AGENTS_MAX) if "picks" in place else None,
        place.texts("checks"),
        place.text("changes_goal_of", "") or None,
        place.text("sends_to", "") or None,
        place.flag("same_turn", default=False),
        place.number("likely", 1.0, 1.0),
        place.number("fails", 1.0, 0.0),
    )
    if not step.takes.low_s:
        place.wrong("takes", f"acting takes some time; {ALLOWED}")
    place.count("picks", AGENTS_MAX, 1)
    place.close()
    return step


def _gateway(place: Place) -> GatewayProcess:
    gateway = GatewayProcess(_name(place), place.durations("dies"), place.duration("down", None))
    if gateway.down_s is None and len(gateway.dies_s) > 1:
        place.wrong("dies", "a gateway that is not started again (down) dies once")
    place.close()
    return gateway


def _polling(place: Place | None) -> Polling:
    if place is None:
        return Polling()
    polling = Polling(place.count("every_turns", 100_000, 3), place.duration("every", None))
    if polling.every_s == 0:
        place.wrong("every", f"that would be all the time; {ALLOWED}")
    place.close()
    return polling


def _name(place: Place) -> str:
    name = place.text("name")
    if len(name) > NAME_MAX or any(c.isspace() or c in ':"' for c in name):
        place.wrong("name", _NAME)
    return name


def _check_unique(named: Sequence[GatewayProcess] | Sequence[Person], where: str) -> None:
    names = [each.name for each in named]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise ScenarioError(f"{where}[{index + 1}].name", f"it is {shown(name)}: each needs a name of its own")


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:12]) + (f" and {len(listed) - 12} more" if len(listed) > 12 else "") if listed else "there is none yet"
