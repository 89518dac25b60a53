"""What a host reports, turned into the write that records it: pure decisions, one per kind of event (rules 1.1 to 1.8)."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

from ..storage.records import Address, SessionDraft
from ..storage.writes import Append
from .identity import Actor
from .keys import session_kind, watcher_address
from .kinds import EventKind, notifies
from .messages import Compacted, GoalChanged, HumanTurn, RunEnded, Spawned
from .summaries import summary

DAY_MS: Final = 86_400_000
GOAL_CHANGES: Final = ("created", "updated", "cleared")
OUTCOMES: Final = ("ok", "error", "timeout", "cancelled")

_STORED: Final = {kind: (kind.value, notifies(kind)) for kind in EventKind}
"""What is stored of a kind: to ask an enumeration's member for its value is a call of Python, and one is made for each event."""

Report = HumanTurn | GoalChanged | Spawned | RunEnded | Compacted


def occurrence_ms(value: object, now_ms: int) -> int:
    """When an event occurred (rule 1.7): now for what is no finite number, else clamped into the last 24 hours and rounded down."""
    if value is None or isinstance(value, bool) or not isinstance(value, int | float):
        return now_ms
    if isinstance(value, float) and not math.isfinite(value):
        return now_ms
    return math.floor(min(max(value, now_ms - DAY_MS), now_ms))


def draft(target: Address, report: Report, now_ms: int, *, record_unwatched: bool = False) -> Append:
    """The write that records a report of a session, made at `now_ms`."""
    match report:
        case HumanTurn():
            return _human_turn(target, report, now_ms, record_unwatched)
        case GoalChanged():
            text = summary(EventKind.GOAL_CHANGED, report.change)
            return _append(target, EventKind.GOAL_CHANGED, report.actor, now_ms, text)
        case Spawned():
            return _spawned(target, report, now_ms)
        case RunEnded():
            return _run_ended(target, report, now_ms)
        case Compacted():
            text = summary(EventKind.COMPACTED)
            return _append(target, EventKind.COMPACTED, Actor.system(), now_ms, text, dedupe_key=report.operation_id)


def adopted(target: Address, catalog: str, now_ms: int) -> Append:
    """The write that records that a person adopted the session from a catalog. Once per link, which the store sees to."""
    return _append(target, EventKind.ADOPTED, Actor.human(), now_ms, summary(EventKind.ADOPTED, catalog))


def upstream_missing(target: Address, catalog: str, now_ms: int, dedupe_key: str) -> Append:
    """The write that records that the session's source has gone from its catalog."""
    text = summary(EventKind.UPSTREAM_MISSING, catalog)
    return _append(target, EventKind.UPSTREAM_MISSING, Actor.system(), now_ms, text, dedupe_key=dedupe_key)


def _append(
    target: Address,
    kind: EventKind,
    actor: Actor,
    now_ms: int,
    text: str,
    *,
    run_id: str | None = None,
    occurred_at_ms: int | None = None,
    payload: dict[str, object] | None = None,
    dedupe_key: str | None = None,
    session: SessionDraft | None = None,
    only_if_watched: bool = False,
    seeds: Address | None = None,
) -> Append:
    row = _row_of(session_kind(target.session_key)) if session is None else session
    occurred = now_ms if occurred_at_ms is None else occurred_at_ms
    return Append(
        target, row, *_STORED[kind], actor.type, actor.id, run_id, occurred, now_ms, text, payload, dedupe_key,
        only_if_watched, seeds,
    )  # fmt: skip


@lru_cache(16)
def _row_of(kind: str) -> SessionDraft:
    """The row of a session of which no more than its key is known."""
    return SessionDraft(kind)


@lru_cache(256)
def _person(actor_id: str | None) -> Actor:
    """The same few people write again and again."""
    return Actor.human(actor_id)


def _human_turn(target: Address, report: HumanTurn, now_ms: int, record_unwatched: bool) -> Append:
    return _append(
        target,
        EventKind.HUMAN_DIRECT_MESSAGE,
        _person(report.actor_id),
        now_ms,
        summary(EventKind.HUMAN_DIRECT_MESSAGE, report.channel),
        run_id=report.run_id,
        occurred_at_ms=occurrence_ms(report.occurred_at_ms, now_ms),
        payload={"turns": report.turns} if report.turns > 1 else None,
        dedupe_key=report.dedupe_key,
        only_if_watched=not record_unwatched,
    )


def _spawned(target: Address, report: Spawned, now_ms: int) -> Append:
    parent = watcher_address(report.parent)
    return _append(
        target,
        EventKind.CHILD_SPAWNED,
        Actor.agent(report.parent),
        now_ms,
        summary(EventKind.CHILD_SPAWNED),
        run_id=report.run_id,
        dedupe_key=report.run_id,
        session=SessionDraft(session_kind(target.session_key), session_id=report.session_id, parent=report.parent),
        seeds=None if parent == target else parent,  # nobody watches itself
    )


def _run_ended(target: Address, report: RunEnded, now_ms: int) -> Append:
    """A run that was cancelled or timed out is a failed one whose payload keeps the precise outcome (rule 1.4)."""
    failed = report.outcome != "ok"
    kind = EventKind.RUN_FAILED if failed else EventKind.RUN_COMPLETED
    return _append(
        target,
        kind,
        Actor.system(),
        now_ms,
        summary(kind, report.outcome),
        run_id=report.run_id,
        payload={"outcome": report.outcome} if failed else None,
        dedupe_key=report.run_id,
    )
