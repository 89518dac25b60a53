"""What of a run is worth a line in a sequence diagram, and which lifelines it needs. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from ..playing.record import EventSeen, Record
from ..scenario import Scenario

Look = Literal["person", "agent", "notice", "act", "stale", "system", "gateway"]

AGENTS_MAX: Final = 6
PEOPLE_MAX: Final = 3
ROWS_MAX: Final = 46
TOGETHER_S: Final = 300.0
"""What repeats within this time is one row."""
WORLD: Final = ""
"""The lifeline of nobody: a row that goes across."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the diagram."""

    at_s: float
    source: str
    target: str
    """The same as `source` for what an agent does by itself."""
    what: str
    look: Look
    times: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        """Whose lifelines it needs."""
        return tuple(name for name in dict.fromkeys((self.source, self.target)) if name != WORLD)


@dataclass(frozen=True, slots=True)
class Diagram:
    """Its lifelines, its rows, and what had no room."""

    people: tuple[str, ...]
    agents: tuple[str, ...]
    rows: tuple[Row, ...]
    agents_left_out: int
    rows_left_out: int
    seen_until_s: float


def sequence_of(scenario: Scenario, record: Record) -> Diagram:
    """Choose what to draw of a run with kizuki."""
    rows = sorted(_rows(scenario, record), key=lambda row: row.at_s)
    agents = _chosen(scenario, rows)
    people = [person.name for person in scenario.people][:PEOPLE_MAX]
    drawn = _merged([row for row in rows if all(name in (*agents, *people) for name in row.names)])
    shown = drawn[:ROWS_MAX]
    used = {name for row in shown for name in row.names}
    return Diagram(
        tuple(name for name in people if name in used),
        tuple(name for name in agents if name in used),
        tuple(shown),
        len(scenario.agents) - len([name for name in agents if name in used]),
        len(drawn) - len(shown),
        shown[-1].at_s if shown else 0.0,
    )


def _chosen(scenario: Scenario, rows: Sequence[Row]) -> list[str]:
    """The agents to whom most happens that is told of; those who act on it before those to whom it is done."""
    weight: Counter[str] = Counter()
    for row in rows:
        for name in row.names:
            weight[name] += 3 if row.look in ("stale", "notice") else 1
    names = [agent.name for agent in scenario.agents]
    return sorted(sorted(names, key=lambda name: -weight[name])[:AGENTS_MAX], key=names.index)


def _rows(scenario: Scenario, record: Record) -> Iterator[Row]:
    for gateway in record.gateways:
        if gateway.at_s > 1 or not gateway.up:
            yield Row(gateway.at_s, WORLD, WORLD, f"gateway {gateway.gateway} {'is back' if gateway.up else 'is killed'}", "gateway")
    yield from _visits(record)
    yield from (Row(each.at_s, each.sender, each.receiver, "sends a message", "agent") for each in record.sent)
    yield from (row for event in record.events for row in _event(scenario, event))
    yield from (Row(each.at_s, each.target, each.agent, "notice", "notice") for each in record.notices)
    yield from _turns(record)
    yield from _acts(record)


def _visits(record: Record) -> Iterator[Row]:
    for visit in record.visits:
        yield Row(
            visit.at_s, visit.person, visit.target, "changes the goal" if visit.does == "goal" else "types into the session", "person"
        )


def _event(scenario: Scenario, event: EventSeen) -> Iterator[Row]:
    match event.kind:
        case "child_spawned":
            yield Row(event.at_s, event.actor, event.target, "spawns", "agent")
        case "goal_changed" if event.actor in scenario.by_name:
            yield Row(event.at_s, event.actor, event.target, "changes the goal", "agent")
        case "run_completed" | "run_failed" | "compacted" | "upstream_missing":
            yield Row(event.at_s, event.target, event.target, event.summary, "system")


def _turns(record: Record) -> Iterator[Row]:
    for turn in record.turns:
        if turn.ends_s is not None and turn.ended == "failed":
            yield Row(turn.ends_s, turn.agent, turn.agent, "turn fails: its notices go back", "system")
        elif turn.ends_s is not None and turn.ended == "died":
            yield Row(turn.ends_s, turn.agent, turn.agent, "turn is lost: its notices will be shown again", "system")


def _acts(record: Record) -> Iterator[Row]:
    """Every act on a stale assumption, and the first that profits from what its agent was told."""
    told: dict[str, float] = {}
    notices = sorted(record.notices, key=lambda notice: notice.at_s)
    acts = iter(record.acts)
    for act in acts:
        latest = max((each.at_s for each in notices if each.agent == act.agent and each.at_s <= act.at_s), default=None)
        if act.stale:
            yield Row(act.at_s, act.agent, act.agent, f"stale: {act.does}", "stale")
        elif latest is not None and act.informed and told.get(act.agent) != latest:
            told[act.agent] = latest
            yield Row(act.at_s, act.agent, act.agent, act.does, "act")


def _merged(rows: Sequence[Row]) -> list[Row]:
    """Repeats are counted: those of one sort from one to another, also with other rows of the like in between."""
    merged: list[Row] = []
    for row in rows:
        like = next((index for index in range(len(merged) - 1, max(-1, len(merged) - 4), -1) if _alike(merged[index], row)), None)
        if like is None or any(set(between.names) & set(row.names) and between.look != row.look for between in merged[like + 1 :]):
            merged.append(row)
        else:
            merged[like] = replace(merged[like], times=merged[like].times + 1)
    return merged


def _alike(one: Row, other: Row) -> bool:
    same = (one.source, one.target, one.what, one.look) == (other.source, other.target, other.what, other.look)
    return same and one.look != "gateway" and other.at_s - one.at_s < TOGETHER_S
