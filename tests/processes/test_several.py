"""Real processes on one database, in a short form; the long one is the command in `several`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.processes.host import TARGETS, WATCHERS
from tests.processes.several import Log, Notice, Run, check, several


@pytest.mark.parametrize("kills", [0, 3])
def test_four_processes(tmp_path: Path, kills: int) -> None:
    """Rules 8.1 to 8.3: nobody skips an event, every change is seen, no notice is in two turns or returns, also when killed."""
    figures = several(str(tmp_path / "state.db"), tmp_path, events=400, seed=kills, disturbances=kills)
    assert figures.problems == ()
    assert (figures.kills, figures.runs) == (kills, 4 + kills)
    assert figures.events >= 400
    assert figures.shown_by_several > 0


def _run(name: str, *lines: Mapping[str, object]) -> Run:
    run = Run(name)
    for line in lines:
        run.take(dict(line))
    run.end(killed_at=None)
    return run


WATCHER, TARGET = WATCHERS[0], TARGETS[0]
FIRST, SECOND = Notice(WATCHER, TARGET, 0, 2), Notice(WATCHER, TARGET, 2, 3)
EMPTY: dict[str, list[int]] = {target: [] for target in TARGETS}
LOG = Log(EMPTY | {TARGET: [1, 2, 3]}, [], {(WATCHER, TARGET): 3})
READ = {"what": "read", "target": TARGET, "sequences": [1, 2, 3]}


def _turn(begins: int, ends: int, notice: Notice, acknowledged_at: int | None = None) -> list[Mapping[str, object]]:
    lines: list[Mapping[str, object]] = [{"what": "shown", "at": begins, "notices": [notice]}]
    if acknowledged_at is not None:
        lines.append({"what": "acknowledged", "at": acknowledged_at, "notices": [notice]})
    return [*lines, {"what": "over", "at": ends, "notices": [notice]}]


def test_all_well() -> None:
    """Turns one after the other, on two processes, are as they should be."""
    runs = [_run("0.0", READ, *_turn(1, 4, FIRST, 3)), _run("1.0", READ, *_turn(5, 6, SECOND), *_turn(7, 8, SECOND))]
    assert list(check(runs, LOG)) == []


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([READ | {"sequences": [1, 3]}, *_turn(7, 8, SECOND)], r"skipped \[2\]"),
        ([READ | {"sequences": [1, 2]}, *_turn(7, 8, SECOND)], "read 2 of 3 events"),
        ([READ, {"what": "recorded", "target": TARGET, "sequence": 9}, *_turn(7, 8, SECOND)], r"\[9\] of .* recorded, and they are gone"),
        ([READ], "was shown .* up to 2, and 3 counts as seen"),
        ([READ, *_turn(3, 8, FIRST), *_turn(7, 8, SECOND)], "in a turn of 0.0 and in one of 1.0 at the same time"),
        ([READ, *_turn(5, 6, FIRST), *_turn(7, 8, SECOND)], "was shown by 1.0 after 2 had been acknowledged"),
    ],
)
def test_what_is_wrong_is_found(lines: list[Mapping[str, object]], says: str) -> None:
    """Each kind of violation is told."""
    found = list(check([_run("0.0", READ, *_turn(1, 4, FIRST, 3)), _run("1.0", *lines)], LOG))
    assert len(found) == 1
    assert re.search(says, found[0])
