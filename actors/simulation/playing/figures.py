"""The figures that matter to whoever runs agents, from what was seen of a run. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

from ..scenario import Scenario
from .record import EventSeen, Learned, Record

NEVER = math.inf


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one run in one mode. Times are seconds; None: never."""

    acts: int
    """Acts that assumed something about another session."""
    stale_acts: int
    """Those of them that were taken on a stale assumption: the target had material changes by others after the state that the agent last
    reconciled with."""
    preventable_acts: int
    """Those of the stale ones that could have been prevented by a line at the start of their turn."""
    prompt_lines: int
    """Lines that were put into prompts: notices, polled statuses, or events."""
    status_calls: int
    """Calls of session_status that agents made."""
    rows_read: int
    """Events that those calls returned."""
    awareness_median_s: float | None
    """From a change to the moment at which a watcher knew of it, over all pairs of a material change and a watcher that runs."""
    awareness_p99_s: float | None
    unaware: int
    """Those of the pairs of which the watcher had not learned at the end."""
    changes: int
    """The pairs."""
    notices: int
    """Lines about a changed session that came by themselves: notices, or a line an event."""
    wakes: int
    turns: int
    events: int


class Wait(NamedTuple):
    """How long a watcher did not know of one material change."""

    watcher: str
    event: EventSeen
    knew_at_s: float
    """`NEVER`: not before the end."""


def figures(scenario: Scenario, record: Record) -> Figures:
    """Judge one run."""
    waits = list(waits_of(scenario, record))
    delays = sorted(max(0.0, wait.knew_at_s - wait.event.happened_s) for wait in waits)
    acts = [act for act in record.acts if act.assumes]
    return Figures(
        acts=len(acts),
        stale_acts=sum(bool(act.stale) for act in acts),
        preventable_acts=sum(bool(act.preventable) for act in acts),
        prompt_lines=sum(turn.lines for turn in record.turns),
        status_calls=record.status_calls,
        rows_read=record.rows_read,
        awareness_median_s=percentile(delays, 0.5),
        awareness_p99_s=percentile(delays, 0.99),
        unaware=sum(delay == NEVER for delay in delays),
        changes=len(delays),
        notices=len(record.notices),
        wakes=len(record.woken),
        turns=len(record.turns),
        events=len(record.events),
    )


FIGURES: tuple[str, ...] = tuple(field.name for field in fields(Figures))


def waits_of(scenario: Scenario, record: Record) -> Iterator[Wait]:
    """Every pair of a material change and a watcher that runs and watched by then."""
    learned: defaultdict[tuple[str, str], list[Learned]] = defaultdict(list)
    for each in record.learned:
        learned[each.agent, each.target].append(each)
    watchers: defaultdict[str, list[str]] = defaultdict(list)
    for agent in scenario.agents:
        for target in scenario.targets_of(agent) if agent.runs and (agent.steps or agent.is_woken) else ():
            watchers[target].append(agent.name)
    for event in record.events:
        for watcher in watchers[event.target] if event.notifies else ():
            known = learned[watcher, event.target]
            if event.actor != watcher and known and known[0].version < event.sequence:
                yield Wait(watcher, event, next((each.at_s for each in known if each.version >= event.sequence), NEVER))


def percentile(ascending: Sequence[float], share: float) -> float | None:
    """The smallest value that so many are not above; None where that is never, or where there are no values."""
    if not ascending:
        return None
    value = ascending[min(len(ascending) - 1, max(0, math.ceil(share * len(ascending)) - 1))]
    return None if value == NEVER else round(value, 3)


def median(values: Sequence[float | None]) -> float | None:
    """The middle of a figure over runs, None counting as never; the lower of two."""
    return percentile(sorted(NEVER if value is None else value for value in values), 0.5)
