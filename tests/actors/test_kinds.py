"""The kinds of events."""

from __future__ import annotations

from kizuki.actors.kinds import EventKind, notifies


def test_the_kinds_and_who_is_told() -> None:
    """Rule 1.1: there are eight kinds, and exactly three of them notify."""
    assert {str(kind): notifies(kind) for kind in EventKind} == {
        "human_direct_message": True,
        "upstream_missing": True,
        "goal_changed": True,
        "child_spawned": False,
        "run_completed": False,
        "run_failed": False,
        "compacted": False,
        "adopted": False,
    }
