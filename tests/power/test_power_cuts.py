"""A short form of `python -m tests.power`, and proof that it would notice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

pytest.importorskip("apsw", reason="needs the test extra: its file system records what SQLite does to the disk")

from tests.power.adapter import HeadsApart
from tests.power.history import History, recorded
from tests.power.search import Figures, search

MEMORY = Path("/dev/shm")
"""Thousands of files are made, which takes four times as long on a disk."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder, in memory where there is such a place."""
    with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as name:
        yield Path(name)


def _first(history: History, folder: Path, figures: Figures, *, cuts: int = 1, keeps_acknowledged: bool = True) -> str | None:
    return next(search(history, folder / "image", 1, figures, cuts=cuts, keeps_acknowledged=keeps_acknowledged), None)


def test_a_cut_supply_loses_nothing_acknowledged(folder: Path) -> None:
    """What was acknowledged with `synchronous="full"` survives a cut of the supply at any write or sync, and nothing is there by half."""
    figures = Figures()
    with recorded(folder, 2, commits=8) as history:
        assert _first(history, folder, figures) is None
    assert figures.checkpoints > 0
    assert figures.unreplied > 0
    assert figures.continued > 0


def test_normal_keeps_every_commit_whole(folder: Path) -> None:
    """With `synchronous="normal"` a dead process loses nothing, and a cut supply commits, but no part of one."""
    figures = Figures()
    with recorded(folder, 3, commits=4, synchronous="normal") as history:
        assert _first(history, folder, figures, keeps_acknowledged=False) is None


def test_without_syncs_it_is_noticed_at_once(folder: Path) -> None:
    """With `synchronous=OFF` a cut supply loses what was acknowledged, and the search says so within some hundred images."""
    figures = Figures()
    with recorded(folder, 4, commits=6, synchronous="off") as history:
        assert _first(history, folder, figures) is not None
    assert sum(figures.images.values()) < 500


def test_a_disk_that_does_not_sync_is_noticed_at_once(folder: Path) -> None:
    """A disk that says that it has synced and has not is found out within some hundred images."""
    figures = Figures()
    with recorded(folder, 5, commits=6, drops_syncs=True) as history:
        assert _first(history, folder, figures) is not None
    assert sum(figures.images.values()) < 500


def test_heads_in_a_second_transaction_are_noticed_at_once(folder: Path) -> None:
    """A store that writes an event in one transaction and its head in another is found out without any cut of the supply."""
    figures = Figures()
    with recorded(folder, 6, commits=6, connect=HeadsApart) as history:
        problem = _first(history, folder, figures, cuts=0)
    assert problem is not None
    assert "part of a commit" in problem
    assert sum(figures.images.values()) < 500
