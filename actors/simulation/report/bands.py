"""When a watcher's picture of a target was fresh, when it was stale, and when word of that was waiting for its next turn. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from ..playing.record import EventSeen, Learned, Record
from ..scenario import Scenario

State = Literal["fresh", "waiting", "stale"]
Pair = tuple[str, str]
"""A watcher's and a target's name."""


class Band(NamedTuple):
    """A stretch of time in one state."""

    begins_s: float
    ends_s: float
    state: State


class _Moment(NamedTuple):
    at_s: float
    order: int
    kind: Literal["change", "learn", "forget"]
    version: int


def bands(record: Record, pair: Pair) -> list[Band]:
    """The bands of a pair, from the moment at which it exists to the end."""
    watcher, target = pair
    learned = [each for each in record.learned if (each.agent, each.target) == pair]
    if not learned:
        return []
    changes = [event for event in record.events if event.target == target and event.notifies and event.actor != watcher]
    moments = sorted(_moments(record, watcher, changes, learned))
    return list(_joined(_walk(moments, learned[0].at_s, record)))


def _moments(record: Record, watcher: str, changes: Sequence[EventSeen], learned: Sequence[Learned]) -> Iterator[_Moment]:
    yield from (_Moment(event.at_s, 0, "change", event.sequence) for event in changes)
    yield from (_Moment(each.at_s, 2, "learn", each.version) for each in learned)
    yield from (_Moment(each.at_s, 1, "forget", 0) for each in record.forgot if each.agent == watcher)


def _walk(moments: Sequence[_Moment], begins_s: float, record: Record) -> Iterator[Band]:
    known, head, told, since_s = 0, 0, False, begins_s
    tells = record.mode in ("kizuki", "every")
    state: State = "fresh"
    for moment in moments:
        match moment.kind:
            case "change":
                head, told = moment.version, tells
            case "learn":
                known = max(known, moment.version)
            case "forget":
                told = False
        if moment.at_s <= begins_s:
            state = "fresh"
            continue
        yield Band(since_s, moment.at_s, state)
        since_s = moment.at_s
        state = "fresh" if head <= known else "waiting" if told else "stale"
    yield Band(since_s, record.lasts_s, state)


def _joined(each: Iterator[Band]) -> Iterator[Band]:
    """Bands of one state that touch are one; empty ones go."""
    last: Band | None = None
    for band in each:
        if band.ends_s <= band.begins_s:
            continue
        if last is not None and last.state == band.state:
            last = last._replace(ends_s=band.ends_s)
            continue
        if last is not None:
            yield last
        last = band
    if last is not None:
        yield last


def pairs_of(scenario: Scenario, record: Record, most: int) -> tuple[list[Pair], int]:
    """The pairs with most to see, in the order of the file, and how many others there are."""
    weight: defaultdict[Pair, int] = defaultdict(int)
    pairs = [(agent.name, target) for agent in scenario.agents for target in scenario.targets_of(agent)]
    for event in record.events:
        if event.notifies:
            for watcher, target in pairs if len(pairs) < 50 else [pair for pair in pairs if pair[1] == event.target]:
                weight[watcher, target] += target == event.target and event.actor != watcher
    for act in record.acts:
        for target in act.assumes:
            weight[act.agent, target] += 2 * (target in act.stale) + (target in act.informed)
    chosen = sorted(sorted(pairs, key=lambda pair: -weight[pair])[:most], key=pairs.index)
    return chosen, len(pairs) - len(chosen)
