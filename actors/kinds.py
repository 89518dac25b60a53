"""The kinds of events, and which of them watchers are told about (rule 1.1)."""

from __future__ import annotations

from enum import StrEnum


class EventKind(StrEnum):
    """Every kind of event in the signal log. The value is what is stored and shown."""

    HUMAN_DIRECT_MESSAGE = "human_direct_message"
    UPSTREAM_MISSING = "upstream_missing"
    GOAL_CHANGED = "goal_changed"
    CHILD_SPAWNED = "child_spawned"
    RUN_COMPLETED = "run_completed"
    RUN_FAILED = "run_failed"
    COMPACTED = "compacted"
    ADOPTED = "adopted"


_NOTIFYING = frozenset({EventKind.HUMAN_DIRECT_MESSAGE, EventKind.UPSTREAM_MISSING, EventKind.GOAL_CHANGED})


def notifies(kind: EventKind) -> bool:
    """Whether an event of this kind can open a notice."""
    return kind in _NOTIFYING
