"""A short form of `python -m tests.crash.kill_nine`."""

from __future__ import annotations

from pathlib import Path

from tests.crash.kill_nine import kill_nine


def test_kill_nine(tmp_path: Path) -> None:
    """Rule 4.11: a host killed at random moments loses nothing that it was told, and is shown nothing again that it acknowledged."""
    figures = kill_nine(tmp_path, rounds=8, seed=20_260_101)
    assert figures.problems == []
    assert figures.recorded > 0
    assert figures.acknowledged > 0
    assert figures.untold_kills > 0
